from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.management.auditing import audit_ask
from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.management.waiting import wait_arguments
from recovery_api.selectors.ends import pipeline_get


class Command(FencepostCommand):
    help = "Judge a pipeline: what is owed, what was doubled or came early. Reads only. Exits as judge does."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("pipeline")
        parser.add_argument("--frontier", help="judge at this coordinate (left out: at the safe frontier)")
        parser.add_argument(
            "--full", action="store_true", help="take what both ends hold now as the new base of what was seen"
        )
        wait_arguments(parser)

    def answer(self, now: datetime, **options: Any) -> Shown:
        pipeline = pipeline_get(options["pipeline"])
        asked = {"frontier": options["frontier"], "is_full": options["full"]}
        return audit_ask(pipeline, now, options, self.stderr, **asked)
