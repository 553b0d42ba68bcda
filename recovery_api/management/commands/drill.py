from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.commands import command_line
from recovery_api.domain.drills import DrillName
from recovery_api.domain.errors import BadInput
from recovery_api.management.base import DONE, OWED, UNKNOWN, FencepostCommand, Shown
from recovery_api.management.lines import drill_lines
from recovery_api.management.waiting import intent_await, intent_problem, is_waiting, wait_arguments
from recovery_api.models import DrillState
from recovery_api.rows import drill_as_row
from recovery_api.selectors.drills import drill_get, drill_list
from recovery_api.selectors.ends import sink_get
from recovery_api.services.drills import drill_request, drill_schedule

SHOWN = 20
CODES = {DrillState.PASSED: DONE, DrillState.NOT_APPLICABLE: DONE, DrillState.FAILED: OWED}


class Command(FencepostCommand):
    help = (
        "Drill a sink: prove what its recoveries rest on, in a namespace of its own, with synthetic events. It leaves nothing behind and "
        "does not touch the pipeline's record. Exits 0 passed or not applicable, 1 failed, 2 bad input, 3 unknown."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("sink")
        parser.add_argument(
            "--only",
            action="append",
            default=[],
            metavar="NAME",
            help=f"one of: {', '.join(DrillName)}; may be repeated",
        )
        parser.add_argument("--history", action="store_true", help=f"show the last {SHOWN} runs; drill nothing")
        parser.add_argument(
            "--every", type=int, metavar="HOURS", help="drill it by schedule from now on; 0: not any more"
        )
        wait_arguments(parser)

    def answer(self, now: datetime, **options: Any) -> Shown:
        sink = sink_get(options["sink"])
        if options["every"] is not None:
            if options["only"] or options["history"]:
                raise BadInput("--every", "stands beside --only or --history", "Give one of them.")
            drill_schedule(sink, options["every"] or None, actor=options["actor"], now=now)
            says = f"every {options['every']} hours" if options["every"] else "only when asked"
            return Shown({"sink": sink.name, "drill_every_hours": sink.drill_every_hours}, [f"{sink.name}: {says}."])
        if options["history"]:
            rows = [drill_as_row(one) for one in drill_list(sink)[:SHOWN]]
            lines = [f"{row['requested_at'][:19]}Z  {row['state'].replace('_', ' ')}  {row['says']}" for row in rows]
            return Shown({"sink": sink.name, "drills": rows}, lines or [f"{sink.name} was never drilled."])
        drill, intent = drill_request(
            sink, actor=options["actor"], now=now, names=options["only"], wake=not options["here"]
        )
        follow = f"Look again: {command_line('drill', sink.name, '--history')}"
        if not is_waiting(options):
            return Shown(drill_as_row(drill), [f"Drill queued as {intent.id}.", follow], UNKNOWN)
        ended = intent_await(intent, options, self.stderr)
        if (problem := intent_problem(ended, follow)) is not None:
            return problem
        drill = drill_get(drill.id)
        row = drill_as_row(drill)
        return Shown(row, drill_lines(row), CODES.get(DrillState(drill.state), UNKNOWN))
