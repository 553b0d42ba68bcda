from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.errors import BadInput
from recovery_api.freeze_rows import freeze_as_row
from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.management.freezes import frozen_what, what_arguments
from recovery_api.services.freezes import freeze_lift


class Command(FencepostCommand):
    help = "Lift the freeze of a pipeline, or of every pipeline (--everything)."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        what_arguments(parser)

    def answer(self, now: datetime, **options: Any) -> Shown:
        if not options["pipeline"] and not options["everything"]:
            raise BadInput(
                "pipeline", "is missing", "Name one, or say --everything. See what is frozen: manage.py freeze."
            )
        lifted = freeze_lift(frozen_what(options), options["reason"], actor=options["actor"], now=now)
        return Shown(freeze_as_row(lifted), [f"The freeze of {lifted.what} is lifted. What held goes on by itself."])
