"""`manage.py judge`: the verdict on two exports."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.errors import BadInput, FencepostError
from recovery_api.domain.identity import BY_COORDINATE, BY_EVENT_ID
from recovery_api.domain.visible import visible

SMALL_BYTES = 64 << 20
"""Below this the answer takes seconds at most, and half a second of imports is felt."""

ENDS = ("history", "accepted", "journal", "delivered")


class Command(BaseCommand):
    """Exit 0 exactly once at f, 1 owed or hazard, 2 input that cannot serve, 3 unknown, 4 given what is named."""

    help = (
        "What is lost, premature or doubled, from an export of the committed history and one of the acceptance record: "
        "JSON lines or a list, CSV, COPY, psql's table, Parquet, dumps of topics by kcat and the console consumer, Debezium's "
        "events; compressed, in folders. What a file is taken for is said first. Own columns are coordinate, op, key, value "
        "(JSON), value_text (plain text) or digest, and generation, head on the record; others by --map or --preset. "
        "Exit 0 exactly once at f, 1 owed or hazard, 2 bad input, 3 unknown, 4 exactly once or complete given what is named."
    )
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--history", type=Path, required=True, help="the committed history")
        parser.add_argument("--accepted", type=Path, required=True, help="the acceptance record, in its order")
        parser.add_argument(
            "--frontier",
            action="append",
            required=True,
            help="judge up to this coordinate; LANE=COORDINATE for several lanes; `end`: all that the history holds",
        )
        parser.add_argument(
            "--journal", type=Path, help="the history with nothing dropped, where the source dropped some"
        )
        scope = parser.add_mutually_exclusive_group()
        scope.add_argument(
            "--scope", help="the keys owed, with commas between; empty owes nothing; absent owes every key"
        )
        scope.add_argument("--scope-file", type=Path, help="the keys owed: one a line, or a JSON list")
        parser.add_argument(
            "--floor", action="append", help="the oldest coordinate that the source still holds; LANE=COORDINATE"
        )
        parser.add_argument("--omissions", type=Path, help="coordinates taken out of the obligation on purpose")
        parser.add_argument("--delivered", type=Path, help="the downstream history: compares the image of every key")
        parser.add_argument("--base", type=Path, help="a JSON object: what each key held before the history")
        parser.add_argument("--spelling", choices=[spelling.value for spelling in Spelling], help="of every coordinate")
        parser.add_argument("--engine", choices=["auto", "arrow", "spark"], default="auto")
        parser.add_argument(
            "--identity",
            choices=[BY_COORDINATE, BY_EVENT_ID],
            default=BY_COORDINATE,
            help="match entries to events by event id, where the record's coordinates are the sink's own",
        )
        parser.add_argument(
            "--trimmed", type=int, default=0, metavar="N", help="entries that the record has lost from its beginning"
        )
        self._reading_arguments(parser)
        parser.add_argument(
            "--json", action="store_true", help="the verdict's keys as JSON; what it rests on to stderr"
        )

    def _reading_arguments(self, parser: CommandParser) -> None:
        """How a file is read; with `history:`, `accepted:`, … before it of that one only."""
        one = parser.add_argument_group("how files are read", "[END:] is history:, accepted:, journal: or delivered:")
        one.add_argument(
            "--format", action="append", default=[], metavar="[END:]FORMAT", help="auto, or kcat:FORMAT, …"
        )
        one.add_argument("--preset", action="append", default=[], metavar="[END:]NAME", help="debezium, masstransit, …")
        one.add_argument(
            "--map",
            action="append",
            default=[],
            metavar="[END:]FIELD=PATH",
            help="where a field lies: a column, a->b within it, or =text, a constant",
        )
        one.add_argument(
            "--type",
            action="append",
            default=[],
            metavar="[END:]MEMBER=TYPE",
            help="what a member of the content is: decimal:2, bytes, millis, micros, nanos, date, timestamp, json",
        )
        one.add_argument(
            "--null", action="append", default=[], metavar="[END:]TEXT", help="what stands for null in cells"
        )
        one.add_argument(
            "--columns", action="append", default=[], metavar="[END:]A,B,…", help="of a file without a header"
        )
        one.add_argument(
            "--table",
            action="append",
            default=[],
            metavar="[END:]TABLE",
            help="which table of several; again, or with *, for the leaves of one that is partitioned",
        )
        one.add_argument(
            "--prefix",
            action="append",
            default=[],
            metavar="[END:]PREFIX",
            help="whose logical decoding messages are the events; again for another one",
        )
        one.add_argument(
            "--non-transactional",
            action="append",
            default=[],
            metavar="[END:]committed",
            help="take messages that no transaction wrote as committed events",
        )
        one.add_argument(
            "--placeholder",
            action="append",
            default=[],
            metavar="[END:]TEXT",
            help="Debezium's for what it did not see",
        )

    def handle(self, **options: Any) -> None:
        try:
            judgement = self._judge(options)
        except FencepostError as error:
            if options["json"]:
                self.stdout.write(json.dumps({"error": error.as_row()}))
            self.stderr.write(visible(str(error)))
            sys.exit(2 if isinstance(error, BadInput) else 3)
        from workers.judgement_report import answer_of, grounds_of, report_of

        if options["json"]:
            from workers.evidence.canonical import json_written

            self.stdout.write(json_written(answer_of(judgement)))
            for line in grounds_of(judgement):
                self.stderr.write(visible(line))
        else:
            self.stdout.write(visible("\n".join(report_of(judgement))))
        if judgement.exit_code:
            sys.exit(judgement.exit_code)

    def _judge(self, options: dict[str, Any]) -> Any:
        if getattr(self, "_called_from_command_line", False) and options["engine"] != "spark" and _is_small(options):
            from workers.evidence.without_pandas import leave_pandas_out

            leave_pandas_out()
        from workers.evidence.files import base_read, coordinates_read, keys_read
        from workers.judgement import JudgeRequest, judge
        from workers.reading_options import reading_of

        scope = options["scope"]
        if scope is not None:
            keys: list[str] | None = scope.split(",") if scope else []
        else:
            keys = keys_read(options["scope_file"]) if options["scope_file"] else None
        if options["trimmed"] < 0:
            raise BadInput("--trimmed", "is below zero", "Give how many entries are gone.")
        given = options["frontier"]
        return judge(
            JudgeRequest(
                history=options["history"],
                accepted=options["accepted"],
                frontier=[given] if isinstance(given, str) else given,
                journal=options["journal"],
                scope=keys,
                floor=options["floor"],
                omissions=coordinates_read(options["omissions"]) if options["omissions"] else (),
                delivered=options["delivered"],
                base=base_read(options["base"]) if options["base"] else None,
                spelling=Spelling(options["spelling"]) if options["spelling"] else None,
                engine=options["engine"],
                identity=options["identity"],
                trimmed=options["trimmed"],
                reading=reading_of({name: options[name] for name in _READING}, ENDS),
            )
        )


_READING = ("format", "preset", "map", "type", "null", "columns", "table", "prefix", "non_transactional", "placeholder")


def _is_small(options: dict[str, Any]) -> bool:
    """Whether nothing but an answer is made here: neither Spark nor its pandas is asked."""
    import os

    from workers.evidence.files.reading import size_of

    paths = [options[name] for name in ENDS if options[name]]
    return not os.environ.get("SPARK_REMOTE") or sum(map(size_of, paths)) < SMALL_BYTES
