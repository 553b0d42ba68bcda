"""A worker on paper: takes an intent and records what `ANSWERS` says, through the services a real one uses."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from recovery_api.domain.errors import FencepostError, TransientError
from recovery_api.models import Intent, IntentAction, RecoveryOutcome
from recovery_api.services.audits import audit_record
from recovery_api.services.ends import connection_test_record
from recovery_api.services.intents import intent_fail, intent_progress, intent_release, intent_take
from recovery_api.services.plans import plan_record, plan_start
from recovery_api.services.recoveries import recovery_finish
from tests.integration.control.conftest import FRONTIER

USABLE = {"is_usable": True, "facts": {"rows": 3}, "problems": [], "weaknesses": []}
ANSWERS: dict[str, Any] = {}


def intent_run(intent_id: str, taken_by: str) -> bool:
    intent = intent_take(intent_id, taken_by, timezone.now())
    if intent is None:
        return False
    intent_progress(intent, {"step": "reading", "done": 3, "total": 3, "unit": "events"}, timezone.now())
    answer = ANSWERS.get(intent.action)
    if isinstance(answer, TransientError):
        intent_release(intent, answer.as_row(), timezone.now())
    elif isinstance(answer, FencepostError):
        intent_fail(intent, answer.as_row(), timezone.now())
    else:
        _record(intent, answer or {})
    return True


def _record(intent: Intent, answer: dict[str, Any]) -> None:
    now = timezone.now()
    match intent.action:
        case IntentAction.CONNECTION_TEST:
            connection_test_record(intent, {**USABLE, **answer}, now)
        case IntentAction.AUDIT:
            given = {
                "status": "owed",
                "exit_code": 1,
                "lost_count": 3,
                "says": "3 lost.",
                "frontier": FRONTIER,
                **answer,
            }
            audit_record(intent.pipeline, now=now, started_at=now, is_full=True, intent=intent, **given)
        case IntentAction.PLAN:
            plan_start(intent.plan)
            given = {"batch_count": 3, "batch": {"provably missing": "3"}, "conditions": [], **answer}
            plan_record(intent.plan, digest="d1", frontier=FRONTIER, says="Owed.", now=now, intent=intent, **given)
        case _:
            given = {"outcome": RecoveryOutcome.EXACTLY_ONCE, "landed_count": 3, **answer}
            recovery_finish(intent.recovery, says="Done.", actor="worker", now=now, intent=intent, **given)
