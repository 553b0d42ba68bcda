from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.errors import BadFile, BadInput
from recovery_api.domain.runbooks import runbook_names
from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.runbooks import (
    filled_markdown,
    page_html,
    runbook_get,
    runbook_page,
    runbook_text,
    section_html,
    team_text,
)
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.selectors.runbooks import runbook_values


class Command(FencepostCommand):
    help = (
        "One runbook, or all of them as files (--export). Without --pipeline no database is needed, so it is there when"
        " everything else is down."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", nargs="?", help="a cause or a status; without it: their names")
        parser.add_argument("--pipeline", metavar="NAME", help="filled in with this pipeline's values")
        parser.add_argument("--export", metavar="DIR", help="write every runbook there, as Markdown and as HTML")

    def answer(self, now: datetime, **options: Any) -> Shown:
        if options["name"] and options["export"]:
            raise BadInput("--export", "stands beside a name", "It writes all of them.")
        values: dict[str, str] = {}
        if options["pipeline"]:
            pipeline = pipeline_get(options["pipeline"])
            values = runbook_values(pipeline, pipeline_status(pipeline, now_get()))
        if options["export"]:
            return self._export(Path(options["export"]), values)
        if not options["name"]:
            rows = [{"name": name, "title": runbook_get(name).title} for name in runbook_names()]
            return Shown({"runbooks": rows}, [f"{row['name']}: {row['title']}" for row in rows])
        text, team = filled_markdown(runbook_text(options["name"]), values), team_text(options["name"])
        lines = [*text.splitlines(), *(["", "---", "Your team's own:", "", *team.splitlines()] if team else [])]
        return Shown({"name": options["name"], "text": text, "team": team}, lines)

    def _export(self, folder: Path, values: dict[str, str]) -> Shown:
        titles = {name: runbook_get(name).title for name in runbook_names()}
        listed = section_html("\n".join([f"- [{titles[name]}]({name}.html)" for name in titles]))
        files = {"index.html": page_html("Runbooks", f"<h1>Runbooks</h1>{listed}")}
        for name in titles:
            files[f"{name}.md"] = filled_markdown(runbook_text(name), values)
            files[f"{name}.html"] = runbook_page(name, values)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise BadFile(
                str(folder), "the folder", "cannot be written", "Name a folder that this user may write."
            ) from error
        says = f"{len(titles)} runbooks are in {folder}, as Markdown and as HTML; begin with index.html."
        return Shown({"folder": str(folder), "files": sorted(files)}, [says])
