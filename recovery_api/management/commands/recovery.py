from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.management.lines import event_lines, recovery_lines
from recovery_api.management.recoveries import recovery_follow, recovery_shown
from recovery_api.management.waiting import wait_arguments
from recovery_api.models import Wanted
from recovery_api.rows import event_as_row, recovery_as_row
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.intents import intent_waiting
from recovery_api.selectors.recoveries import recovery_get, recovery_intent, timeline
from recovery_api.services.recoveries import recovery_settle_request, recovery_want

WANTED = {"stop": Wanted.STOP, "pause": Wanted.PAUSE, "resume": Wanted.RUN}


class Command(FencepostCommand):
    help = "One recovery: show it, its timeline, settle it from the sink, or ask it to pause, resume or stop."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("recovery", help="a recovery's id, or a pipeline for its newest")
        parser.add_argument(
            "what", nargs="?", default="show", choices=["show", "timeline", "settle", "stop", "pause", "resume"]
        )
        parser.add_argument("--reason", default="", help="why; needed to stop, pause or resume")
        wait_arguments(parser)

    def answer(self, now: datetime, **options: Any) -> Shown:
        recovery = recovery_get(options["recovery"])
        what = options["what"]
        if what == "show":
            return recovery_follow(recovery, options, self.stderr)
        if what == "timeline":
            events = [event_as_row(event) for event in timeline(recovery=recovery)]
            return Shown({"recovery": str(recovery.id), "timeline": events}, event_lines(events))
        if what == "settle":
            recovery_settle_request(recovery, actor=options["actor"], now=now, wake=not options["here"])
            return recovery_follow(recovery, options, self.stderr)
        wanted = recovery_want(recovery, WANTED[what], actor=options["actor"], now=now, reason=options["reason"])
        row = recovery_as_row(wanted, now_get())
        if wanted.outcome:
            return recovery_shown(wanted)
        lines = [*recovery_lines(row), f"Asked to {what}. Look again: manage.py recovery {wanted.id}"]
        live = recovery_intent(wanted)
        if live is not None and (waiting := intent_waiting(live, now)) is not None and waiting.is_alone:
            lines.append(f"{waiting.says} {waiting.remedy}")
        return Shown(row, lines)
