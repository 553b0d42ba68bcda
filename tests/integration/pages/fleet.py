"""Pipelines to look at: registered through services, their verdicts recorded as a worker would."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from recovery_api.models import Audit, Pipeline, Plan
from recovery_api.services.audits import audit_record
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.plans import plan_record, plan_request

REPORT = {"is_usable": True, "facts": {"table": "outbox"}, "problems": [], "weaknesses": [], "capability": None}
SOURCE = {"connection": "env:SOURCE", "table": "outbox", "coordinate": ["id"]}
FRONTIER = {"0": {"position": "9007199254740993", "ordinal": "0"}}
EXIT = {"exactly_once": 0, "exactly_once_given": 4, "complete_by_identity": 4, "unknown": 3}


def pipeline_make(name: str, now: datetime, **more: Any) -> Pipeline:
    source = source_create(f"source {name}"[:200], "postgresql_outbox", SOURCE, actor="root", now=now, report=REPORT)
    sink = sink_create(
        f"sink {name}"[:200], "postgresql_kit", {"connection": "env:SINK"}, actor="root", now=now, report=REPORT
    )
    return pipeline_create(name, source, sink, actor="root", now=now, **more)


def audit_make(pipeline: Pipeline, status: str, now: datetime, **more: Any) -> Audit:
    """An audit of one lane at a frontier that a browser's numbers cannot hold."""
    lost = 3 if status in ("owed", "acknowledged") else 0
    fields: dict[str, Any] = {
        "says": f"{status} at 9007199254740993.",
        "frontier": FRONTIER,
        "lost_count": lost,
        "acknowledged_count": lost if status == "acknowledged" else 0,
        "duplicate_count": 1 if status == "hazard" else 0,
        "givens": ["a grace of 30 s"] if status == "exactly_once_given" else [],
        "obligation_count": 10,
        "accepted_count": 7,
        "lanes": {
            "0": {
                "status": status,
                "frontier_says": "9007199254740993",
                "head_says": "9007199254740999",
                "lowest_says": "1",
                "accepted_to_says": "9007199254740990",
                "above_frontier_owed": "2",
                "safe_frontier": {
                    "says": "9007199254740995",
                    "ground": "share lock",
                    "because": "No writer is open.",
                    "waits_for": ["<i>session</i>"],
                },
            }
        },
        "findings": [
            {
                "finding": "lost",
                "lane": "0",
                "position": "9007199254740991",
                "ordinal": "0",
                "coordinate": "9007199254740991",
            }
        ]
        if lost
        else [],
    } | more
    return audit_record(
        pipeline,
        status=status,
        exit_code=EXIT.get(status, 1),
        now=now,
        is_full=True,
        **{"started_at": now - timedelta(seconds=1), **fields},
    )


def plan_make(pipeline: Pipeline, now: datetime, author: str = "ada") -> Plan:
    plan, _ = plan_request(pipeline, actor=author, now=now, wake=False)
    return plan_record(
        plan,
        digest="d" * 64,
        frontier=FRONTIER,
        conditions=[],
        batch={"provably missing": "3"},
        batch_count=3,
        says="3 events to send.",
        now=now,
    )
