"""The freeze switch: who asks for sending is refused, what holds waits in the queue, and lifting lets it go on."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from django.core.management import call_command

from recovery_api.domain.errors import BadInput, Frozen, Refused
from recovery_api.models import Event, Freeze, Intent, Pipeline, Plan
from recovery_api.selectors.freezes import freeze_of, freezes_by_pipeline
from recovery_api.services.audits import audit_request
from recovery_api.services.drills import drill_request
from recovery_api.services.freezes import freeze_lift, freeze_set
from recovery_api.services.intents import intent_give_back, intent_take, intent_take_next
from recovery_api.services.recoveries import recovery_request, recovery_want
from tests.integration.control.conftest import make_pipeline


def apply(plan: Plan, now: dt.datetime) -> Any:
    """Its recovery, whose intent is the only work there is."""
    Intent.objects.filter(action="plan").delete()
    return recovery_request(plan.id, "the relay died", plan.pipeline.name, "ada", now=now, wake=False)


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_frozen_pipeline_applies_no_plan_and_drills_no_sink_and_audits(
    approved_plan: Plan, now: dt.datetime, is_whole: bool
) -> None:
    pipeline = approved_plan.pipeline
    freeze_set(None if is_whole else pipeline, "a bad deploy", actor="ada", now=now)
    with pytest.raises(Frozen, match="is frozen by ada since 2026-03-01 03:00 UTC, because: a bad deploy"):
        apply(approved_plan, now)
    with pytest.raises(Frozen):
        drill_request(pipeline.sink, actor="ada", now=now)
    intent = audit_request(pipeline, actor="ada", now=now, wake=False)
    assert intent_take(intent.id, "w", now) is not None
    freeze_lift(None if is_whole else pipeline, "the deploy was taken back", actor="bob", now=now)
    assert apply(approved_plan, now).pipeline == pipeline
    assert list(Event.objects.filter(kind__in=["frozen", "unfrozen"]).values_list("kind", "actor")) == [
        ("frozen", "ada"),
        ("unfrozen", "bob"),
    ]


def test_another_pipeline_may_send(approved_plan: Plan, now: dt.datetime) -> None:
    other = make_pipeline("other", now)
    freeze_set(other, "its sink misbehaves", actor="ada", now=now)
    assert apply(approved_plan, now)
    assert freeze_of(approved_plan.pipeline_id) is None
    assert set(freezes_by_pipeline([other, approved_plan.pipeline])) == {other.pk}


def test_what_holds_waits_without_a_worker_until_it_is_lifted(approved_plan: Plan, now: dt.datetime) -> None:
    recovery = apply(approved_plan, now)
    intent = intent_take(recovery.intents.get().id, "w", now)
    assert intent is not None
    freeze_set(None, "a bad deploy", actor="ada", now=now)
    error = Frozen("going on", "every pipeline", "by ada", "03:00", "a bad deploy", "manage.py unfreeze --everything")
    assert intent_give_back(intent, error.as_row(), now)
    assert intent_take_next("spark", "w", now) is None and intent_take(intent.id, "w", now) is None
    freeze_lift(None, "over", actor="ada", now=now)
    taken = intent_take_next("spark", "w", now)
    assert taken is not None and taken.id == intent.id


def test_a_stop_is_obeyed_while_everything_is_frozen(approved_plan: Plan, now: dt.datetime) -> None:
    recovery = apply(approved_plan, now)
    Intent.objects.filter(recovery=recovery).update(error={"code": "frozen", "text": "held"}, attempts=1)
    type(recovery).objects.filter(pk=recovery.pk).update(state="arming")
    freeze_set(None, "a bad deploy", actor="ada", now=now)
    assert intent_take_next("spark", "w", now) is None
    recovery.refresh_from_db()
    recovery_want(recovery, "stop", actor="ada", now=now, reason="give the claim up", wake=False)
    taken = intent_take_next("spark", "w", now)
    assert taken is not None and taken.recovery_id == recovery.id


def test_a_freeze_is_set_once_and_lifted_once_each_with_a_reason(pipeline: Pipeline, now: dt.datetime) -> None:
    with pytest.raises(BadInput):
        freeze_set(pipeline, " ", actor="ada", now=now)
    freeze_set(pipeline, "a", actor="ada", now=now)
    freeze_set(None, "b", actor="ada", now=now)
    for what in (pipeline, None):
        with pytest.raises(Refused, match="frozen by ada since 2026-03-01 03:00"):
            freeze_set(what, "again", actor="bob", now=now)
        freeze_lift(what, "over", actor="bob", now=now)
        with pytest.raises(Refused, match="is not frozen"):
            freeze_lift(what, "over", actor="bob", now=now)
    assert Freeze.objects.filter(lifted_by="bob").count() == 2


def test_the_command_freezes_lists_and_lifts(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("freeze", "--everything", "--reason", "a bad deploy", "--actor", "ada")
    with pytest.raises(SystemExit) as ended:
        call_command("freeze", "--everything", "--reason", "again", "--actor", "ada")
    assert ended.value.code == 2
    capsys.readouterr()
    call_command("freeze", "--json")
    [row] = json.loads(capsys.readouterr().out)["freezes"]
    assert (row["pipeline"], row["reason"]) == (None, "a bad deploy")
    assert row["frozen_by"] == "by command, as ada (not signed in)"
    call_command("pipelines", "list", "--json")
    assert json.loads(capsys.readouterr().out)["pipelines"][0]["frozen"]["reason"] == "a bad deploy"
    call_command("unfreeze", "--everything", "--reason", "over", "--actor", "ada")
    assert not Freeze.objects.filter(lifted_at=None).exists()
    with pytest.raises(SystemExit) as ended:
        call_command("unfreeze", "--reason", "over")
    assert ended.value.code == 2
