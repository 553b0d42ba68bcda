"""The pages that acknowledge omissions, one and many, and the page that says whether a source may be purged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from recovery_api.models import Audit, Intent, OmissionPreview, Pipeline
from recovery_api.selectors.omissions import omission_list
from tests.integration.pages.incident import SCRIPT, audit_make

pytestmark = pytest.mark.django_db

FIRST = 9007199254740993
WHY = {"reason": f"test order {SCRIPT}", "reference": "https://tickets.example/OPS-7"}


def test_a_lost_event_is_acknowledged_on_its_page_and_owed_again_from_the_list(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    client = sign_in("operator")
    page = client.get(reverse("finding"), {"audit": str(audit.id), "at": str(FIRST)}).content.decode()
    assert "Never deliver it" in page and reverse("omission-acknowledge", args=[pipeline.name]) in page
    given = {"coordinate": str(FIRST), "lane": "0", **WHY}
    answer = client.post(reverse("omission-acknowledge", args=[pipeline.name]), given)
    assert answer.status_code == 302
    listed = client.get(answer.url).content.decode()
    assert str(FIRST) in listed and "OPS-7" in listed and SCRIPT not in listed and "for good" in listed
    client.post(reverse("omission-withdraw", args=[pipeline.name]), {"coordinate": str(FIRST), "lane": "0"})
    assert not omission_list(pipeline).exists()


def test_the_filter_of_findings_is_shown_and_then_confirmed(pipeline: Pipeline, sign_in: Callable[..., Client]) -> None:
    audit = audit_make(pipeline, 412)
    client = sign_in("operator")
    findings = client.get(reverse("findings", args=[audit.id]) + f"?from={FIRST + 2}").content.decode()
    assert reverse("omission-preview-make", args=[pipeline.name]) in findings
    answer = client.post(
        reverse("omission-preview-make", args=[pipeline.name]), {"audit": str(audit.id), "from": str(FIRST + 2)}
    )
    page = client.get(answer.url)
    assert "410 events would be acknowledged." in page.content.decode() and not omission_list(pipeline).exists()
    preview = OmissionPreview.objects.get()
    confirm = reverse("omission-confirm", args=[pipeline.name, preview.pk])
    assert confirm in page.content.decode()
    assert client.post(confirm, {"reason": " "}).status_code == 400
    assert client.post(confirm, WHY).status_code == 302
    assert omission_list(pipeline).count() == 410
    assert "It was confirmed." in client.get(answer.url).content.decode()
    act = {"act": str(preview.pk)}
    assert client.post(reverse("omission-withdraw", args=[pipeline.name]), act).status_code == 302
    assert not omission_list(pipeline).exists()


def test_an_export_is_uploaded_and_waits_for_a_worker(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    client = sign_in("operator")
    address = reverse("omission-import", args=[pipeline.name])
    answer = client.post(address, {"export": SimpleUploadedFile("dead.csv", f"id,why\n{FIRST},x\nno,y\n".encode())})
    page = client.get(answer.url).content.decode()
    assert "A worker looks the events up at the source." in page and f'hx-get="{answer.url}"' in page
    assert client.get(answer.url, headers={"HX-Request": "true"}).status_code == 204
    intent = Intent.objects.get()
    assert intent.action == "omission_look_up"
    assert answer.url in client.get(reverse("work", args=[intent.pk])).content.decode()
    assert client.post(address).status_code == 400
    latin = SimpleUploadedFile("dead.csv", b"id\n\xff\n")
    assert "is not UTF-8: byte 3" in client.post(address, {"export": latin}).content.decode()


@pytest.mark.parametrize("role", ["viewer", "admin"])
def test_who_may_not_acknowledge_sees_the_pages_and_no_button_that_works(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client], role: str
) -> None:
    client = sign_in(role)
    page = client.get(reverse("omissions", args=[pipeline.name])).content.decode()
    assert "Acknowledge more" in page and "disabled" in page
    given = {"coordinate": str(FIRST), **WHY}
    assert client.post(reverse("omission-acknowledge", args=[pipeline.name]), given).status_code == 403


@pytest.mark.parametrize(
    "given", [{"from": "x"}, {"from": "9", "to": "1"}, {"audit": "00000000-0000-0000-0000-000000000007"}]
)
def test_what_cannot_be_previewed_is_refused(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client], given: dict[str, Any]
) -> None:
    answer = sign_in("operator").post(reverse("omission-preview-make", args=[pipeline.name]), given)
    assert answer.status_code in (400, 409) and not OmissionPreview.objects.exists()


def test_a_source_says_whether_it_may_be_purged(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    client, address = sign_in("viewer"), reverse("source", args=[pipeline.source.name])
    assert "May this be purged?" in client.get(address).content.decode()
    page = client.get(address, {"below": str(FIRST)}).content.decode()
    assert "No, not yet." in page and f"Event {FIRST} is lost." in page
    assert "It cannot be asked so." in client.get(address, {"below": "x"}).content.decode()
    assert "Unknown, so no." in client.get(address, {"below": str(FIRST + 9)}).content.decode()
