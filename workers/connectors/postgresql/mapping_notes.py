"""What a person should know of a mapping: a view's ground, a joined table's rows, what a filter leaves out."""

from __future__ import annotations

from collections.abc import Collection

from recovery_api.domain.kinds.postgresql_mapping import filter_says
from workers.connectors.postgresql.opening import Opened

DELETION_MARKS = frozenset(
    {
        "deleted",
        "isdeleted",
        "softdeleted",
        "deletedat",
        "deletedon",
        "deletedate",
        "deletiontime",
        "deletedtime",
        "removedat",
    }
)
"""How columns are called that mark a row as deleted, without case and joints."""


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
    return said + deletion_notes(opened.table.columns, opened.mapped.types, "filter")


def deletion_notes(columns: Collection[str], named: Collection[str], option: str) -> list[str]:
    """A sentence for each column that reads like the mark of a deleted row and that nothing names. `option`: where to.

    >>> deletion_notes(["id", "Deleted_At"], ["id"], "filter")[0][:72]
    "A row that 'Deleted_At' marks as deleted counts as accepted: no option n"
    >>> deletion_notes(["id", "deleted_at"], ["id", "deleted_at"], "filter"), deletion_notes(["deletes"], [], "filter")
    ([], [])
    """
    return [
        f"A row that {name!r} marks as deleted counts as accepted: no option names that column. Name it in {option} if such a"
        " row is no acceptance."
        for name in columns
        if name not in named and "".join(filter(str.isalnum, name.casefold())) in DELETION_MARKS
    ]


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
