from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.management.base import UNKNOWN, FencepostCommand, Shown
from recovery_api.management.lines import audit_lines
from recovery_api.management.waiting import intent_await, intent_problem, is_waiting, wait_arguments
from recovery_api.rows import audit_as_row, intent_as_row
from recovery_api.selectors.audits import audit_get
from recovery_api.selectors.ends import pipeline_get
from recovery_api.services.audits import audit_request


class Command(FencepostCommand):
    help = "Judge a pipeline: what is owed, what was doubled or came early. Reads only. Exits as judge does."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("pipeline")
        parser.add_argument("--frontier", help="judge at this coordinate (left out: at the safe frontier)")
        parser.add_argument("--full", action="store_true", help="read the whole history (every audit does, as yet)")
        wait_arguments(parser)

    def answer(self, now: datetime, **options: Any) -> Shown:
        intent = audit_request(
            pipeline_get(options["pipeline"]),
            actor=options["actor"],
            now=now,
            frontier=options["frontier"],
            is_full=options["full"],
            wake=not options["here"],
        )
        follow = f"Look again: manage.py intents wait {intent.id}"
        if not is_waiting(options):
            says = f"An equal audit is queued already and not begun: this one joined it, {intent.id}."
            says = says if intent.is_joined else f"Audit queued as {intent.id}."
            return Shown(intent_as_row(intent), [says, follow], UNKNOWN)
        if intent.is_joined:
            self.stderr.write(f"An equal audit was queued already and not begun; waiting for that one, {intent.id}.")
        ended = intent_await(intent, options, self.stderr)
        if (problem := intent_problem(ended, follow)) is not None:
            return problem
        return audit_shown(ended.result["audit"])


def audit_shown(audit_id: str) -> Shown:
    audit = audit_get(audit_id)
    row = audit_as_row(audit)
    return Shown(row, audit_lines(row), audit.exit_code)
