from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.management.base import DONE, UNKNOWN, FencepostCommand, Shown
from recovery_api.management.lines import schedules_lines
from recovery_api.rows import status_as_row
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.fleet import fleet_status


class Command(FencepostCommand):
    help = "When each pipeline is audited by itself: how often, when last, when next, and which are overdue."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--overdue", action="store_true", help="only those whose audit is overdue; exits 3 if any is"
        )

    def answer(self, now: datetime, **options: Any) -> Shown:
        rows = [status_as_row(status) for status in fleet_status(now_get())]
        if not options["overdue"]:
            return Shown({"schedules": rows}, schedules_lines(rows))
        late = [row for row in rows if row["schedule"]["overdue_since"]]
        lines = schedules_lines(late) if late else ["No audit is overdue."]
        return Shown({"schedules": late}, lines, UNKNOWN if late else DONE)
