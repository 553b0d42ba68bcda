from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.doctor import Checked, exit_code, lines
from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.doctor import installation_checked, pipeline_checked
from recovery_api.selectors.ends import pipeline_get, pipeline_list


class Command(FencepostCommand):
    help = (
        "What the installation and a pipeline need, each lack with its remedy. Opens no source and no sink. Exits 0: nothing"
        " lacks; 1: something does; 3: something could not be looked at. Without a pipeline: every one."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("pipeline", nargs="?", help="without it: the installation, and every pipeline")

    def answer(self, now: datetime, **options: Any) -> Shown:
        now = now_get()
        pipelines = [pipeline_get(options["pipeline"])] if options["pipeline"] else list(pipeline_list())
        found: dict[str, list[Checked]] = {one.name: pipeline_checked(one, now) for one in pipelines}
        whole = installation_checked(now)
        every = [*whole, *(check for checks in found.values() for check in checks)]
        code = exit_code(every)
        body = {
            "exit_code": code,
            "installation": [one.as_row() for one in whole],
            "pipelines": {name: [one.as_row() for one in checks] for name, checks in found.items()},
        }
        told = [*lines("Fencepost", whole)]
        for name, checks in found.items():
            told += lines(name, checks)
        lacking = sum(one.word == "lacks" for one in every)
        told.append(
            f"{lacking} lack, {sum(one.word == 'not known' for one in every)} not known, of {len(every)} checks."
        )
        return Shown(body, told, code)
