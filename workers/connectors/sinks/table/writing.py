"""A mapping used backwards: which columns an owed event fills, and with what.

One law: a column is written only where reading it through the same mapping gives back what was owed. Every row is
checked for that before it is sent, so nothing is landed that an audit would call altered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from recovery_api.domain.coordinates import Spelling
from workers.connectors.postgresql.coordinate_sql import INTEGERS, TEXTS, Component
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.sinks.table.facts import WrittenColumn

Composable = sql.Composable

OWED = "owed"
"""The alias of the rows that came, with the columns of schemas.BATCH and their payload digest."""

SHIFT = "9223372036854775808"


@dataclass(frozen=True, slots=True)
class Written:
    """One column that is written, and the expression over the alias `owed` that fills it."""

    name: str
    value: Composable


def columns_written(mapped: MappedTable, columns: Mapping[str, WrittenColumn]) -> list[Written]:
    """Each written column once, coordinate first. A column that is mapped twice is written as the first of them."""
    found: dict[str, Composable] = {}
    for component, came in zip(mapped.coordinate.components, ("position", "ordinal"), strict=False):
        found[component.column] = _number(component, mapped, _owed(came))
    for option in ("digest", "content", "key", "op", "event_id", "accepted_at"):
        name = column_mapped(mapped, option)
        if name is None or name in found:
            continue
        column = columns[name]
        value: Composable
        match option:
            case "digest":
                value = sql.SQL("encode({}, 'hex')" if column.base in TEXTS else "{}").format(_owed("digest"))
            case "content":
                value = _content(mapped.options["content_format"], column)
            case "op":
                value = _cast(_op(mapped), column)
            case "accepted_at":
                if column.has_default or column.is_generated:
                    continue
                value = sql.SQL("now()")
            case _:
                value = _cast(_owed(option), column)
        found[name] = value
    return [Written(name, value) for name, value in found.items()]


def column_mapped(mapped: MappedTable, option: str) -> str | None:
    """The table's own column that the option maps whole; None where it maps none, or something that is only read."""
    term = mapped.term(option)
    return None if term is None or term.is_constant or term.is_joined or term.path else term.column


def only_read(mapped: MappedTable) -> Iterator[str]:
    """A sentence for each thing of the mapping that can be read and not written."""
    for option in ("event_id", "key", "op", "content", "digest", "accepted_at"):
        term = mapped.term(option)
        if term is None or term.is_constant:
            continue
        if term.is_joined:
            yield (
                f"{option} is read from the joined table ({term.name}), and a row is written into one table. Map a column of"
                " the table itself."
            )
        elif term.path:
            yield (
                f"{option} is read from a path in column {term.column!r}, and what else that column holds is not known."
                " Map a column of its own."
            )
    if mapped.options.get("joined_table"):
        yield "A table is joined, so a row of this one alone is not a whole row of the record. Map one table."
    if mapped.options.get("filter"):
        yield (
            "A filter says which rows count, and a row that is written may not meet it. Name a table, or its partition, in"
            " which every row counts."
        )


def value_of_op(options: Mapping[str, Any]) -> dict[str, str]:
    """How the op column spells each op: of several spellings the first that was registered.

    >>> value_of_op({"op": "what", "op_values": {"c": "insert", "r": "insert", "d": "delete"}})
    {'insert': 'c', 'delete': 'd'}
    """
    said: dict[str, str] = {}
    for value, op in (options.get("op_values") or {op: op for op in ("insert", "update", "delete")}).items():
        said.setdefault(op, value)
    return said


def _owed(name: str) -> Composable:
    return sql.Identifier(OWED, name)


def _cast(value: Composable, column: WrittenColumn) -> Composable:
    """Texts are assigned, since a cast would cut one that is too long in silence."""
    return value if column.base in TEXTS else sql.SQL("({})::{}").format(value, sql.SQL(column.declared))


def _op(mapped: MappedTable) -> Composable:
    whens = [
        sql.SQL("WHEN {} THEN {}").format(sql.Literal(op), sql.Literal(value))
        for op, value in value_of_op(mapped.options).items()
    ]
    return sql.SQL("CASE {} {} END").format(_owed("op"), sql.SQL(" ").join(whens))


def _content(form: str, column: WrittenColumn) -> Composable:
    raw = _owed("content")
    said = sql.SQL("(({})::jsonb #>> '{{}}')").format(raw)
    match form:
        case "json":
            return raw if column.base in TEXTS else sql.SQL("({})::{}").format(raw, sql.SQL(column.declared))
        case "escaped":
            return _cast(sql.SQL("to_json({})::text").format(raw), column)
        case "bytes":
            return sql.SQL("decode(substr({}, 3), 'hex')").format(said)
        case "hex":
            return sql.SQL("substr({}, 3)").format(said)
        case "base64":
            return sql.SQL("translate(encode(decode(substr({}, 3), 'hex'), 'base64'), E'\\n', '')").format(said)
        case "json_bytes":
            return sql.SQL("convert_to({}, 'UTF8')").format(raw)
        case "text_bytes":
            return sql.SQL("convert_to({}, 'UTF8')").format(said)
    return _cast(said, column)


def _number(component: Component, mapped: MappedTable, held: Composable) -> Composable:
    """The held number as its column spells it: what `Component.send` and `Component.held` give, backwards."""
    type_ = mapped.types[component.column]["type"]
    if not component.shift:
        if mapped.spelling is Spelling.UNSIGNED and type_ in INTEGERS:
            return sql.SQL("({} # '-9223372036854775808'::int8)").format(held)
        return held
    number = sql.SQL("({}::numeric + " + SHIFT + ")").format(held)
    if component.cast == "pg_lsn":
        position = sql.SQL("('0/0'::pg_lsn + {})").format(number)
        return sql.SQL("({})::text").format(position) if type_ in TEXTS else position
    if component.cast == "xid8":
        return sql.SQL("({})::text::xid8").format(number)
    return number
