"""The pages of findings and of one event: filters, turning pages, contents for those who may read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from recovery_api.domain.coordinates import Coordinate
from recovery_api.models import (
    Audit,
    Event,
    EventContent,
    EventKind,
    LedgerItem,
    Pipeline,
)
from recovery_api.services.event_reads import event_read_record, event_read_request
from recovery_api.services.intents import intent_take
from tests.integration.pages.incident import SCRIPT, audit_make

pytestmark = pytest.mark.django_db


def test_coordinates_past_2_to_53_are_shown_and_linked_digit_by_digit(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    page = sign_in("viewer").get(reverse("findings", args=[audit.id])).content.decode()
    assert "at=9007199254740993" in page and ">9007199254740993<" in page


def test_thousands_of_findings_are_turned_page_by_page_by_the_pages_own_links(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    audit = audit_make(pipeline, 450)
    client, address, seen = sign_in("viewer"), "", 0
    for _ in range(3):
        page = client.get(reverse("findings", args=[audit.id]) + address)
        seen += len(page.context["rows"])
        address = page.context["following"].partition("#")[0]
    assert (seen, address) == (450, "")
    last = "?from=9007199254741442"
    assert len(client.get(reverse("findings", args=[audit.id]) + last).context["rows"]) == 1


@pytest.mark.parametrize("query", ["?colour=red", "?from=abc", "?after=1e9", "?after=9999999999999999999999"])
def test_a_filter_that_cannot_be_used_is_refused_by_name(
    audit: Audit, sign_in: Callable[..., Client], query: str
) -> None:
    page = sign_in("viewer").get(reverse("findings", args=[audit.id]) + query)
    assert page.status_code == 400
    assert query[1:].partition("=")[0] in page.content.decode()


def test_a_hundred_thousand_findings_list_with_few_queries(
    pipeline: Pipeline, sign_in: Callable[..., Client], django_assert_max_num_queries: Any
) -> None:
    audit = audit_make(pipeline, 100_000)
    client = sign_in("viewer")
    client.get(reverse("work-list"))
    for query in ("", "?after=99000", "?finding=lost&from=9007199254800000"):
        with django_assert_max_num_queries(10):
            assert client.get(reverse("findings", args=[audit.id]) + query).status_code == 200


HELD = [{"of": "record", "content": f'{{"other": "{SCRIPT}"}}', "bytes": 99, "is_cut": True}]


def event_intent(pipeline: Pipeline, content: bytes) -> Any:
    now = timezone.now()
    intent = event_read_request(pipeline, "0", Coordinate(9007199254740993), actor="ada", now=now, wake=False)
    taken = intent_take(intent.id, "worker", now)
    found = {
        "coordinate": "9007199254740993",
        "source": {"identity": "s", "rows": [{"event_id": "e", "op": "insert", "key": SCRIPT, "payload_digest": "aa"}]},
        "sink": {"identity": "r", "rows": []},
        "content": {"bytes": str(len(content)), "sha256": "bb", "is_brought": True},
        "sink_contents": {"says": "As the record holds it.", "rows": [{"of": "record", "bytes": 99, "is_cut": True}]},
    }
    event_read_record(taken, found, content, now, HELD)
    return intent


def test_content_is_escaped_cut_and_only_for_those_who_may_read_it(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    content = f'{{"s": "{SCRIPT}", "n": 12345678901234567890}}'.encode() + b" " * 30_000
    intent = event_intent(pipeline, content)
    address = reverse("finding") + f"?audit={audit.id}&lane=0&at=9007199254740993"
    shown = sign_in("operator", name="ada").get(address).content.decode()
    assert (
        "{&quot;other&quot;: &quot;&lt;script&gt;" in shown
        and "12345678901234567890" in shown
        and "&lt;script&gt;" in shown
        and "<script>alert" not in shown
    )
    assert "Only the beginning is shown." in shown
    masked = sign_in("viewer").get(address).content.decode()
    assert "12345678901234567890" not in masked and "Needs the role operator or approver" in masked
    assert sign_in("viewer").get(reverse("event-content", args=[intent.id])).status_code == 403
    assert sign_in("admin").post(reverse("event-read"), {"audit": audit.id, "at": "1"}).status_code == 403
    assert sign_in("viewer").get(f"/api/v1/intents/{intent.id}/sink-content").status_code == 403


def test_contents_that_somebody_else_asked_for_are_masked_until_that_one_looks_is_logged(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    event_intent(pipeline, b'{"secret": "cents"}')
    place = {"audit": str(audit.id), "lane": "0", "at": "9007199254740993"}
    address, grace = reverse("finding") + f"?{urlencode(place)}", sign_in("operator", name="grace")
    masked = grace.get(address).content.decode()
    assert "cents" not in masked and "&quot;other&quot;" not in masked and "Show what was read" in masked
    assert sign_in("viewer").post(reverse("event-look"), place).status_code == 403
    assert grace.post(reverse("event-look"), place).status_code == 302
    looked = Event.objects.filter(kind=EventKind.CONTENT_READ).last()
    assert looked is not None and looked.actor == "grace"
    assert looked.says == "grace looked at what ada had read of the event at 9007199254740993."
    shown = grace.get(address).content.decode()
    assert "cents" in shown and "{&quot;other&quot;" in shown and "Show what was read" not in shown


def test_what_the_sink_holds_is_taken_by_rest_and_that_is_logged(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    intent = event_intent(pipeline, b"{}")
    answer = sign_in("operator", name="grace").get(f"/api/v1/intents/{intent.id}/sink-content")
    assert answer.json() == {"items": [{**HELD[0], "bytes": "99"}]}
    taken = Event.objects.filter(kind=EventKind.CONTENT_READ).last()
    assert taken is not None and taken.says.startswith("grace took what the sink holds of the event at")
    assert "script" not in f"{taken.says}{taken.data}"


def test_a_finding_shows_its_event_and_who_left_it_with_which_reason(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    committed_at = timezone.now()
    LedgerItem.objects.create(
        pipeline=pipeline,
        lane="0",
        position=9007199254740993,
        word="lost",
        digest=b"\x01" * 32,
        key=SCRIPT,
        event_id="e-1",
        committed_at=committed_at,
        epoch="e",
        first_audit=audit,
        first_seen_at=committed_at,
        last_audit=audit,
        last_seen_at=committed_at,
    )
    place = {"audit": str(audit.id), "lane": "0", "at": "9007199254740993"}
    client = sign_in("operator", name="ada")
    assert client.post(reverse("finding-leave"), {**place, "reason": " "}).status_code == 400
    assert client.post(reverse("finding-leave"), {**place, "reason": f"a test {SCRIPT}"}).status_code == 302
    for address in (reverse("findings", args=[audit.id]), f"{reverse('finding')}?{urlencode(place)}"):
        page = client.get(address).content.decode()
        assert "e-1" in page and "&lt;script&gt;alert" in page and "<script>alert" not in page
        assert f"{committed_at:%H:%M:%S}" in page and "a test &lt;script&gt;" in page, address
    first, second, _ = client.get(f"/api/v1/audits/{audit.id}/findings").json()["items"]
    assert (first["key"], first["event_id"], first["left"]["by"]) == (SCRIPT, "e-1", "ada")
    assert (second["key"], second["event_id"], second["committed_at"], second["left"]) == (None, None, None, None)
    answer = client.post(
        f"/api/v1/pipelines/{quote(pipeline.name)}/findings/leave",
        {"coordinate": "9007199254740994", "reason": "as the shop said"},
        content_type="application/json",
    )
    assert answer.status_code == 201 and answer.json()["reason"] == "as the shop said"


def test_download_gives_the_bytes_as_they_are_and_is_logged(pipeline: Pipeline, sign_in: Callable[..., Client]) -> None:
    intent = event_intent(pipeline, b'{"a": 1.50}\xff')
    answer = sign_in("operator", name="ada").get(reverse("event-content", args=[intent.id]))
    assert answer.content == b'{"a": 1.50}\xff'
    assert answer["Content-Type"] == "application/octet-stream" and "attachment" in answer["Content-Disposition"]
    assert "ada downloaded 12 bytes" in Event.objects.filter(kind=EventKind.CONTENT_READ).last().says  # type: ignore[union-attr]
    EventContent.objects.all().delete()
    assert sign_in("operator").get(reverse("event-content", args=[intent.id])).status_code == 404


def test_u8_a_filtered_listing_counts_what_it_shows(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    client, address = sign_in("viewer"), reverse("findings", args=[audit.id])
    assert ">1 to 3 of 3<" in client.get(address).content.decode()
    filtered = client.get(f"{address}?from=9007199254740994").content.decode()
    assert ">2 on this page<" in filtered
