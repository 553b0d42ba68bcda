from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.headroom.live import Standing
from recovery_api.headroom_rows import headroom_as_row
from recovery_api.management.base import UNKNOWN, FencepostCommand, Shown
from recovery_api.management.headroom_lines import headroom_lines
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get, pipeline_list
from recovery_api.selectors.headroom import fleet_headroom


class Command(FencepostCommand):
    help = (
        "How long may a recovery still wait? Exits 0: there is time to decide; 1: low or gone; 3: unknown. Of several"
        " pipelines, as of the worst. Reads the control database alone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("pipeline", nargs="?", help="without it: every pipeline, worst first")

    def answer(self, now: datetime, **options: Any) -> Shown:
        pipelines = [pipeline_get(options["pipeline"])] if options["pipeline"] else list(pipeline_list())
        found = fleet_headroom(pipelines, now_get())
        worst = list(Standing)
        ordered = sorted(found.values(), key=lambda one: (worst.index(one.found.standing), one.name))
        rows = [headroom_as_row(one) for one in ordered]
        if options["pipeline"]:
            return Shown(rows[0], headroom_lines(rows[0]), rows[0]["exit_code"])
        lines = [line for row in rows for line in headroom_lines(row, is_whole=False)]
        code = ordered[0].found.standing.exit_code if ordered else UNKNOWN
        return Shown({"headroom": rows}, lines or ["No pipeline is registered."], code)
