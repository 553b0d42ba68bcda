from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.alerts.causes import Severity
from recovery_api.domain.incidents import IncidentState
from recovery_api.domain.words import words
from recovery_api.incident_rows import figures_as_row, incident_as_row, incident_lines
from recovery_api.management.base import FencepostCommand, Shown, subcommand_add
from recovery_api.management.lines import event_lines
from recovery_api.post_mortems import post_mortem_html, post_mortem_markdown
from recovery_api.selectors.alerts import alert_get
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.incidents import (
    incident_begun,
    incident_figures,
    incident_get,
    incident_list,
    incident_timeline,
)
from recovery_api.selectors.timelines import lines_read
from recovery_api.services.incidents import incident_change, incident_note, incident_open
from recovery_api.timeline_rows import line_as_row


class Command(FencepostCommand):
    help = "Incidents: list, open, show, change, note, timeline, post-mortem."

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(dest="what", required=True)
        listed = subcommand_add(subparsers, "list", "those that are not closed")
        listed.add_argument("--all", action="store_true", help="closed ones, too")
        opened = subcommand_add(subparsers, "open", "give an incident a name")
        opened.add_argument("title")
        opened.add_argument("--pipeline", action="append", default=[], metavar="NAME", help="one of its pipelines")
        opened.add_argument("--severity", choices=words(Severity), help="left out: the alert's, else error")
        opened.add_argument(
            "--alert", metavar="ID", help="the alert it is opened from: with its pipeline, severity and first moment"
        )
        opened.add_argument("--commander", default="", help="who leads it")
        changed = subcommand_add(subparsers, "change", "its state, severity, commander, cause or pipelines")
        changed.add_argument("incident")
        changed.add_argument("--title")
        changed.add_argument("--state", choices=words(IncidentState))
        changed.add_argument("--severity", choices=words(Severity))
        changed.add_argument("--commander")
        changed.add_argument("--cause", help="needed to close it")
        changed.add_argument("--pipeline", action="append", metavar="NAME", help="all of its pipelines from now on")
        noted = subcommand_add(subparsers, "note", "a note in its timeline")
        noted.add_argument("incident")
        noted.add_argument("text")
        for name, says in (
            ("show", "one incident, with its figures"),
            ("timeline", "everything that happened to it and its pipelines"),
            ("post-mortem", "the post-mortem as Markdown"),
        ):
            one = subcommand_add(subparsers, name, says)
            one.add_argument("incident")
            if name == "post-mortem":
                one.add_argument("--html", action="store_true", help="as a page of HTML instead")

    def answer(self, now: datetime, **options: Any) -> Shown:
        steps: dict[str, Callable[[datetime, dict[str, Any]], Shown]] = {
            "list": self._list,
            "open": self._open,
            "show": self._show,
            "change": self._change,
            "note": self._note,
            "timeline": self._timeline,
            "post-mortem": self._post_mortem,
        }
        return steps[options["what"]](now, options)

    def _list(self, now: datetime, options: dict[str, Any]) -> Shown:
        rows = [incident_as_row(one) for one in incident_list(is_live=not options["all"])]
        lines = [line for row in rows for line in incident_lines(row)]
        return Shown({"incidents": rows}, lines or ["No incident is open."])

    def _open(self, now: datetime, options: dict[str, Any]) -> Shown:
        pipelines = [pipeline_get(name) for name in dict.fromkeys(options["pipeline"])]
        given = {"severity": options["severity"] or Severity.ERROR, "commander": options["commander"]}
        if options["alert"]:
            begun = incident_begun(alert_get(options["alert"]))
            pipelines = pipelines or list(begun.pipelines)
            given |= {"alert": begun.alert, "noticed_at": begun.noticed_at}
            given["severity"] = options["severity"] or begun.severity
        row = incident_as_row(incident_open(options["title"], pipelines, actor=options["actor"], now=now, **given))
        return Shown(row, incident_lines(row))

    def _show(self, now: datetime, options: dict[str, Any]) -> Shown:
        incident = incident_get(options["incident"])
        row, figures = incident_as_row(incident), figures_as_row(incident_figures(incident, now_get()))
        lines = [f"  {name.replace('_', ' ')}: {value}" for name, value in figures.items() if name != "pipelines"]
        return Shown({**row, "figures": figures}, [*incident_lines(row), *lines])

    def _change(self, now: datetime, options: dict[str, Any]) -> Shown:
        given = {name: options[name] for name in ("title", "state", "severity", "commander", "cause")}
        if options["pipeline"] is not None:
            given["pipelines"] = [pipeline_get(name) for name in dict.fromkeys(options["pipeline"])]
        incident = incident_get(options["incident"])
        incident_change(incident, actor=options["actor"], now=now, **given)
        row = incident_as_row(incident_get(incident.id))
        return Shown(row, incident_lines(row))

    def _note(self, now: datetime, options: dict[str, Any]) -> Shown:
        incident = incident_get(options["incident"])
        incident_note(incident, options["text"], actor=options["actor"], now=now)
        return Shown(incident_as_row(incident), ["Noted."])

    def _timeline(self, now: datetime, options: dict[str, Any]) -> Shown:
        found = lines_read(incident_timeline(incident_get(options["incident"])), newest=False)
        rows = [line_as_row(one) for one in found]
        return Shown({"timeline": rows}, event_lines(rows))

    def _post_mortem(self, now: datetime, options: dict[str, Any]) -> Shown:
        incident = incident_get(options["incident"])
        text = post_mortem_markdown(incident, now_get())
        shown = post_mortem_html(incident, text) if options["html"] else text
        return Shown({"incident": str(incident.id), "text": shown}, shown.splitlines())
