from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.coordinates import coordinate_parse
from recovery_api.domain.dead_letters import FIELD
from recovery_api.domain.errors import BadInput
from recovery_api.domain.findings import Cause, FindingWord
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.moments import moment_read
from recovery_api.domain.words import words
from recovery_api.management.base import FencepostCommand, Shown, subcommand_add
from recovery_api.management.lines import omission_lines, preview_lines
from recovery_api.management.waiting import intent_await, intent_problem, wait_arguments
from recovery_api.models import Pipeline
from recovery_api.omission_rows import omission_as_row, preview_as_row
from recovery_api.rows import intent_as_row, left_as_row
from recovery_api.selectors.ends import pipeline_get, source_spelling
from recovery_api.selectors.findings import FindingFilter
from recovery_api.selectors.omissions import omission_list, preview_get
from recovery_api.services.findings_left import finding_leave
from recovery_api.services.omission_previews import export_preview, omissions_preview, preview_confirm
from recovery_api.services.omissions import omission_acknowledge, omission_withdraw, omissions_withdraw

FILE_LIMIT_BYTES = 256 * 2**20


class Command(FencepostCommand):
    help = "Acknowledged omissions: events that are never to be delivered, each with its reason; and findings that are left."

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(dest="what", required=True)
        listed = subcommand_add(subparsers, "list", "what is acknowledged")
        listed.add_argument("pipeline")
        listed.add_argument("--withdrawn", action="store_true", help="those withdrawn, too")
        one = subcommand_add(subparsers, "acknowledge", "take a coordinate out")
        one.add_argument("pipeline")
        one.add_argument("coordinate", help="in the source's spelling; write a negative one after --")
        one.add_argument("--lane", default=SINGLE_LANE, help=f"its lane (default {SINGLE_LANE})")
        _reason_arguments(one)
        left = subcommand_add(subparsers, "leave", "leave what was found at a coordinate as it is, with a reason")
        left.add_argument("pipeline")
        left.add_argument("coordinate", help="in the source's spelling; write a negative one after --")
        left.add_argument("--lane", default=SINGLE_LANE, help=f"its lane (default {SINGLE_LANE})")
        left.add_argument("--reason", required=True, help="why it may stay as it is")
        back = subcommand_add(subparsers, "withdraw", "owe it again")
        back.add_argument("pipeline")
        back.add_argument("coordinate", nargs="?", help="in the source's spelling; write a negative one after --")
        back.add_argument("--lane", default=SINGLE_LANE, help=f"its lane (default {SINGLE_LANE})")
        back.add_argument("--act", help="in place of a coordinate: everything that was acknowledged in this act")
        many = subcommand_add(subparsers, "preview", "what acknowledging a range or a filter of findings would do")
        many.add_argument("pipeline")
        many.add_argument("--from", dest="low", metavar="COORDINATE", help="from this coordinate on")
        many.add_argument("--to", dest="high", metavar="COORDINATE", help="up to this coordinate")
        many.add_argument("--lane", default="", help="only of this lane (default: every one)")
        many.add_argument("--finding", default="", choices=words(FindingWord), help="only findings of this word")
        many.add_argument("--cause", default="", choices=words(Cause), help="only findings of this cause")
        read = subcommand_add(subparsers, "import", "what acknowledging a dead-letter export would do")
        read.add_argument("pipeline")
        read.add_argument("file", help="CSV with a header line, or JSON lines; - reads from standard input")
        wait_arguments(read)
        confirmed = subcommand_add(subparsers, "confirm", "acknowledge what a preview showed as owed")
        confirmed.add_argument("pipeline")
        confirmed.add_argument("preview", help="as `preview` or `import` named it")
        confirmed.add_argument(
            "--with-content", action="store_true", help="also what the export names by key and content alone"
        )
        _reason_arguments(confirmed)

    def answer(self, now: datetime, **options: Any) -> Shown:
        pipeline = pipeline_get(options["pipeline"])
        shown: Shown = getattr(self, f"_{options['what']}")(pipeline, now, options)
        return shown

    def _list(self, pipeline: Pipeline, now: datetime, options: dict[str, Any]) -> Shown:
        rows = [omission_as_row(one) for one in omission_list(pipeline, with_withdrawn=options["withdrawn"])]
        return Shown({"pipeline": pipeline.name, "omissions": rows}, omission_lines(rows))

    def _acknowledge(self, pipeline: Pipeline, now: datetime, options: dict[str, Any]) -> Shown:
        omission = omission_acknowledge(
            pipeline, options["coordinate"], lane=options["lane"], now=now, **_reason(options)
        )
        row = omission_as_row(omission)
        return Shown(row, [*omission_lines([row]), "It stays lost, is listed apart, and is never sent."])

    def _leave(self, pipeline: Pipeline, now: datetime, options: dict[str, Any]) -> Shown:
        why = {"reason": options["reason"], "actor": options["actor"], "now": now, "lane": options["lane"]}
        row = left_as_row(finding_leave(pipeline, options["coordinate"], **why))
        return Shown(row, ["Left as it is. It changes no verdict: what is owed stays owed."])

    def _withdraw(self, pipeline: Pipeline, now: datetime, options: dict[str, Any]) -> Shown:
        if (options["act"] is None) == (options["coordinate"] is None):
            raise BadInput("coordinate", "is neither given alone nor left out for --act", "Give one of them.")
        if options["act"] is not None:
            count = omissions_withdraw(pipeline, options["act"], actor=options["actor"], now=now)
            body = {"act": options["act"], "pipeline": pipeline.name, "count": count}
            return Shown(body, [f"{count:,} {'is' if count == 1 else 'are'} owed again."])
        common = {"actor": options["actor"], "now": now, "lane": options["lane"]}
        row = omission_as_row(omission_withdraw(pipeline, options["coordinate"], **common))
        return Shown(row, [*omission_lines([row]), "It is owed again."])

    def _preview(self, pipeline: Pipeline, now: datetime, options: dict[str, Any]) -> Shown:
        spelling = source_spelling(pipeline.source)
        low, high = (
            coordinate_parse(options[name], spelling, name) if options[name] else None for name in ("low", "high")
        )
        if low is not None and high is not None and low > high:
            raise BadInput("from", f"{options['low']} lies above {options['high']}", "Give the lower one first.")
        asked = FindingFilter(options["finding"], options["cause"], options["lane"], low, high)
        row = preview_as_row(omissions_preview(pipeline, asked, actor=options["actor"], now=now))
        return Shown(row, preview_lines(row))

    def _import(self, pipeline: Pipeline, now: datetime, options: dict[str, Any]) -> Shown:
        preview, intent = export_preview(
            pipeline,
            _file_read(options["file"]),
            actor=options["actor"],
            now=now,
            wake=not options["here"],
        )
        if not (options["wait"] or options["here"]):
            row = preview_as_row(preview)
            return Shown(row | {"intent": intent_as_row(intent)}, preview_lines(row))
        intent = intent_await(intent, options, self.stderr)
        follow = f"Look again: manage.py intents show {intent.id}"
        if (problem := intent_problem(intent, follow)) is not None:
            return problem
        row = preview_as_row(preview_get(pipeline, preview.pk))
        return Shown(row, preview_lines(row))

    def _confirm(self, pipeline: Pipeline, now: datetime, options: dict[str, Any]) -> Shown:
        more = {"with_content": options["with_content"], **_reason(options)}
        count = preview_confirm(pipeline, options["preview"], now=now, **more)
        body = {"act": options["preview"], "pipeline": pipeline.name, "count": count}
        one, many = "It stays lost, is listed apart, and is never sent.", "They stay lost, and are never sent."
        return Shown(body, [f"{count:,} acknowledged.", one if count == 1 else many])


