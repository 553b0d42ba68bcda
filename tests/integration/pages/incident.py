"""An incident on pages: an audit with findings, plans and ended recoveries of one pipeline, with hostile names."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from recovery_api.models import (
    Audit,
    Pipeline,
    Plan,
    Recovery,
    RecoveryOutcome,
)
from recovery_api.services.audits import audit_record
from recovery_api.services.findings import ListedFinding
from recovery_api.services.intents import intent_take
from recovery_api.services.plans import plan_approve, plan_record, plan_request, plan_start
from recovery_api.services.recoveries import recovery_finish, recovery_request
from tests.integration.pages.fleet import pipeline_make

SCRIPT = "<script>alert('x')</script>"
FRONTIER = {"0": {"position": "9007199254740993", "ordinal": "0"}}


@pytest.fixture
def pipeline() -> Pipeline:
    return pipeline_make('orders "mail" é 😀 <b>', timezone.now())


def listed(position: int, finding: str = "lost", cause: str = "") -> ListedFinding:
    return ListedFinding(finding, cause, "provably missing", "0", position, 0, None, None, False, b"\x01" * 32, None)


@pytest.fixture
def audit(pipeline: Pipeline) -> Audit:
    return audit_make(pipeline, 3)


def audit_make(pipeline: Pipeline, count: int) -> Audit:
    now = timezone.now()
    first = 9007199254740993
    return audit_record(
        pipeline,
        status="owed",
        exit_code=1,
        now=now,
        started_at=now,
        is_full=True,
        says=f"{count} lost. {SCRIPT}",
        lost_count=count,
        obligation_count=count,
        evidence_rows=count,
        evidence_uri="/evidence/a",
        frontier=FRONTIER,
        groups=[
            {
                "finding": "lost",
                "cause": "",
                "lane": "0",
                "is_acknowledged": False,
                "count": str(count),
                "runs_count": "1",
                "runs": [{"first_says": str(first), "last_says": str(first + count - 1), "count": str(count)}],
            }
        ],
        listing=(listed(first + number) for number in range(count)),
    )


def plan_make(pipeline: Pipeline, author: str = "ada", **more: Any) -> Plan:
    plan, _ = plan_request(pipeline, actor=author, now=timezone.now(), wake=False)
    given: dict[str, Any] = {
        "digest": "d1",
        "frontier": FRONTIER,
        "conditions": [
            {"name": "P1", "asks": "Hazard-free?", "holds": True, "says": "It is.", "remedy": ""},
            {"name": "C1", "asks": "Disciplined?", "holds": None, "says": SCRIPT, "remedy": "Close them."},
        ],
        "batch": {"provably missing": "3", "acknowledged": "0"},
        "batch_count": 3,
        "says": "3 events are owed.",
        "samples": [{"lane": "0", "position": "1", "ordinal": "0", "op": "insert", "key": SCRIPT, "content": "secret"}],
        "listing": [listed(9007199254740993), listed(2**63 - 1)],
        **more,
    }
    return plan_record(plan_start(plan), now=timezone.now(), **given)


def finished(pipeline: Pipeline, outcome: str = RecoveryOutcome.EXACTLY_ONCE) -> Recovery:
    plan = plan_make(pipeline)
    now = timezone.now()
    plan_approve(plan.id, plan.digest, "grace", now)
    recovery = recovery_request(plan.id, f"why {SCRIPT}", pipeline.name, "grace", now=now, wake=False)
    intent = intent_take(recovery.intents.get().id, "worker", now)
    certificate = {
        "recovery": str(recovery.id),
        "pipeline": pipeline.name,
        "outcome": outcome,
        "says": SCRIPT,
        "plan": {"batch": {}, "conditions": [], "approved_at": now.isoformat()},
        "claims": [],
        "made_at": now.isoformat(),
        "frontier_says": {"0": "9007199254740993"},
    }
    return recovery_finish(
        recovery,
        outcome=outcome,
        says="Done.",
        actor="worker",
        now=now,
        certificate=certificate,
        certificate_digest="x",
        intent=intent,
    )
