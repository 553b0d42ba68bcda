"""Following a recovery to its outcome, for `redrive` and `recovery`."""

from __future__ import annotations

from typing import Any

from recovery_api.domain.headroom.evidence import exit_code_read
from recovery_api.management.base import UNKNOWN, Shown
from recovery_api.management.lines import recovery_lines
from recovery_api.management.waiting import intent_await, intent_problem, is_waiting
from recovery_api.models import LIVE_STATES, Recovery
from recovery_api.rows import recovery_as_row
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.recoveries import recovery_get


def recovery_shown(recovery: Recovery) -> Shown:
    """Exits as the table of outcomes has it; 3 while it has not ended, and once its certificate's evidence has expired."""
    now = now_get()
    row = recovery_as_row(recovery, now)
    until = recovery.certificate_evidence_until
    code = exit_code_read(recovery.outcome, until, now) if recovery.outcome else UNKNOWN
    return Shown(row, recovery_lines(row), code)


def recovery_follow(recovery: Recovery, options: dict[str, Any], stderr: Any) -> Shown:
    """The recovery as it stands, after waiting for its live intent where that is asked."""
    follow = f"Look again: manage.py recovery {recovery.id}"
    live = recovery.intents.filter(state__in=LIVE_STATES).first()
    if live is None or not is_waiting(options):
        shown = recovery_shown(recovery_get(recovery.id))
        return Shown(shown.body, [*shown.lines, follow] if live else shown.lines, shown.code)
    ended = intent_await(live, options, stderr)
    shown = recovery_shown(recovery_get(recovery.id))
    if (problem := intent_problem(ended, follow)) is not None:
        return Shown({**shown.body, "error": ended.error}, [*shown.lines, *problem.lines], problem.code)
    return shown
