"""A few rows as they are mapped, for a person to see before an end is saved.

One law: texts are cut by the server. However large a content, a key or an id is, a few hundred characters travel; and
rows are chosen before any content is unpacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql

from workers.connectors.postgresql.coordinate_sql import ROW
from workers.connectors.postgresql.mapped_table import MappedTable

SAMPLE_ROWS = 5
SAMPLE_CHARACTERS = 200
"""Of a text; a content of bytes is shown as the hex of half as many."""

Composable = sql.Composable


def newest_read(
    connection: psycopg.Connection[Any], mapped: MappedTable, evidence: Sequence[str], by: str | None = None
) -> dict[str, Any]:
    """The rows with the highest coordinates, highest first; with `by`, those with the highest number in that option's
    column. `evidence`: options whose columns are shown as they print.

    Gives says, columns (the mapped ones, in order) and rows: coordinate, a cut text a column, and of the content
    `content_bytes` and `content_start`, which is for who may read contents and is kept apart.
    """
    shown = [name for name in ("event_id", "key", "op", *evidence) if mapped.options.get(name)]
    parts = {name: _cut(_text(mapped, name)) for name in shown}
    has_content = mapped.options.get("content") is not None
    if has_content:
        parts |= _content(mapped)
    components = mapped.coordinate.components
    sends = [component.send for component in components]
    query = sql.SQL("SELECT {parts} FROM ({chosen}) AS {row} ORDER BY {order}").format(
        parts=sql.SQL(", ").join([*sends, *parts.values()]),
        chosen=_chosen(mapped, by),
        row=sql.Identifier(ROW),
        order=_order(mapped, by),
    )
    rows = []
    for found in connection.execute(query):
        held = mapped.coordinate.hold(list(found[: len(sends)]))
        texts = dict(zip(parts, found[len(sends) :], strict=True))
        rows.append({"coordinate": mapped.coordinate.format(held), **{name: ended(texts[name]) for name in texts}})
    order = f"the highest {'coordinate' if by is None else by} first"
    return sample(rows, ["coordinate", *shown, *(["content"] if has_content else [])], order)


NO_ROW = "The table holds no row yet: that the mapping fits is shown by its types only."


def sample(rows: list[dict[str, Any]], columns: list[str], order: str, without: str = NO_ROW) -> dict[str, Any]:
    """What a report carries of rows that were read. `without` any, it says that."""
    found = f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}, {order}."
    return {"says": found if rows else without, "columns": columns, "rows": rows}


def ended(value: Any) -> Any:
    """A text of more than SAMPLE_CHARACTERS cut there, with a mark; anything else as it is."""
    if isinstance(value, str) and len(value) > SAMPLE_CHARACTERS:
        return value[:SAMPLE_CHARACTERS] + "…"
    return value


def _chosen(mapped: MappedTable, by: str | None) -> Composable:
    """The few rows themselves: nothing but the mapped columns, contents still packed."""
    return sql.SQL("SELECT {} FROM {} ORDER BY {} LIMIT {}").format(
        sql.SQL(", ").join(mapped.columns),
        mapped.rows,
        _order(mapped, by),
        sql.Literal(SAMPLE_ROWS),
    )


def _order(mapped: MappedTable, by: str | None) -> Composable:
    highest = mapped.coordinate.order(is_descending=True)
    column = mapped.column(by) if by else None
    return highest if column is None else sql.SQL("{} DESC NULLS LAST, {}").format(column, highest)


def _text(mapped: MappedTable, name: str) -> Composable:
    if name == "op":
        return sql.SQL("coalesce({}, {}::text || ' (mapped to nothing)')").format(mapped.op, mapped.column("op"))
    if mapped.type_of(name) == "bytea":
        return sql.SQL("encode(substring({} from 1 for {}), 'hex')").format(
            mapped.column(name), sql.Literal(SAMPLE_CHARACTERS)
        )
    return sql.SQL("{}::text").format(mapped.column(name))


def _content(mapped: MappedTable) -> dict[str, Composable]:
    column, is_bytes = mapped.column("content"), mapped.type_of("content") == "bytea"
    if is_bytes:
        half = sql.Literal(SAMPLE_CHARACTERS // 2)
        start = sql.SQL(r"'\x' || encode(substring({} from 1 for {}), 'hex')").format(column, half)
        return {"content_bytes": sql.SQL("octet_length({})").format(column), "content_start": start}
    text = sql.SQL("{}::text").format(column)
    return {"content_bytes": sql.SQL("octet_length({})").format(text), "content_start": _cut(text)}


def _cut(text: Composable) -> Composable:
    """One character more than is shown, so that a cut is seen."""
    return sql.SQL("left({}, {})").format(text, sql.Literal(SAMPLE_CHARACTERS + 1))
