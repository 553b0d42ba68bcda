"""The same right for the same act: every act on its pages and by REST, for every role, over HTTP."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client
from django.urls import get_resolver, reverse
from django.urls.converters import UUIDConverter
from django.utils import timezone

from recovery_api.domain.access import (
    ACTS,
    API,
    PAGES,
    PERMISSIONS_OF,
    WITHDRAWING,
    Act,
    Permission,
    Role,
    permissions_of,
)
from recovery_api.models import Event, Intent, IntentAction, IntentState, Pipeline, Plan, Sink, Source
from tests.integration.security.conftest import SignIn

pytestmark = pytest.mark.django_db

HELD = [(role.value,) for role in Role] + [(), ("admin", "approver")]


def address_of(route: str) -> str:
    """An address of the route, of something that is not there."""
    (_, *_, converters) = get_resolver().reverse_dict.getlist(route)[0]
    values = {
        name: uuid.UUID(int=7) if isinstance(kind, UUIDConverter) else "nobody" for name, kind in converters.items()
    }
    return reverse(route, kwargs=values)


def is_allowed(client: Client, text: str) -> bool:
    route, _, method = text.partition(" ")
    answer = client.generic(method, address_of(route), b"{}", content_type="application/json")
    assert answer.status_code < 500, (text, answer.status_code)
    return answer.status_code != 403


@pytest.mark.parametrize("held", HELD, ids=str)
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
def test_s6_an_act_needs_the_same_right_on_pages_and_by_rest(act: Act, held: tuple[str, ...], sign_in: SignIn) -> None:
    expected = act.needs == Permission.SIGNED_IN or act.needs in permissions_of(held)
    client = sign_in(*held, name="ada")
    assert {text: is_allowed(client, text) for text in (*act.pages, *act.api)} == dict.fromkeys(
        (*act.pages, *act.api), expected
    )


def test_every_write_is_an_act_or_has_its_reason() -> None:
    """A write on one face alone is listed here, with why the other has none."""
    named = {text for act in ACTS for text in (*act.pages, *act.api)}
    alone = {f"{route} {method}" for route, method in (*PAGES, *API) if method != "GET"} - named
    assert {text for text in alone if not text.startswith("api-unknown")} == {
        "sign-in POST",  # REST has tokens
        "admin-sign-in POST",  # leads to the sign-in
        "sign-out POST",
        "password POST",  # a token changes no password
        "sample-contents POST",  # REST takes the same at the intent's content
        "api-pipeline-test POST",  # pages test each end
        "api-pipeline-ledger POST",  # the page shows its command: a rare decision, with its reason
        "api-sink-drill-schedule POST",  # on the page it is an option of the sink
    }


@pytest.mark.parametrize("action", list(IntentAction))
@pytest.mark.parametrize("held", HELD, ids=str)
def test_s6_withdrawing_needs_what_asking_needed_on_pages_and_by_rest(
    action: str, held: tuple[str, ...], sign_in: SignIn
) -> None:
    may = WITHDRAWING[action] in permissions_of(held)
    sees = Permission.SEE in permissions_of(held)
    client = sign_in(*held, name="ada")
    for address in ("/work/{}/cancel/", "/api/v1/intents/{}/cancel"):
        intent = Intent.objects.create(action=action, created_at=timezone.now(), created_by="root")
        answer = client.post(address.format(intent.id), {}, content_type="application/json")
        assert (answer.status_code != 403) == may, (address, answer.status_code)
        intent.refresh_from_db()
        is_work = action not in (IntentAction.RECOVER, IntentAction.SETTLE)
        assert (intent.state == IntentState.CANCELLED) == (may and is_work), address
        if sees:
            page = client.get(f"/work/{intent.id}/").content.decode()
            assert "Withdraw it" not in page or intent.state != IntentState.QUEUED or not may or is_work


@pytest.mark.parametrize("address", ["/work/{}/cancel/", "/api/v1/intents/{}/cancel"])
def test_s7_a_plan_whose_work_is_withdrawn_is_refused_on_either_face(address: str, sign_in: SignIn) -> None:
    now = timezone.now()
    by = {"created_at": now, "created_by": "root"}
    source = Source.objects.create(name="s", kind="postgresql_outbox", options={}, **by)
    sink = Sink.objects.create(name="k", kind="postgresql_kit", options={}, **by)
    pipeline = Pipeline.objects.create(name="p", source=source, sink=sink, **by)
    plan = Plan.objects.create(pipeline=pipeline, author="root", created_at=now)
    intent = Intent.objects.create(action=IntentAction.PLAN, pipeline=pipeline, plan=plan, **by)
    sign_in("operator", name="olga").post(address.format(intent.id), {}, content_type="application/json")
    plan.refresh_from_db()
    assert (plan.state, plan.says) == ("refused", "olga withdrew it before a worker took it.")
    assert Event.objects.get(kind="plan refused").actor == "olga"


def test_an_admin_approves_nothing_and_an_approver_configures_nothing() -> None:
    """Both see, both may stop all sending, and both keep incidents."""
    assert not PERMISSIONS_OF[Role.ADMIN] & PERMISSIONS_OF[Role.APPROVER] - {
        Permission.SEE,
        Permission.INCIDENT,
        Permission.FREEZE,
    }
