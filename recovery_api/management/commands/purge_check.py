from __future__ import annotations

import threading
import time
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.purging import Answer
from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.management.lines import purge_lines
from recovery_api.purge_rows import purge_as_row
from recovery_api.selectors.ends import source_get
from recovery_api.selectors.purging import below_check, purge_check

ASKED_EVERY_SECONDS = 10.0


class Command(FencepostCommand):
    help = (
        "May what lies at or below a coordinate be purged at a source? Exits 0: it may; 1: something forbids it; 3: the"
        " evidence does not reach. Deletes nothing: it prints a transaction for a person to run."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("source")
        parser.add_argument(
            "--below", required=True, metavar="COORDINATE", help="in the source's spelling; it is meant, too"
        )
        parser.add_argument(
            "--wait-until-safe", action="store_true", help="ask again until it may; others audit meanwhile"
        )
        parser.add_argument(
            "--timeout", type=float, metavar="SECONDS", help="stop waiting after so long, and exit by the last answer"
        )

        parser.add_argument(
            "--sql",
            action="store_true",
            help="print the transaction alone, to be piped into psql; nothing where none is",
        )

    def answer(self, now: datetime, **options: Any) -> Shown:
        source, below = source_get(options["source"]), below_check(options["below"])
        began, said = time.monotonic(), ""
        while True:
            found = purge_check(source, below)
            left = None if options["timeout"] is None else options["timeout"] - (time.monotonic() - began)
            if found.answer is Answer.YES or not options["wait_until_safe"] or (left is not None and left <= 0):
                row = purge_as_row(found)
                if options["sql"]:
                    lines = [lane["transaction"] for lane in row["lanes"] if lane["transaction"]]
                    return Shown(row, lines, found.answer.exit_code, is_verbatim=True)
                return Shown(row, purge_lines(row), found.answer.exit_code)
            grounds = [f"{one.pipeline}: {one.says}" for lane in found.lanes for one in lane.said]
            if (says := " ".join(grounds)) != said:
                said = says
                self.stderr.write(f"Not yet. {says}")
            threading.Event().wait(ASKED_EVERY_SECONDS if left is None else min(ASKED_EVERY_SECONDS, left))
