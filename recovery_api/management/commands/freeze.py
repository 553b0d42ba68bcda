from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.freeze_rows import freeze_as_row, freeze_lines
from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.management.freezes import frozen_what, what_arguments
from recovery_api.selectors.freezes import freezes_standing
from recovery_api.services.freezes import freeze_set


class Command(FencepostCommand):
    help = (
        "Send nothing for a pipeline, or for any (--everything), until `unfreeze`; audits go on. Without arguments: what is"
        " frozen."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        what_arguments(parser)

    def answer(self, now: datetime, **options: Any) -> Shown:
        if not options["pipeline"] and not options["everything"]:
            rows = [freeze_as_row(one) for one in freezes_standing()]
            return Shown({"freezes": rows}, freeze_lines(rows) or ["Nothing is frozen."])
        pipeline = frozen_what(options)
        row = freeze_as_row(freeze_set(pipeline, options["reason"], actor=options["actor"], now=now))
        return Shown(
            row, [*freeze_lines([row]), "Audits go on; nothing is sent. A recovery that runs holds at its next step."]
        )
