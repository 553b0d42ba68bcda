"""What is required of a joined table and of a filter: neither may change how often a row counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.kinds.postgresql_mapping import filter_of
from workers.connectors.postgresql.catalogue import RELKINDS, Table, column_get
from workers.connectors.postgresql.coordinate_sql import INTEGERS, ROW
from workers.connectors.postgresql.identifiers import qualified
from workers.connectors.postgresql.mapped_rows import condition_sql, term_of
from workers.connectors.postgresql.mapped_table import MappedTable

UNIQUE = """
SELECT array_agg(a.attname::text)
FROM pg_index i
CROSS JOIN LATERAL unnest(i.indkey::int2[], i.indcollation::oid[]) WITH ORDINALITY AS k (attnum, collated, n)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND a.attcollation = k.collated
WHERE i.indrelid = %s::bigint::oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
  AND i.indexprs IS NULL AND k.n <= i.indnkeyatts
GROUP BY i.indexrelid HAVING bool_and(a.attname IS NOT NULL)
"""
"""Columns that no two rows share. A deferrable constraint lets them share for a while; another collation's equality is
not the column's."""

MULTIPLIES = "and a row that met several would count several times"


def joined_open(connection: psycopg.Connection[Any], on: Mapping[str, str], table: Table, joined: Table) -> None:
    """Nothing, where each row meets one row of the joined table at most. Raises: NotFound, Unsuitable."""
    place = f"{joined.schema}.{joined.name}"
    if joined.relkind not in ("r", "p"):
        kind = RELKINDS.get(joined.relkind, joined.relkind)
        raise Unsuitable(place, f"is a {kind}, not a table", "Join a table: only a table shows that its key is unique.")
    for own, theirs in on.items():
        mine, other = column_get(table, own).type, column_get(joined, theirs).type
        if mine != other and not (mine in INTEGERS and other in INTEGERS):
            problem = f"is {mine}, and {theirs!r} of {place} is {other}"
            raise Unsuitable(f"column {own!r}", problem, "Join columns of one type, or join in a view.")
    unique = [set(names) for (names,) in connection.execute(UNIQUE.encode(), [joined.oid])]
    if not any(names <= set(on.values()) for names in unique):
        named = ", ".join(map(repr, on.values()))
        remedy = "Join by the columns of its primary key, or of a unique constraint that is valid and not deferrable."
        raise Unsuitable(f"{place} ({named})", f"is not known to be unique, {MULTIPLIES}", remedy)


def filter_refuse(connection: psycopg.Connection[Any], mapped: MappedTable) -> None:
    """Nothing, where the server can compare each condition's column with its values. Raises: BadInput, Unsuitable."""
    for condition in filter_of(mapped.options):
        asked = sql.SQL("EXPLAIN SELECT FROM {} AS {} WHERE {}").format(
            qualified(mapped.options["schema"], mapped.options["table"]),
            sql.Identifier(ROW),
            condition_sql(condition, mapped.types),
        )
        try:
            connection.execute(asked)
        except (psycopg.DataError, psycopg.ProgrammingError) as error:
            term = term_of(condition.column, mapped.types)
            type_ = "text" if term.path else mapped.types[term.column]["type"]
            problem = f"cannot be asked of a column of type {type_}"
            remedy = "Write the value as PostgreSQL prints that type; json has no comparison: filter by a path in it."
            raise Unsuitable(f"filter {str(condition)!r}", problem, remedy) from error
