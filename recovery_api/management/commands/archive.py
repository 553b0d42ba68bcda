from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.archive_rows import archive_as_row, archive_lines, import_lines
from recovery_api.management.base import FencepostCommand, Shown, subcommand_add
from recovery_api.management.waiting import intent_await, intent_problem, wait_arguments
from recovery_api.models import Pipeline
from recovery_api.rows import intent_as_row
from recovery_api.selectors.ends import pipeline_get
from recovery_api.services.archives import archive_import_request


class Command(FencepostCommand):
    help = "What audits kept of a source, contents included, so that what it drops can still be sent."

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(dest="what", required=True)
        shown = subcommand_add(subparsers, "show", "what the archive holds, until when, and what is missing")
        shown.add_argument("pipeline")
        read = subcommand_add(subparsers, "import", "register files of another archive: Parquet, JSON lines, CSV")
        read.add_argument("pipeline")
        read.add_argument(
            "files", nargs="+", help="each below a folder that FENCEPOST_ARCHIVE_FOLDERS names where the worker runs"
        )
        wait_arguments(read)

    def answer(self, now: datetime, **options: Any) -> Shown:
        pipeline = pipeline_get(options["pipeline"])
        if options["what"] == "import":
            return self._import(pipeline, now, options)
        row = archive_as_row(pipeline)
        return Shown(row, archive_lines(row))

    def _import(self, pipeline: Pipeline, now: datetime, options: dict[str, Any]) -> Shown:
        files = [str(Path(one).absolute()) for one in options["files"]]
        intent = archive_import_request(pipeline, files, actor=options["actor"], now=now, wake=not options["here"])
        if not (options["wait"] or options["here"]):
            return Shown(
                {"intent": intent_as_row(intent)}, [f"A worker reads them: manage.py intents show {intent.id}"]
            )
        intent = intent_await(intent, options, self.stderr)
        follow = f"Look again: manage.py intents show {intent.id}"
        if (problem := intent_problem(intent, follow)) is not None:
            return problem
        result = intent.result or {}
        return Shown(result, import_lines(result))
