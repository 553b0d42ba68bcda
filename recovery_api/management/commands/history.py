from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.history import FIRST_SPAN, SPANS
from recovery_api.history_rows import history_as_row, history_lines
from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.history import history_get


class Command(FencepostCommand):
    help = (
        "Which status held when, and how much was owed and waited, as audits saw it. What no audit covers is not observed."
        " Reads the control database alone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("pipeline")
        parser.add_argument(
            "--span", choices=list(SPANS), default=FIRST_SPAN, help=f"how far back (default {FIRST_SPAN})"
        )

    def answer(self, now: datetime, **options: Any) -> Shown:
        row = history_as_row(history_get(pipeline_get(options["pipeline"]), options["span"], now_get()))
        return Shown(row, history_lines(row))
