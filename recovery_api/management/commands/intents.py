from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.management.auditing import audit_shown
from recovery_api.management.base import DONE, FencepostCommand, Shown, subcommand_add
from recovery_api.management.commands.image import image_shown
from recovery_api.management.commands.plan import plan_shown
from recovery_api.management.recoveries import recovery_shown
from recovery_api.management.waiting import intent_await, intent_problem, progress_line, wait_arguments
from recovery_api.models import Intent
from recovery_api.rows import intent_as_row
from recovery_api.selectors.intents import intent_get, intent_list
from recovery_api.selectors.recoveries import recovery_get
from recovery_api.services.intents import intent_withdraw

SHOWN = 20


class Command(FencepostCommand):
    help = "Work that was asked for: list what is live, show one, wait for one, cancel one nobody took."

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(dest="what", required=True)
        listed = subcommand_add(subparsers, "list", f"what is live, or the last {SHOWN}")
        listed.add_argument("--all", action="store_true", help=f"the last {SHOWN}, ended ones too")
        for name, says in (("show", "one"), ("wait", "wait for one"), ("cancel", "withdraw one nobody took")):
            one = subcommand_add(subparsers, name, says)
            one.add_argument("intent")
            if name == "wait":
                wait_arguments(one)

    def answer(self, now: datetime, **options: Any) -> Shown:
        if options["what"] == "list":
            rows = [intent_as_row(one) for one in intent_list(is_live=not options["all"])[:SHOWN]]
            return Shown({"intents": rows}, [_line(row) for row in rows] or ["Nothing is queued or running."])
        intent = intent_get(options["intent"])
        if options["what"] == "cancel":
            intent_withdraw(intent, actor=options["actor"], now=now)
            row = intent_as_row(intent_get(intent.id))
            return Shown(row, [_line(row)])
        if options["what"] == "show":
            row = intent_as_row(intent)
            return Shown(row, [_line(row)])
        return _ended(intent_await(intent, options, self.stderr))


def _ended(intent: Intent) -> Shown:
    """What the intent was for, once it is done."""
    if (problem := intent_problem(intent, f"Look again: manage.py intents wait {intent.id}")) is not None:
        return problem
    if intent.recovery_id:
        return recovery_shown(recovery_get(intent.recovery_id))
    if intent.plan_id:
        return plan_shown(str(intent.plan_id))
    if audit_id := (intent.result or {}).get("audit"):
        return audit_shown(audit_id)
    if image_id := (intent.result or {}).get("image"):
        return image_shown(image_id)
    row = intent_as_row(intent)
    return Shown(row, [_line(row)], DONE)


def _line(row: dict[str, Any]) -> str:
    about = f" {row['pipeline']}" if row["pipeline"] else ""
    more = f", {progress_line(row['progress'])}" if row["progress"] and row["state"] == "taken" else ""
    by = f" by {row['taken_by']}" if row["state"] == "taken" else ""
    error = f": {row['error']['text']}" if row["error"] and row["state"] != "done" else ""
    return f"{row['intent']}  {row['action'].replace('_', ' ')}{about}  {row['state']}{by}{more}{error}"
