from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.commands import command_line
from recovery_api.domain.errors import BadFile, BadInput
from recovery_api.domain.outcomes import exit_code_worst
from recovery_api.headroom_rows import statuses_as_rows
from recovery_api.management.auditing import audit_ask
from recovery_api.management.base import DONE, FencepostCommand, Shown, subcommand_add
from recovery_api.management.config import config_read, options_from_flags
from recovery_api.management.ends import TEST_SECONDS, options_merge, report_code
from recovery_api.management.lines import (
    event_lines,
    pipeline_lines,
    recovery_words,
    report_lines,
    schedule_lines,
    status_lines,
)
from recovery_api.management.waiting import intent_await, intent_problem, wait_arguments
from recovery_api.models import Intent, Sink, Source
from recovery_api.rows import (
    Row,
    audit_as_row,
    pipeline_as_row,
    plan_as_row,
    recovery_as_row,
)
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get, sink_get, source_get
from recovery_api.selectors.fleet import fleet_status, pipeline_status
from recovery_api.selectors.plans import plan_list
from recovery_api.selectors.timelines import lines_read, timeline_lines
from recovery_api.services.ends import connection_test_request
from recovery_api.services.pipelines import pipeline_check, pipeline_create, pipeline_update
from recovery_api.services.retirement import pipeline_retire
from recovery_api.timeline_rows import line_as_row

MEMBERS = ("name", "source", "sink", "delivery", "scope", "options", "requires_other_approver")
SHOWN_PLANS = 5


