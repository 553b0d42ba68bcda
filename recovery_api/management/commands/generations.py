from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.commands import command_line
from recovery_api.management.base import DONE, UNKNOWN, FencepostCommand, Shown
from recovery_api.management.generations import generations_body, generations_lines
from recovery_api.management.waiting import intent_await, intent_problem, is_waiting, wait_arguments
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.registry import sink_reading_latest
from recovery_api.services.sink_jobs import sink_read_request


class Command(FencepostCommand):
    help = (
        "Generations and claims of a pipeline: who took each, when, what became of it, and where the fence stands. With "
        "--wait or --here the sink is read now; without, what it said last is shown with its age."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("pipeline")
        wait_arguments(parser, seconds=60)

    def answer(self, now: datetime, **options: Any) -> Shown:
        pipeline = pipeline_get(options["pipeline"])
        sink = pipeline.fired_into
        reading = sink_reading_latest(sink)
        if is_waiting(options):
            intent = sink_read_request(sink, actor=options["actor"], now=now, wake=not options["here"])
            reading = intent_await(intent, options, self.stderr)
            follow = f"Look again: {command_line('generations', pipeline.name)}"
            if (problem := intent_problem(reading, follow)) is not None:
                return problem
        sink.refresh_from_db()
        body = generations_body(pipeline, reading, now)
        return Shown(body, generations_lines(body), UNKNOWN if body["is_divergent"] else DONE)
