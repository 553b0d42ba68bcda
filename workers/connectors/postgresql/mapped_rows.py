"""The rows that a mapping reads: one table or view, perhaps a joined table, and the filter that says which rows count.

One law: a name is an identifier, a value is a literal, both made by psycopg.sql; nothing that a person wrote is SQL.
Whatever is joined or filtered, every other statement sees one relation under one alias (`coordinate_sql.ROW`), so that
ranges, ends, samples and contents are read the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from typing import Any

from psycopg import sql

from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.kinds.postgresql_mapping import IDENTIFIER_BYTES, condition_check, filter_of, joined_place
from recovery_api.domain.mapping import JOINED, Comparison, Condition, Term, term_parse
from workers.connectors.postgresql.coordinate_sql import ROW, TEXTS, column_of_row
from workers.connectors.postgresql.identifiers import qualified

Composable = sql.Composable
Types = Mapping[str, Mapping[str, Any]]
"""A mapped column as a Term names it, to type, scale, is_not_null and, for the other table's, is_joined."""

JOINED_ROW = "joined_row"
"""The alias of the joined table, inside the relation that everybody else sees."""

JSON_TYPES = ("jsonb", "json", *TEXTS)
"""What a path may lead into: a text column holds JSON, or reading it says that it does not."""

TIMES = ("date", "time", "timetz", "timestamp", "timestamptz", "interval")


def term_of(text: str, types: Types, field: str = "a mapped value") -> Term:
    """What a mapped value means here. `types` holds at least the columns that the mapping names."""
    own = [name for name, facts in types.items() if not facts.get("is_joined")]
    joined = [name.removeprefix(JOINED) for name, facts in types.items() if facts.get("is_joined")]
    return term_parse(field, text, own, joined)


def term_column(term: Term) -> sql.Identifier:
    """The term's column, as it is seen under the one alias."""
    return column_of_row(_alias(term.name) if term.is_joined else term.column)


def path_text(column: Composable, type_: str, path: Collection[str]) -> Composable:
    """The leaf as text: NULL where the path leads nowhere, or to null."""
    return _path(column, type_, path, "_text")


def path_json(column: Composable, type_: str, path: Collection[str]) -> Composable:
    """The leaf as JSON: NULL where the path leads nowhere; JSON's own null stays one."""
    return _path(column, type_, path, "")


def _path(column: Composable, type_: str, path: Collection[str], tail: str) -> Composable:
    """By the functions, since `json` keeps what `jsonb` cannot hold; a text column is read as `json`."""
    kind = "jsonb" if type_ == "jsonb" else "json"
    parts = sql.SQL(", ").join(sql.Literal(part) for part in path)
    given = column if type_ in ("json", "jsonb") else sql.SQL("{}::json").format(column)
    name = sql.SQL(f"{kind}_extract_path{tail}")
    return sql.SQL("{}({}, {})").format(name, given, parts)


def rows_sql(
    options: Mapping[str, Any], types: Types, carrying: Iterable[str] = (), sampled: Composable | None = None
) -> Composable:
    """What a statement reads FROM. `carrying`: system columns that it needs besides; `sampled`: a TABLESAMPLE clause."""
    table = sql.SQL("{} AS {}").format(qualified(options["schema"], options["table"]), sql.Identifier(ROW))
    if sampled is not None:
        table = sql.SQL("{} {}").format(table, sampled)
    place, conditions = joined_place(options), filter_of(options)
    if place is None and not conditions:
        return table
    columns = [_selected(name, facts) for name, facts in types.items()]
    columns += [column_of_row(name) for name in carrying]
    joined: Composable = sql.SQL("")
    if place is not None:
        met = [
            sql.SQL("{} = {}").format(column_of_row(own), sql.Identifier(JOINED_ROW, theirs))
            for own, theirs in options["joined_on"].items()
        ]
        other = sql.SQL("{} AS {}").format(qualified(*place), sql.Identifier(JOINED_ROW))
        joined = sql.SQL(" LEFT JOIN {} ON {}").format(other, sql.SQL(" AND ").join(met))
    return sql.SQL("(SELECT {} FROM {}{} WHERE {}) AS {}").format(
        sql.SQL(", ").join(columns), table, joined, filter_sql(conditions, types), sql.Identifier(ROW)
    )


def filtered_columns(options: Mapping[str, Any], types: Types) -> list[str]:
    """The columns that the filter looks at."""
    terms = [term_of(condition.column, types, "filter") for condition in filter_of(options)]
    return list(dict.fromkeys(term.column for term in terms))


def filter_sql(conditions: Collection[Condition], types: Types) -> Composable:
    """All of the conditions; `true` where there is none."""
    return sql.SQL(" AND ").join(condition_sql(one, types) for one in conditions) if conditions else sql.SQL("true")


def condition_sql(condition: Condition, types: Types) -> Composable:
    """One condition, over the table's own row. Raises: BadInput, Unsuitable."""
    term = term_of(condition.column, types, "filter")
    condition_check(condition, term)
    value: Composable = column_of_row(term.column)
    type_ = types[term.column]["type"]
    if term.path:
        value, type_ = path_text(value, path_type(term, types), term.path), "text"
    said = [_literal(condition, type_, one) for one in condition.values]
    match condition.comparison:
        case Comparison.IS_NULL:
            return sql.SQL("{} IS NULL").format(value)
        case Comparison.IS_NOT_NULL:
            return sql.SQL("{} IS NOT NULL").format(value)
        case Comparison.IN:
            return sql.SQL("{} IN ({})").format(value, sql.SQL(", ").join(said))
        case Comparison.OTHER:
            return sql.SQL("{} IS DISTINCT FROM {}").format(value, said[0])
    return sql.SQL("{} {} {}").format(value, sql.SQL(condition.comparison.value), said[0])


def path_type(term: Term, types: Types) -> str:
    """The type of the column that a path leads into. Raises: Unsuitable where that is no JSON."""
    type_ = str(types[term.name]["type"])
    if type_ not in JSON_TYPES:
        problem = f"is {type_}, and a path leads into JSON only"
        raise Unsuitable(
            f"column {term.name!r}", problem, f"It must be {', '.join(JSON_TYPES)}; or map the column itself."
        )
    return type_


def _literal(condition: Condition, type_: str, value: str) -> Composable:
    """The value as a literal, which takes the column's type. Raises: Unsuitable for one that means another every day."""
    if type_ in TIMES and not value[:1].isdigit():
        problem = f"compares a {type_} with {value!r}"
        raise Unsuitable(
            f"filter {str(condition)!r}", problem, "Write a fixed time, with its zone: 2024-01-31 00:00:00+00."
        )
    return sql.Literal(value)


def _selected(name: str, facts: Mapping[str, Any]) -> Composable:
    if not facts.get("is_joined"):
        return column_of_row(name)
    column = sql.Identifier(JOINED_ROW, name.removeprefix(JOINED))
    return sql.SQL("{} AS {}").format(column, sql.Identifier(_alias(name)))


def _alias(name: str) -> str:
    """What a joined column is called in the one relation: as it is written, unless PostgreSQL would cut that."""
    if len(name.encode("utf-8", "surrogatepass")) <= IDENTIFIER_BYTES:
        return name
    return JOINED + sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
