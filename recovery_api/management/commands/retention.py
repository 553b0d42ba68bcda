from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.retention_rows import retention_as_row, retention_lines
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get


class Command(FencepostCommand):
    help = (
        "For how long evidence, rows and history of a pipeline are kept, and which parts are pinned by what. Changes"
        " nothing: what is due goes by the workers' sweep."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("pipeline")

    def answer(self, now: datetime, **options: Any) -> Shown:
        row = retention_as_row(pipeline_get(options["pipeline"]), now_get())
        return Shown(row, retention_lines(row))
