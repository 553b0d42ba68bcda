"""Two people change the same thing: the form that was opened before the other's change saves nothing, says so, and keeps what was entered."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from recovery_api.models import Destination, Incident, Pipeline, Source
from recovery_api.selectors.versions import version_of
from recovery_api.services.destinations import destination_add, destination_change
from recovery_api.services.ends import source_update
from recovery_api.services.incidents import incident_change, incident_open
from recovery_api.services.pipelines import pipeline_update
from tests.integration.pages.fleet import SOURCE, pipeline_make

pytestmark = pytest.mark.django_db


def by_bob() -> dict[str, Any]:
    return {"actor": "bob", "now": timezone.now()}


def pipeline_made() -> tuple[str, str, Pipeline]:
    return "/pipelines/orders/edit/", "/pipelines/orders/edit/", pipeline_make("orders", timezone.now())


def pipeline_changed(one: Any) -> None:
    pipeline_update(
        one, delivery=None, scope=["k1"], options={"owner": "payments"}, requires_other_approver=True, **by_bob()
    )


def source_made() -> tuple[str, str, Source]:
    source = pipeline_make("orders", timezone.now()).source
    return "/sources/source%20orders/edit/", "/sources/source%20orders/edit/", source


def source_changed(one: Any) -> None:
    source_update(one, {**SOURCE, "table": "payments"}, **by_bob())


def destination_made() -> tuple[str, str, Destination]:
    given = {"address": "https://a.example/", "secret": "env:FENCEPOST_END_X"}
    one = destination_add("hook", "json", **given, actor="root", now=timezone.now())
    return "/destinations/hook/", "/destinations/hook/edit/", one


def destination_changed(one: Any) -> None:
    destination_change(one, address="https://payments.example/", **by_bob())


def incident_made() -> tuple[str, str, Incident]:
    one = incident_open("Orders owed", [], actor="root", now=timezone.now())
    return f"/incidents/{one.pk}/", f"/incidents/{one.pk}/", one


def incident_changed(one: Any) -> None:
    incident_change(one, commander="payments", **by_bob())


CASES = {
    "pipeline": (pipeline_made, pipeline_changed, {"option_owner": "ledger <b>", "scope_kind": "every"}),
    "source": (source_made, source_changed, {"option_table": "ledger <b>"}),
    "destination": (destination_made, destination_changed, {"address": "https://ledger.example/?<b>"}),
    "incident": (incident_made, incident_changed, {"commander": "ledger <b>", "state": "open"}),
}


def form_of(page: Any, entered: Mapping[str, str]) -> dict[str, str]:
    """What a browser posts: the fields as they were shown, those that were entered, and the version that the page carries."""
    shown = page.context.get("form")
    fields = {one.html_name: one.value() or "" for one in shown if one.value() is not False} if shown else {}
    [*_, version] = re.findall(r'name="version" value="([0-9a-f]{32})"', page.content.decode())
    return {**fields, "author_may_approve": "", **entered, "version": version}


@pytest.mark.parametrize("case", CASES)
def test_a_form_of_yesterday_saves_nothing_says_what_was_changed_and_keeps_what_was_entered(
    case: str, sign_in: Callable[..., Client]
) -> None:
    make, change, entered = CASES[case]
    shows, posts, one = make()
    admin = sign_in("admin", name="adam")
    form = form_of(admin.get(shows), entered)
    change(one)
    now = type(one)._default_manager.get(pk=one.pk)
    held = version_of(now)

    refused = admin.post(posts, form)
    text = refused.content.decode()
    assert refused.status_code == 409 and "somebody changed it since you opened this form" in text
    assert "by bob" in text and "payments" in text, "who, and what is there now"
    assert text.count("ledger") >= 2 and "<b>" not in text.replace("&lt;b&gt;", ""), "beside it, and still in the form"
    assert version_of(type(one)._default_manager.get(pk=one.pk)) == held, "nothing was saved"

    again = admin.post(posts, form_of(refused, entered))
    assert again.status_code == 302, "looked at, and saved on purpose"
    assert version_of(type(one)._default_manager.get(pk=one.pk)) != held
