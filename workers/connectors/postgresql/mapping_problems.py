"""Problems of a mapping that only the newest rows show: paths that lead nowhere, texts that are not JSON."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.mapping import Term
from workers.connectors.postgresql.coordinate_sql import ROW, TEXTS
from workers.connectors.postgresql.mapped_rows import path_json, term_column
from workers.connectors.postgresql.mapped_table import MappedTable

ROWS_LOOKED_AT = 1000
PATHS = ("event_id", "key", "op", "content")


def path_problems(connection: psycopg.Connection[Any], mapped: MappedTable) -> list[str]:
    """A sentence for each path that none of the newest rows has, and for a text column of which one holds no JSON."""
    said: list[str] = []
    for option in PATHS:
        term = mapped.term(option)
        if term is None or not term.path:
            continue
        column, type_ = term_column(term), str(mapped.types[term.name]["type"])
        if type_ in TEXTS:
            if not mapped.has_soft_errors:
                continue  # an older server can only say so by an error, which names no row
            broken = sql.SQL("NOT pg_input_is_valid({}::text, 'json')").format(column)
            if count := _newest(connection, mapped, broken)[0]:
                said.append(
                    f"Column {term.name!r} holds no JSON in {count:,} of the newest rows, and {option} is a path in it."
                    " Filter those rows out, or map the column itself."
                )
                continue
        found, rows = _newest(connection, mapped, sql.SQL("{} IS NOT NULL").format(path_json(column, type_, term.path)))
        if rows and not found:
            said.append(_nowhere(option, term, rows))
    return list(dict.fromkeys(said))


def joined_weaknesses(connection: psycopg.Connection[Any], mapped: MappedTable) -> list[str]:
    """A sentence where some of the newest rows have no row in the joined table."""
    on = mapped.options.get("joined_on")
    theirs = [name for name, facts in mapped.types.items() if facts.get("is_joined") and facts["is_not_null"]]
    if not on or not theirs:
        return []
    column = term_column(Term(theirs[0].partition(".")[2], is_joined=True))
    lacking, rows = _newest(connection, mapped, sql.SQL("{} IS NULL").format(column))
    if not lacking:
        return []
    return [f"{lacking:,} of the newest {rows:,} rows have no row in {mapped.options['joined_table']!r}."]


def _nowhere(option: str, term: Term, rows: int) -> str:
    path = "->".join([term.name, *term.path])
    return f"None of the newest {rows:,} rows has {path!r}, which {option} is mapped to. Look at its spelling."


def _newest(connection: psycopg.Connection[Any], mapped: MappedTable, condition: sql.Composable) -> tuple[int, int]:
    """Of how many of the newest rows the condition holds, and how many were looked at."""
    row = connection.execute(
        sql.SQL(
            "SELECT count(*) FILTER (WHERE {}), count(*) FROM (SELECT {} FROM {} ORDER BY {} LIMIT {}) AS {}"
        ).format(
            condition,
            sql.SQL(", ").join(mapped.columns),
            mapped.rows,
            mapped.coordinate.order(is_descending=True),
            sql.Literal(ROWS_LOOKED_AT),
            sql.Identifier(ROW),
        )
    ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])
