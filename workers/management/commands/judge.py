"""`manage.py judge`: the verdict on two exports."""

from __future__ import annotations

import importlib.abc
import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.errors import BadInput, FencepostError
from recovery_api.domain.outcomes import OUTCOMES, Status
from recovery_api.domain.visible import visible

SHOWN = 20
SMALL_BYTES = 64 << 20
"""Below this the answer takes seconds at most, and half a second of imports is felt."""


class Command(BaseCommand):
    """Exit 0 exactly once at f, 1 owed or hazard, 2 input that cannot serve, 3 unknown."""

    help = (
        "What is lost, premature or doubled, from an export of the committed history and one of the acceptance record. "
        "Files are JSON lines, CSV or Parquet with columns coordinate, op, key, value (JSON), value_text (plain text) or "
        "digest, and generation, head on the record. Exit 0 exactly once at f, 1 owed or hazard, 2 bad input, 3 unknown."
    )
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--history", type=Path, required=True, help="the committed history")
        parser.add_argument("--accepted", type=Path, required=True, help="the acceptance record, in its order")
        parser.add_argument("--frontier", required=True, help="judge up to this coordinate")
        parser.add_argument(
            "--journal", type=Path, help="the history with nothing dropped, where the source dropped some"
        )
        scope = parser.add_mutually_exclusive_group()
        scope.add_argument(
            "--scope", help="the keys owed, with commas between; empty owes nothing; absent owes every key"
        )
        scope.add_argument("--scope-file", type=Path, help="the keys owed: one a line, or a JSON list")
        parser.add_argument("--floor", help="the oldest coordinate that the source still holds")
        parser.add_argument("--omissions", type=Path, help="coordinates taken out of the obligation on purpose")
        parser.add_argument("--delivered", type=Path, help="the downstream history: compares the image of every key")
        parser.add_argument("--base", type=Path, help="a JSON object: what each key held before the history")
        parser.add_argument("--spelling", choices=[spelling.value for spelling in Spelling], help="of every coordinate")
        parser.add_argument("--engine", choices=["auto", "arrow", "spark"], default="auto")
        parser.add_argument(
            "--json", action="store_true", help="the verdict's keys as JSON; what it rests on to stderr"
        )

    def handle(self, **options: Any) -> None:
        try:
            judgement = self._judge(options)
        except FencepostError as error:
            if options["json"]:
                self.stdout.write(json.dumps({"error": error.as_row()}))
            self.stderr.write(visible(str(error)))
            sys.exit(2 if isinstance(error, BadInput) else 3)
        if options["json"]:
            from workers.evidence.canonical import json_written

            self.stdout.write(json_written(judgement.answer))
            for line in _grounds(judgement):
                self.stderr.write(visible(line))
        else:
            self.stdout.write(visible("\n".join(_report(judgement))))
        if judgement.verdict.exit_code:
            sys.exit(judgement.verdict.exit_code)

    def _judge(self, options: dict[str, Any]) -> Any:
        paths = [options[name] for name in ("history", "accepted", "journal", "delivered") if options[name]]
        if getattr(self, "_called_from_command_line", False) and options["engine"] != "spark" and _is_small(paths):
            _leave_pandas_out()
        from workers.evidence.files import base_read, coordinates_read, keys_read
        from workers.judgement import JudgeRequest, judge

        scope = options["scope"]
        if scope is not None:
            keys: list[str] | None = scope.split(",") if scope else []
        else:
            keys = keys_read(options["scope_file"]) if options["scope_file"] else None
        return judge(
            JudgeRequest(
                history=options["history"],
                accepted=options["accepted"],
                frontier=options["frontier"],
                journal=options["journal"],
                scope=keys,
                floor=options["floor"],
                omissions=coordinates_read(options["omissions"]) if options["omissions"] else (),
                delivered=options["delivered"],
                base=base_read(options["base"]) if options["base"] else None,
                spelling=Spelling(options["spelling"]) if options["spelling"] else None,
                engine=options["engine"],
            )
        )


def _is_small(paths: list[Path]) -> bool:
    return sum(path.stat().st_size for path in paths if path.exists()) < SMALL_BYTES


class _WithoutPandas(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)


def _leave_pandas_out() -> None:
    """Arrow imports pandas, where it is installed, when it first looks at a list; a small answer is not worth the wait.

    It asks once a process, so this is for the process of one command, and nothing here uses pandas.
    """
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


def _grounds(judgement: Any) -> list[str]:
    """Status, and everything that bounds it."""
    verdict = judgement.verdict
    lines = [f"Status: {OUTCOMES[verdict.status].words}."]
    lines += [f"Unknown because: {reason}" for reason in verdict.unknown_because]
    lines += [f"Weakness: {weakness}" for weakness in verdict.weaknesses]
    return lines + [f"Note: {line}" for line in judgement.mended]


def _report(judgement: Any) -> list[str]:
    """A page for a person: the sentence first, then what is wrong and where, then what the verdict rests on."""
    from workers.evidence.canonical import json_string

    verdict, answer = judgement.verdict, judgement.answer
    lines = list(verdict.says)
    premature = {
        row["entry"]: row for row in judgement.findings.to_pylist() if row["finding"] in ("premature", "unknown")
    }
    named = [
        (f"record entry {place}: {premature[place]['cause']}" if place in premature else str(place))
        for place in answer["premature"][:SHOWN]
    ]
    doubled = [f"{event['coordinate']} ({event['count']} times)" for event in answer["duplicates"][:SHOWN]]
    for title, shown, count in (
        ("Lost", [str(held) for held in answer["sink_delta"][:SHOWN]], len(answer["sink_delta"])),
        ("Not justified", named, len(answer["premature"])),
        ("Accepted more than once", doubled, len(answer["duplicates"])),
        ("Acknowledged", [str(held) for held in answer["acknowledged"][:SHOWN]], len(answer["acknowledged"])),
    ):
        if count:
            rest = f" and {count - SHOWN} more" if count > SHOWN else ""
            lines.append(f"{title}: {', '.join(shown)}{rest}")
    if answer["journal"]["lost"] != answer["sink_delta"] and verdict.journal.lost is not None:
        lost = answer["journal"]["lost"]
        rest = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
        lines.append(f"Lost by the journal: {', '.join(map(str, lost[:SHOWN]))}{rest}")
    mismatched = answer.get("mismatched_keys")
    if mismatched is not None:
        names = ", ".join("null" if key is None else json_string(key) for key in mismatched[:SHOWN])
        rest = f" and {len(mismatched) - SHOWN} more" if len(mismatched) > SHOWN else ""
        lines.append(
            f"Mismatched keys: {names}{rest}" if mismatched else f"Mismatch-free at {verdict.frontier}, on every key."
        )
    lines += [f"Details: {line}" for line in verdict.details]
    records = ", ".join(f"{end} {count}" for end, count in judgement.records.items())
    lines += _grounds(judgement)[1:]
    lines += [f"Read: {records} (records; coordinates spelled {judgement.spelling.value}; engine {judgement.engine})."]
    if verdict.status is not Status.UNKNOWN:
        lines += list(verdict.grounds)
    return lines
