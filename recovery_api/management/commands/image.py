from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.errors import NotFound
from recovery_api.image_rows import image_as_row, image_lines
from recovery_api.management.base import UNKNOWN, FencepostCommand, Shown
from recovery_api.management.waiting import intent_await, intent_problem, is_waiting, wait_arguments
from recovery_api.rows import intent_as_row
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.images import image_get, image_newest
from recovery_api.services.images import image_request


class Command(FencepostCommand):
    help = (
        "Compare the copy of state at a pipeline's sink with the committed history, key by key. Reads only, and says nothing of"
        " what was delivered. Exits 0: mismatch-free at f; 1: a key differs; 3: unknown; 4: mismatch-free, given what is named."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("pipeline")
        parser.add_argument("--frontier", help="compare at this coordinate (left out: at the safe frontier)")
        parser.add_argument(
            "--keep-base",
            action="store_true",
            help="where the history is whole, keep what it gives each key, so that a later comparison needs no older event",
        )
        parser.add_argument("--show", action="store_true", help="show the newest comparison; make none")
        wait_arguments(parser)

    def answer(self, now: datetime, **options: Any) -> Shown:
        pipeline = pipeline_get(options["pipeline"])
        if options["show"]:
            newest = image_newest(pipeline)
            if newest is None:
                raise NotFound("An image audit", f"pipeline {pipeline.name}", f"manage.py image {pipeline.name} --wait")
            return image_shown(str(newest.id))
        intent = image_request(
            pipeline,
            actor=options["actor"],
            now=now,
            frontier=options["frontier"],
            keeps_base=options["keep_base"],
            wake=not options["here"],
        )
        follow = f"Look again: manage.py intents wait {intent.id}"
        if not is_waiting(options):
            return Shown(intent_as_row(intent), [f"Comparing queued as {intent.id}.", follow], UNKNOWN)
        ended = intent_await(intent, options, self.stderr)
        if (problem := intent_problem(ended, follow)) is not None:
            return problem
        return image_shown(ended.result["image"])


def image_shown(image_id: str) -> Shown:
    """One image audit, with its own exit code."""
    image = image_get(image_id)
    row = image_as_row(image)
    return Shown(row, image_lines(row), image.exit_code)
