"""An audit as a command asks for it: queued, or waited for and shown."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from recovery_api.management.base import UNKNOWN, Shown
from recovery_api.management.lines import audit_lines
from recovery_api.management.waiting import intent_await, intent_problem, is_waiting
from recovery_api.models import Pipeline
from recovery_api.rows import audit_as_row, intent_as_row
from recovery_api.selectors.audits import audit_get
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.findings_named import rows_named
from recovery_api.services.audits import audit_request


def audit_ask(pipeline: Pipeline, now: datetime, options: dict[str, Any], stderr: Any, **asked: Any) -> Shown:
    """What a command shows of an audit. `options`: actor, wait, here and timeout; `asked`: frontier and is_full."""
    intent = audit_request(pipeline, actor=options["actor"], now=now, wake=not options["here"], **asked)
    follow = f"Look again: manage.py intents wait {intent.id}"
    if not is_waiting(options):
        says = f"An equal audit is queued already and not begun: this one joined it, {intent.id}."
        says = says if intent.is_joined else f"Audit queued as {intent.id}."
        return Shown(intent_as_row(intent), [says, follow], UNKNOWN)
    if intent.is_joined:
        stderr.write(f"An equal audit was queued already and not begun; waiting for that one, {intent.id}.")
    ended = intent_await(intent, options, stderr)
    if (problem := intent_problem(ended, follow)) is not None:
        return problem
    return audit_shown(ended.result["audit"])


def audit_shown(audit_id: str) -> Shown:
    audit = audit_get(audit_id)
    row = audit_as_row(audit, now_get())
    row["findings"] = rows_named(audit.pipeline, audit.findings)
    return Shown(row, audit_lines(row), row["exit_code"])
