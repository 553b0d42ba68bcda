"""An option that decides which rows count, or as what, makes what was judged before a verdict about something else."""

from __future__ import annotations

from typing import Any

import pytest

from recovery_api.models import Audit, Pipeline, PlanState
from recovery_api.selectors.audits import certified_by_lane
from recovery_api.services.audits import audit_record
from recovery_api.services.ends import (
    connection_test_record,
    connection_test_request,
    sink_create,
    sink_update,
    source_create,
    source_update,
)
from recovery_api.services.intents import intent_take
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.plans import plan_approve
from tests.integration.control.conftest import FRONTIER, make_pipeline, make_ready

SOURCE: dict[str, Any] = {
    "connection": "env:FENCEPOST_END_SHOP",
    "table": "messages",
    "coordinate": ["id"],
    "filter": "kind = 'mail'",
}
SINK: dict[str, Any] = {
    "connection": "env:FENCEPOST_END_MAIL",
    "table": "mails",
    "coordinate": ["id"],
    "content": "content",
    "is_effect": True,
}
REPORT = {"is_usable": True, "facts": {}, "problems": [], "weaknesses": []}


@pytest.fixture
def mapped(db: None, now: Any) -> Pipeline:
    source = source_create("messages", "postgresql_outbox", SOURCE, actor="owner", now=now)
    sink = sink_create("mails", "postgresql_table", SINK, actor="owner", now=now)
    return pipeline_create("mail", source, sink, actor="owner", now=now)


def judged(pipeline: Pipeline, now: Any) -> Audit:
    given = {"started_at": now, "now": now, "is_full": True, "says": "Judged.", "frontier": FRONTIER}
    return audit_record(pipeline, status="exactly_once", exit_code=0, **given)


@pytest.mark.parametrize(
    ("end", "change"),
    [
        ("source", {"filter": "kind in ('mail', 'letter')"}),
        ("source", {"filter": None}),
        ("source", {"table": "letters"}),
        ("source", {"content": "body"}),
        ("sink", {"table": "letters"}),
        ("sink", {"content": "body"}),
        ("sink", {"digest": "digest"}),
        ("sink", {"head": ["head"]}),
    ],
)
def test_audits_of_other_rows_are_void_and_plans_lapse(
    mapped: Pipeline, now: Any, later: Any, end: str, change: dict[str, Any]
) -> None:
    audit, plan = judged(mapped, now), make_ready(mapped, now)
    other = make_pipeline("post", now)
    untouched = judged(other, now)
    assert certified_by_lane(mapped)
    if end == "source":
        source_update(mapped.source, {**SOURCE, **change}, actor="owner", now=later(minutes=1))
    else:
        sink_update(mapped.sink, {**SINK, **change}, actor="owner", now=later(minutes=1))
    for row in (audit, plan, untouched):
        row.refresh_from_db()
    assert audit.void_since == later(minutes=1) and next(iter(change)) in audit.void_says
    assert untouched.void_since is None
    assert plan.state == PlanState.LAPSED
    mapped.refresh_from_db()
    assert certified_by_lane(mapped) == {}


def test_an_option_that_decides_nothing_voids_no_audit(mapped: Pipeline, now: Any, later: Any) -> None:
    audit, plan = judged(mapped, now), make_ready(mapped, now)
    source_update(mapped.source, {**SOURCE, "connect_timeout_seconds": 3}, actor="owner", now=later(minutes=1))
    audit.refresh_from_db()
    plan.refresh_from_db()
    assert audit.void_since is None
    assert plan.state == PlanState.LAPSED, "the ends are tested again first"


@pytest.mark.parametrize("found", [{"strategy": "read_only"}, {"strategy": "fenced"}])
def test_a_plan_for_one_strategy_lapses_once_a_test_shows_another(
    mapped: Pipeline, now: Any, found: dict[str, str]
) -> None:
    plan = make_ready(mapped, now)
    plan.pins = {**plan.pins, "strategy": "attested"}
    plan.save()
    plan_approve(plan.id, plan.digest, "approver", now)
    for capability, state in (({"strategy": "attested"}, PlanState.APPROVED), (found, PlanState.LAPSED)):
        asked = connection_test_request(actor="owner", now=now, sink=mapped.sink)
        intent = intent_take(asked.id, "worker", now)
        assert intent is not None
        connection_test_record(intent, REPORT, now, capability)
        plan.refresh_from_db()
        assert plan.state == state
