"""What a person should know of a mapping: a view's ground, a joined table's rows, what a filter leaves out."""

from __future__ import annotations

from recovery_api.domain.kinds.postgresql_mapping import filter_says
from workers.connectors.postgresql.opening import Opened


def source_notes(opened: Opened) -> list[str]:
    """Sentences that belong to every verdict from a source so mapped."""
    said = _notes(opened)
    if filter_ := filter_says(opened.mapped.options):
        said.append(
            f"Only rows with {filter_} are owed. What the sink accepted of other rows of the table is judged as never"
            " committed: look at the filter before you call it premature."
        )
    return said


def record_notes(opened: Opened) -> list[str]:
    """Sentences that belong to every verdict from a record so mapped."""
    said = _notes(opened)
    if filter_ := filter_says(opened.mapped.options):
        said.append(f"Only rows with {filter_} count as accepted.")
    return said


def _notes(opened: Opened) -> list[str]:
    table, joined = opened.table, opened.mapped.options.get("joined_table")
    said = []
    if table.is_view:
        said.append(
            f"{table.schema}.{table.name} is a view over {' and '.join(table.over)}: what the catalogue proves of a table"
            " does not carry over to a view, so what is safe is assumed. What it leaves out today it may show tomorrow."
        )
    if joined:
        said.append(
            f"Columns of {joined!r} are read as they are now: a row that is changed there changes the events that were"
            " sent with it, and an event without a row there has null for them."
        )
    return said
