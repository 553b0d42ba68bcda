"""A line of a timeline as a JSON object: one spelling for command, REST and page."""

from __future__ import annotations

from recovery_api.rows import Row, time_as_text
from recovery_api.selectors.timelines import Line


def line_as_row(line: Line) -> Row:
    """`id`: an event's number; of what happened to an alert the newest event's number then, a point, and the line's own."""
    return {
        "id": str(line.place),
        "at": time_as_text(line.at),
        "kind": str(line.kind),
        "actor": line.actor,
        "pipeline": line.pipeline,
        "generation": str(line.generation) if line.generation is not None else None,
        "says": line.says,
        "data": line.data or {},
        "plan": _key(line.plan),
        "recovery": _key(line.recovery),
        "audit": _key(line.audit),
        "alert": _key(line.alert),
    }


def _key(key: object) -> str | None:
    return None if key is None else str(key)
