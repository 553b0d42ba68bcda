"""The archive as pages, REST and commands show it: one spelling of its rows. Never a content."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.models import Pipeline
from recovery_api.selectors.archives import Held, archive_held, archive_problems

Row = dict[str, Any]


def archive_as_row(pipeline: Pipeline) -> Row:
    """What the archive holds of the pipeline, and what the newest audit could not bring there."""
    options = pipeline_options_parse(pipeline.options)
    return {
        "pipeline": pipeline.name,
        "is_archived": options["is_archived"],
        "days": str(options["archive_days"]),
        "held": [held_as_row(one) for one in archive_held(pipeline)],
        "problems": archive_problems(pipeline) if options["is_archived"] else [],
    }


def archive_shown(pipeline: Pipeline) -> Row:
    """The same for the pipeline's page, with moments as moments."""
    row = archive_as_row(pipeline)
    for held in row["held"]:
        held["kept_until_at"] = datetime.fromisoformat(held["kept_until"])
    return row


def held_as_row(held: Held) -> Row:
    return {
        "lane": held.lane,
        "incarnation": held.incarnation,
        "above": held.above_says,
        "to": held.to_says,
        "files": str(held.files),
        "events": str(held.rows),
        "bytes": str(held.bytes),
        "kept_until": held.until.isoformat(),
        "needed_files": str(held.pinned),
        "registered_files": str(held.registered),
    }


def archive_lines(row: Row) -> list[str]:
    """The same for a terminal."""
    said = []
    if not row["is_archived"]:
        said.append("Audits write nothing to the archive: its pipeline's option is_archived is off.")
    for one in row["held"]:
        above = f"above {one['above']} " if one["above"] else ""
        needed = f"; open items need {one['needed_files']} of them for longer" if one["needed_files"] != "0" else ""
        said.append(
            f"lane {one['lane']}: {int(one['events']):,} events {above}up to {one['to']}, in {one['files']} files of "
            f"{int(one['bytes']):,} bytes, the first until {one['kept_until'][:16]} UTC{needed} ({one['incarnation']})"
        )
    if not row["held"]:
        said.append("The archive holds nothing.")
    return [*said, *row["problems"]]


def import_lines(result: Row) -> list[str]:
    """What an import read and registered, a file at a time."""
    said = []
    for one in result.get("files", []):
        said += [f"{one['file']}: {one['says']}", *one["unread"]]
    return [*said, str(result.get("says", "")), "Plan, to see what can be sent from there."]