def _reason_arguments(parser: CommandParser) -> None:
    parser.add_argument("--reason", required=True, help="why this is never to be delivered")
    parser.add_argument("--reference", default="", help="a ticket's address or number")
    parser.add_argument(
        "--until", metavar="MOMENT", help="owed again by itself from then on, 2026-11-28T22:30:00Z (default: for good)"
    )


def _reason(options: dict[str, Any]) -> dict[str, Any]:
    return {
        "reason": options["reason"],
        "reference": options["reference"],
        "until": moment_read(options["until"], "until"),
        "actor": options["actor"],
    }


def _file_read(name: str) -> str:
    """Raises: BadInput."""
    try:
        held = sys.stdin.buffer.read(FILE_LIMIT_BYTES + 1) if name == "-" else _bytes_of(Path(name))
    except OSError as error:
        raise BadInput("file", f"{name} cannot be read: {error.strerror}", "Name a file that is there.") from error
    if len(held) > FILE_LIMIT_BYTES:
        raise BadInput("file", f"is larger than {FILE_LIMIT_BYTES // 2**20} MiB", "Import it in parts.")
    try:
        return held.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(FIELD, f"is not UTF-8: byte {error.start}", "Write it as UTF-8.") from error


def _bytes_of(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(FILE_LIMIT_BYTES + 1)
