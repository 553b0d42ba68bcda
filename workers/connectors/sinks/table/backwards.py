"""Whether a mapping can be used backwards: only where every mapped value is a column of the table itself."""

from __future__ import annotations

from workers.connectors.postgresql.opening import Opened

WRITTEN_FORMATS = ("json", "text", "bytes")
MAPPED = ("digest", "content", "key", "op", "event_id", "accepted_at")


def backwards_obstacles(opened: Opened) -> list[str]:
    """Why no row can be written so that this mapping reads it again as it was owed; empty where it can."""
    mapped, table = opened.mapped, opened.table
    said = []
    if table.is_view:
        said.append(f"{table.schema}.{table.name} is a view: rows are written to a table. Register the table itself.")
    if mapped.options.get("filter"):
        said.append(
            "The record has a filter: a row that is written here might not be one that it counts. Record the effect in a"
            " table of its own, without a filter."
        )
    for option in MAPPED:
        term = mapped.term(option)
        if term is not None and (term.is_constant or term.is_joined or term.path):
            what = "a constant" if term.is_constant else "another table's column" if term.is_joined else "a path"
            said.append(
                f"{option} is mapped to {what} ({mapped.options[option]!r}), which cannot be written. Map a column."
            )
    if mapped.options.get("content") and (form := mapped.options["content_format"]) not in WRITTEN_FORMATS:
        said.append(f"Contents are read as {form}, which is not written. Map a column of {', '.join(WRITTEN_FORMATS)}.")
    return said
