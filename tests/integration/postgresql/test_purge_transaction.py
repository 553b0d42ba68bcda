"""The printed transaction in each spelling: it counts and sums what an audit's fingerprint counted and summed, or rolls back."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql

from recovery_api.domain.coordinates import Coordinate, coordinate_parse
from recovery_api.domain.kinds import kind_get, options_parse, spelling_of
from recovery_api.domain.kinds.postgresql_purge import purge_sql
from workers.evidence.grounds import history_fingerprint

SPELLED = {
    "bigint": ("bigint", "bigint", ["-9223372036854775808", "-5", "0", "7", "9223372036854775806"], "7", 4),
    "unsigned": (
        "numeric",
        "unsigned",
        ["0", "1", "18446744073709551614", "18446744073709551615"],
        "18446744073709551614",
        3,
    ),
    "pg_lsn": ("pg_lsn", "pg_lsn", ["0/1", "A/FFFFFFFF", "10/0", "FFFFFFFF/FFFFFFFF"], "10/0", 3),
    "pg_lsn as text": ("text", "pg_lsn", ["0/1", "A/0", "9/0", "10/0"], "A/0", 3),
}


@pytest.mark.parametrize(("type_", "spelling", "held", "at", "count"), SPELLED.values(), ids=SPELLED)
def test_it_deletes_what_was_counted_and_nothing_where_one_row_is_another(
    database_factory: Callable[[str], str], type_: str, spelling: str, held: list[str], at: str, count: int
) -> None:
    dsn = database_factory("purge")
    options = options_parse(
        kind_get("postgresql_outbox"),
        {
            "connection": "env:FENCEPOST_END_X",
            "schema": 'odd"schema',
            "table": "Out Box",
            "coordinate": ["Co ordinate"],
            "coordinate_spelling": spelling,
            "filter": "\"Kind\" in ('it''s', 'b\\')",
        },
    )
    known = spelling_of("postgresql_outbox", options)
    places = [coordinate_parse(one, known) for one in held]
    history = pa.table({name: [getattr(one, name) for one in places] for name in ("position", "ordinal")})
    frontier: Coordinate = coordinate_parse(at, known)
    counted = {name: str(value) for name, value in history_fingerprint(history, frontier).items()}
    assert counted["count"] == str(count)
    table = sql.Identifier('odd"schema', "Out Box")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier('odd"schema')))
        connection.execute(
            sql.SQL('CREATE TABLE {} ("Co ordinate" {}, "Kind" text)').format(table, sql.SQL(type_))  # type: ignore[arg-type]
        )
        row = sql.SQL("INSERT INTO {} VALUES (%s::text::{}, %s)").format(table, sql.SQL(type_))  # type: ignore[arg-type]
        for number, one in enumerate(held):
            connection.execute(row, [one, ("it's", "b\\")[number % 2]])
        connection.execute(row, [held[0], "of nobody"])
        text = purge_sql(options, frontier, counted, "the audit of 100%")
        other = {**counted, "positions": str(int(counted["positions"]) ^ 2)}
        for wrong in (other, {**counted, "count": str(count - 1)}):
            with pytest.raises(
                psycopg.errors.RaiseException, match=f"{count} rows lie at or below .*the audit of 100% "
            ):
                connection.execute(purge_sql(options, frontier, wrong, "the audit of 100%"))  # type: ignore[call-overload]
        connection.execute(text)  # type: ignore[call-overload]
        kept = connection.execute(
            sql.SQL('SELECT count(*), count(*) FILTER (WHERE "Kind" = %s) FROM {}').format(table), ["of nobody"]
        )
        assert kept.fetchone() == (len(held) - count + 2, 1), "the newest that was counted stays"