class Command(FencepostCommand):
    help = "Pipelines: list with their status, add, show, edit, retire, timeline, test their ends."

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(dest="what", required=True)
        listed = subcommand_add(subparsers, "list", "every pipeline with its status")
        listed.add_argument("--check", action="store_true", help="exit as the worst of them: 1, 3, 4, 0, in that order")
        add = subcommand_add(subparsers, "add", "test its ends and register a pipeline")
        add.add_argument("name", nargs="?", help="its name (or in the file)")
        add.add_argument("--source", help="a registered source")
        add.add_argument("--sink", help="its record: a registered sink that serves no other pipeline")
        add.add_argument(
            "--delivery",
            metavar="NAME",
            help="another registered sink that is fired into; left out: the record itself",
        )
        add.add_argument("--scope", help="the keys it owes, separated by commas; left out: every key")
        add.add_argument("--scope-file", help="the keys it owes, one a line")
        add.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="a pipeline's option")
        add.add_argument("--author-may-approve", action="store_true", help="a plan's author may approve it")
        add.add_argument("--file", help="a .json or .toml file with " + ", ".join(MEMBERS))
        add.add_argument("--no-test", action="store_true", help="register it without testing its ends")
        add.add_argument("--audit", action="store_true", help="audit it as soon as it is registered")
        wait_arguments(add, seconds=TEST_SECONDS)
        edit = subcommand_add(
            subparsers, "edit", "change delivery, scope, options or the rule about approvers; waiting plans lapse"
        )
        edit.add_argument("name")
        edit.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option to set")
        edit.add_argument(
            "--unset", action="append", default=[], metavar="NAME", help="an option to leave to its default"
        )
        edit.add_argument("--delivery", metavar="NAME", help="another registered sink that is fired into from now on")
        edit.add_argument("--no-delivery", action="store_true", help="fire into the record itself from now on")
        edit.add_argument("--scope", help="the keys it owes, separated by commas")
        edit.add_argument("--every-key", action="store_true", help="owe every key from now on")
        edit.add_argument("--author-may-approve", choices=("yes", "no"), help="whether a plan's author may approve it")
        retire = subcommand_add(subparsers, "retire", "take a pipeline out of use; its history stays")
        retire.add_argument("name")
        retire.add_argument("--confirm", required=True, metavar="NAME", help="its name again")
        for name, says in (
            ("show", "one pipeline and what is known of it"),
            ("timeline", "what happened to a pipeline, in order"),
            ("test", "test the ends of a pipeline"),
        ):
            one = subcommand_add(subparsers, name, says)
            one.add_argument("name")
            if name == "test":
                wait_arguments(one, seconds=TEST_SECONDS)

    def answer(self, now: datetime, **options: Any) -> Shown:
        steps: dict[str, Callable[..., Shown]] = {
            "list": self._list,
            "add": self._add,
            "show": self._show,
            "edit": self._edit,
            "retire": self._retire,
            "timeline": self._timeline,
            "test": self._test,
        }
        return steps[options["what"]](now, options)

    def _list(self, now: datetime, options: dict[str, Any]) -> Shown:
        now = now_get()
        rows = statuses_as_rows(fleet_status(now), now)
        code = exit_code_worst(row["exit_code"] for row in rows) if options["check"] else DONE
        return Shown({"pipelines": rows}, status_lines(rows), code)

    def _show(self, now: datetime, options: dict[str, Any]) -> Shown:
        pipeline = pipeline_get(options["name"])
        now = now_get()
        status = pipeline_status(pipeline, now)
        (status_row,) = statuses_as_rows([status], now)
        plans = [plan_as_row(plan) for plan in plan_list(pipeline).select_related("pipeline__source")[:SHOWN_PLANS]]
        body = {
            **pipeline_as_row(pipeline),
            "status": status_row,
            "audit": audit_as_row(status.audit, now) if status.audit else None,
            "recovery": recovery_as_row(status.recovery, now) if status.recovery else None,
            "plans": plans,
        }
        lines = [*pipeline_lines(body), *status_lines([body["status"]]), *schedule_lines(body["status"])]
        lines += [f"  plan {row['plan']}: {row['state'].replace('_', ' ')}, {row['created_at'][:19]}Z" for row in plans]
        if status.recovery:
            lines.append(f"  recovery {status.recovery.id}: {recovery_words(body['recovery'])}")
        lines.append(f"  headroom {status_row['headroom']['headroom']}: {status_row['headroom']['short']}")
        lines.append(f"  its sink last passed its drills: {body['status']['drill_passed_at'] or 'never'}")
        return Shown(body, lines)

    def _timeline(self, now: datetime, options: dict[str, Any]) -> Shown:
        pipeline = pipeline_get(options["name"])
        lines = [line_as_row(one) for one in lines_read(timeline_lines(pipeline=pipeline.name), newest=False)]
        return Shown({"name": pipeline.name, "timeline": lines}, event_lines(lines))

    def _add(self, now: datetime, options: dict[str, Any]) -> Shown:
        given = self._given(options)
        source, sink = source_get(given.pop("source")), sink_get(given.pop("sink"))
        name = given.pop("name")
        given["delivery"] = sink_get(given["delivery"]) if given["delivery"] else None
        pipeline_check(name, sink, delivery=given["delivery"], scope=given["scope"], options=given["options"])
        if not options["no_test"]:
            failed = self._test_ends((source, sink, given["delivery"]), now, options)
            if failed is not None:
                lines = [*failed.lines, "The pipeline was not registered (--no-test registers it untested)."]
                return Shown({**failed.body, "registered": False}, lines, failed.code)
        pipeline_create(name, source, sink, actor=options["actor"], now=now, **given)
        row = pipeline_as_row(pipeline_get(name))
        first, *more = pipeline_lines(row)
        lines = [f"Registered {first}", *(more[1:2] if row["strategy_says"] else [])]
        if options["audit"]:
            audited = audit_ask(pipeline_get(name), now, options, self.stderr)
            return Shown({**row, "registered": True, "audit": audited.body}, [*lines, *audited.lines], audited.code)
        lines.append(f"Next: {command_line('audit', name, '--wait')}")
        return Shown({**row, "registered": True}, lines)

    def _edit(self, now: datetime, options: dict[str, Any]) -> Shown:
        pipeline = pipeline_get(options["name"])
        if options["scope"] is not None and options["every_key"]:
            raise BadInput("--scope", "stands beside --every-key", "Give one or the other.")
        if options["delivery"] is not None and options["no_delivery"]:
            raise BadInput("--delivery", "stands beside --no-delivery", "Give one or the other.")
        delivery = None if options["no_delivery"] else pipeline.delivery
        if options["delivery"] is not None:
            delivery = sink_get(options["delivery"])
        scope = None if options["every_key"] else pipeline.scope
        if options["scope"] is not None:
            scope = [key for key in options["scope"].split(",") if key]
        required = pipeline.requires_other_approver
        if options["author_may_approve"]:
            required = options["author_may_approve"] == "no"
        changed = pipeline_update(
            pipeline,
            delivery=delivery,
            scope=scope,
            options=options_merge(pipeline.options, options_from_flags(options["option"]), options["unset"]),
            requires_other_approver=required,
            actor=options["actor"],
            now=now,
        )
        row = pipeline_as_row(changed)
        return Shown(row, pipeline_lines(row))

    def _retire(self, now: datetime, options: dict[str, Any]) -> Shown:
        retired = pipeline_retire(pipeline_get(options["name"]), options["confirm"], actor=options["actor"], now=now)
        free = "its sink is free" if retired.delivery_id is None else "its two sinks are free"
        says = f"Pipeline {retired.name} is out of use; its history stays and {free}."
        return Shown({**pipeline_as_row(retired), "retired": True}, [says])

    def _test(self, now: datetime, options: dict[str, Any]) -> Shown:
        pipeline = pipeline_get(options["name"])
        failed = self._test_ends((pipeline.source, pipeline.sink, pipeline.delivery), now, options)
        if failed is not None:
            return failed
        lines = [f"{'Both ends' if pipeline.delivery is None else 'All three ends'} of {pipeline.name} can serve."]
        return Shown({"name": pipeline.name, "is_usable": True}, lines)

    def _test_ends(
        self, ends: tuple[Source, Sink, Sink | None], now: datetime, options: dict[str, Any]
    ) -> Shown | None:
        """What to show where an end cannot serve. None: all can."""
        given: dict[str, Any] = {"actor": options["actor"], "now": now, "wake": not options["here"]}
        source, *sinks = ends
        tests: list[tuple[Source | Sink, Intent]] = [(source, connection_test_request(source=source, **given))]
        tests += [(sink, connection_test_request(sink=sink, **given)) for sink in sinks if sink is not None]
        for end, intent in tests:
            ended = intent_await(intent, options, self.stderr)
            problem = intent_problem(ended, f"Look again: manage.py intents show {intent.id}")
            if problem is not None:
                return problem
            report: Row = ended.result or {}
            if not report["is_usable"]:
                lines = [f"{end.name}:", *report_lines(report)]
                return Shown({"end": end.name, **report}, lines, report_code(report))
        return None

    def _given(self, options: dict[str, Any]) -> dict[str, Any]:
        """The members of a pipeline, from flags or from a file, never half from each."""
        flags = {"source", "sink", "delivery", "scope", "scope_file", "option", "author_may_approve"}
        if options["file"]:
            if any(options[flag] for flag in flags):
                raise BadInput("--file", "stands beside other flags of the pipeline", "Give one or the other.")
            found = config_read(options["file"], MEMBERS)
            if options["name"] and found.get("name") not in (None, options["name"]):
                raise BadInput("name", f"is {found['name']!r} in the file", "Give the same name, or leave one out.")
            given = {"delivery": None, "scope": None, "options": {}, "requires_other_approver": True, **found}
            given["name"] = options["name"] or found.get("name")
            if not isinstance(given["requires_other_approver"], bool):
                raise BadInput("requires_other_approver", "is neither true nor false", "Write true or false.")
        else:
            given = {
                "name": options["name"],
                "source": options["source"],
                "sink": options["sink"],
                "delivery": options["delivery"],
                "scope": self._scope(options),
                "options": options_from_flags(options["option"]),
                "requires_other_approver": not options["author_may_approve"],
            }
        for member in ("name", "source", "sink"):
            if not isinstance(given.get(member), str) or not given[member]:
                raise BadInput(member, "is missing", "A pipeline has a name, a source and a sink.")
        if not isinstance(given["delivery"], str | None):
            raise BadInput("delivery", "is no name", "Name a registered sink, or leave it out.")
        return given

    def _scope(self, options: dict[str, Any]) -> list[str] | None:
        if options["scope"] is not None and options["scope_file"] is not None:
            raise BadInput("--scope", "stands beside --scope-file", "Give one or the other.")
        if options["scope_file"] is not None:
            try:
                keys = Path(options["scope_file"]).read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                problem = "cannot be read as UTF-8 text"
                raise BadFile(options["scope_file"], "the whole file", problem, "Check the path.") from error
            return [key for key in keys if key]
        return None if options["scope"] is None else [key for key in options["scope"].split(",") if key]
