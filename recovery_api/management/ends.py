"""`sources` and `sinks`: one command for both ends. `add` tests first and registers only what can serve."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.commands import command_line
from recovery_api.domain.errors import BadInput
from recovery_api.management.base import BAD_INPUT, UNKNOWN, FencepostCommand, Shown, subcommand_add
from recovery_api.management.config import config_read, options_from_flags
from recovery_api.management.lines import end_lines, report_lines
from recovery_api.management.presets import filled_lines, preset_lines, said_lines
from recovery_api.management.waiting import intent_await, intent_problem, is_waiting, wait_arguments
from recovery_api.models import End, Intent, Sink, Source
from recovery_api.presets import preset_get, preset_names
from recovery_api.rows import end_as_row, intent_as_row
from recovery_api.selectors.ends import sink_get, sink_list, source_get, source_list
from recovery_api.selectors.findings import sample_contents_get
from recovery_api.services.ends import (
    connection_test_request,
    options_check,
    sink_create,
    sink_update,
    source_create,
    source_update,
)
from recovery_api.services.event_reads import sample_contents_read
from recovery_api.services.presets import preset_fill
from recovery_api.services.retirement import sink_retire, source_retire
from recovery_api.services.sinks import sink_settle_request

TEST_SECONDS = 60.0
NOT_REACHED = ("unreachable", "no_answer", "out_of_room", "engine_unavailable", "sink_busy", "transient")


class EndCommand(FencepostCommand):
    """list | add | show | test | edit | retire NAME. `word` is source or sink."""

    word: str

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(dest="what", required=True)
        subcommand_add(subparsers, "list", f"every {self.word}")
        add = subcommand_add(subparsers, "add", f"test and register a {self.word}")
        add.add_argument("name", nargs="?", help="its name (or in the file)")
        add.add_argument("--kind", help="its kind (or in the file)")
        add.add_argument("--preset", metavar="LIBRARY", help="fill what is left out for the table of a known library")
        add.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the kind")
        add.add_argument("--file", help="a .json or .toml file with name, kind, preset and options")
        add.add_argument("--no-test", action="store_true", help="register it without a connection test")
        wait_arguments(add, seconds=TEST_SECONDS)
        show = subcommand_add(subparsers, "show", f"one {self.word}, with its last test")
        show.add_argument("name")
        test = subcommand_add(subparsers, "test", f"test a registered {self.word} through a worker")
        test.add_argument("name")
        test.add_argument(
            "--contents",
            action="store_true",
            help="how the sample rows' contents begin, too; it stands in the timeline",
        )
        wait_arguments(test, seconds=TEST_SECONDS)
        edit = subcommand_add(subparsers, "edit", f"change options of a {self.word}; waiting plans lapse")
        edit.add_argument("name")
        edit.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option to set")
        edit.add_argument(
            "--unset", action="append", default=[], metavar="NAME", help="an option to leave to its default"
        )
        retire = subcommand_add(subparsers, "retire", f"take a {self.word} out of use; its history stays")
        retire.add_argument("name")
        retire.add_argument("--confirm", required=True, metavar="NAME", help="its name again")
        presets = subcommand_add(subparsers, "presets", "the known libraries, or what one of them fills and why")
        presets.add_argument("library", nargs="?", help="one of them")
        if self.word == "sink":
            settle = subcommand_add(subparsers, "settle", "compare a sink with what it said; make a restored one safe")
            settle.add_argument("name")
            wait_arguments(settle)

    def answer(self, now: datetime, **options: Any) -> Shown:
        steps: dict[str, Callable[..., Shown]] = {
            "list": self._list,
            "add": self._add,
            "show": self._show,
            "test": self._test,
            "edit": self._edit,
            "retire": self._retire,
            "presets": self._presets,
            "settle": self._settle,
        }
        return steps[options["what"]](now, options)

    def _list(self, now: datetime, options: dict[str, Any]) -> Shown:
        rows = [end_as_row(end) for end in (source_list() if self.word == "source" else sink_list())]
        tested = {True: "can serve", False: "cannot serve", None: "never tested"}
        lines = [f"{row['name']}  {row['kind']}  {tested[row['is_usable']]}" for row in rows]
        return Shown(
            {f"{self.word}s": rows},
            lines or [f"No {self.word} is registered. Add one: manage.py {self.word}s add NAME --kind K."],
        )

    def _show(self, now: datetime, options: dict[str, Any]) -> Shown:
        row = end_as_row(self._get(options["name"]), options["actor"])
        return Shown(row, end_lines(self.word, row))

    def _add(self, now: datetime, options: dict[str, Any]) -> Shown:
        name, kind, given, filled = self._given(options)
        options_check(self.word, kind, given)
        self._refuse_taken(name)
        report = None
        if not options["no_test"]:
            intent = connection_test_request(
                actor=options["actor"], now=now, end=self.word, kind=kind, options=given, wake=not options["here"]
            )
            ended = intent_await(intent, options, self.stderr)
            if (problem := self._test_problem(ended)) is not None:
                lines = [*filled_lines(given, filled), *problem.lines]
                lines.append(f"The {self.word} was not registered (--no-test registers it untested).")
                return Shown({**problem.body, "filled": filled, "registered": False}, lines, problem.code)
            report = ended.result
        create = source_create if self.word == "source" else sink_create
        row = end_as_row(create(name, kind, given, actor=options["actor"], now=now, report=report), options["actor"])
        lines = [f"Registered {self.word} {name}.", *end_lines(self.word, row)[1:], *said_lines(given)]
        return Shown({**row, "registered": True}, lines)

    def _presets(self, now: datetime, options: dict[str, Any]) -> Shown:
        if options["library"]:
            return Shown(preset_get(options["library"]).as_row(), preset_lines(preset_get(options["library"])))
        found = [preset_get(name) for name in preset_names(self.word)]
        lines = [f"{one.name}  {one.answer}  {one.library}" for one in found]
        return Shown({"presets": [one.as_row() for one in found]}, lines)

    def _test(self, now: datetime, options: dict[str, Any]) -> Shown:
        end = self._get(options["name"])
        which = {"source": end} if isinstance(end, Source) else {"sink": end}
        intent = connection_test_request(actor=options["actor"], now=now, wake=not options["here"], **which)
        ended = intent_await(intent, options, self.stderr)
        if (problem := self._test_problem(ended)) is not None:
            return problem
        report = self._with_contents(ended, now, options) if options["contents"] else ended.result or {}
        return Shown({"name": end.name, **report}, [f"{end.name}:", *report_lines(report)])

    def _with_contents(self, ended: Intent, now: datetime, options: dict[str, Any]) -> dict[str, Any]:
        """The report, its sample rows with how their contents begin."""
        sample = sample_contents_read(sample_contents_get(ended.id), actor=options["actor"], now=now)
        return {**(ended.result or {}), "sample": sample}

    def _edit(self, now: datetime, options: dict[str, Any]) -> Shown:
        end = self._get(options["name"])
        given = options_merge(end.options, options_from_flags(options["option"]), options["unset"])
        update: Callable[..., End] = source_update if self.word == "source" else sink_update
        row = end_as_row(update(end, given, actor=options["actor"], now=now))
        return Shown(row, end_lines(self.word, row))

    def _retire(self, now: datetime, options: dict[str, Any]) -> Shown:
        end = self._get(options["name"])
        retire: Callable[..., End] = source_retire if self.word == "source" else sink_retire
        row = end_as_row(retire(end, options["confirm"], actor=options["actor"], now=now))
        return Shown(
            {**row, "retired": True}, [f"{self.word.capitalize()} {end.name} is out of use; its history stays."]
        )

    def _settle(self, now: datetime, options: dict[str, Any]) -> Shown:
        sink = sink_get(options["name"])
        intent = sink_settle_request(sink, actor=options["actor"], now=now, wake=not options["here"])
        follow = f"Look again: manage.py intents wait {intent.id}"
        if not is_waiting(options):
            return Shown(intent_as_row(intent), [f"Settling is queued as {intent.id}.", follow], UNKNOWN)
        ended = intent_await(intent, options, self.stderr)
        if (problem := intent_problem(ended, follow)) is not None:
            return problem
        result = ended.result or {}
        return Shown({"name": sink.name, **result}, [f"{sink.name}: {result.get('says') or result}"])

    def _test_problem(self, intent: Intent) -> Shown | None:
        """What to show where the test did not end, or found that this end cannot serve."""
        follow = f"Look again: manage.py intents show {intent.id}"
        if (problem := intent_problem(intent, follow)) is not None:
            return problem
        report = intent.result or {}
        if report["is_usable"]:
            return None
        return Shown(dict(report), report_lines(report), report_code(report))

    def _given(self, options: dict[str, Any]) -> tuple[str, str, dict[str, Any], dict[str, Any]]:
        """Name, kind, options and what a preset filled of them; from flags or from a file, never half from each."""
        found: dict[str, Any] = {}
        if options["file"]:
            if options["kind"] or options["option"] or options["preset"]:
                raise BadInput("--file", "stands beside --kind, --preset or --option", "Give one or the other.")
            found = config_read(options["file"], ("name", "kind", "preset", "options"))
        name = options["name"] or found.get("name")
        if options["name"] and found.get("name") not in (None, options["name"]):
            raise BadInput("name", f"is {found['name']!r} in the file", "Give the same name, or leave one out.")
        kind, preset = options["kind"] or found.get("kind"), options["preset"] or found.get("preset")
        for field, value in (("name", name), ("preset", preset) if preset else ("kind", kind)):
            if not isinstance(value, str) or not value:
                raise BadInput(field, "is missing", f"Name the {self.word} and its kind, or a preset.")
        given = found.get("options", {}) if options["file"] else options_from_flags(options["option"])
        if not isinstance(given, dict):
            raise BadInput("options", "is not an object", "Write the options as members of one object.")
        filled = preset_fill(self.word, kind, preset, given)
        return str(name), filled.kind, filled.options, filled.filled

    def _get(self, name: str) -> End:
        return source_get(name) if self.word == "source" else sink_get(name)

    def _refuse_taken(self, name: str) -> None:
        model = Source if self.word == "source" else Sink
        if model.objects.filter(name=name, retired_at__isnull=True).exists():
            remedy = f"Choose another, or see it: {command_line(f'{self.word}s', 'show', name)}."
            raise BadInput(f"{self.word}.name", f"{name!r} is taken", remedy)


def options_merge(before: dict[str, Any], given: dict[str, Any], unset: list[str]) -> dict[str, Any]:
    """The options after an edit. Raises: BadInput where one is set and unset, or unset and not there."""
    for name in unset:
        if name in given:
            raise BadInput("--unset", f"{name!r} is set as well", "Give one or the other.")
        if name not in before:
            raise BadInput("--unset", f"{name!r} is not set", f"Set are: {', '.join(sorted(before)) or 'none'}.")
    return {name: value for name, value in {**before, **given}.items() if name not in unset}


def report_code(report: dict[str, Any]) -> int:
    """3 where an end that cannot serve was just not reached, 2 where something about it must be mended."""
    facts = report["facts"]
    code = facts.get("code") or (facts.get("error") or {}).get("code")
    return UNKNOWN if code in NOT_REACHED else BAD_INPUT
