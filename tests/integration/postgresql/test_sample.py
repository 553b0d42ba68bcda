"""The few rows that a connection test shows: cut by the server, as they are mapped, and nothing else is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_kit import kit_options
from tests.integration.postgresql.mapped_tables import Bench
from workers.connectors.postgresql.connection import Address, snapshot_open
from workers.connectors.postgresql.opening import table_open
from workers.connectors.postgresql.sample import SAMPLE_CHARACTERS, newest_read
from workers.connectors.registry import delivery_make
from workers.connectors.sinks.kit.install import kit_install

TABLE = (
    "CREATE TABLE outbox (id bigint PRIMARY KEY, event text, key text, op text, content {}, at timestamptz, tx xid8)"
)
MAPPED = {"event_id": "event", "key": "key", "op": "op", "content": "content", "committed_at": "at", "commit_xid": "tx"}
BIG = 24 * 2**20


def rows_of(connector: Any) -> list[dict[str, Any]]:
    report = connector.test()
    assert report.is_usable, report.problems
    return list(report.sample["rows"])


def insert(bench: Bench, id_: int, content: Any, op: str = "insert", key: str = "k") -> None:
    bench.run.execute(
        "INSERT INTO outbox VALUES (%s, 'e' || %s, %s, %s, %s, '2026-06-01 12:00+02', '740')",
        [id_, id_, key, op, content],
    )


def test_newest_five_rows_are_shown_with_every_mapped_column(bench: Bench) -> None:
    bench.run.execute(TABLE.format("jsonb"))
    for id_ in range(1, 8):
        insert(bench, id_, json.dumps({"n": id_}))
    report = bench.source(**MAPPED).test()
    assert report.sample["says"] == "5 rows, the highest coordinate first."
    assert report.sample["columns"] == [
        "coordinate",
        *("event_id", "key", "op", "committed_at", "commit_xid"),
        "content",
    ]
    assert [row["coordinate"] for row in report.sample["rows"]] == ["7", "6", "5", "4", "3"]
    assert report.sample["rows"][0] == {
        "coordinate": "7",
        "event_id": "e7",
        "key": "k",
        "op": "insert",
        "committed_at": "2026-06-01 10:00:00+00",
        "commit_xid": "740",
        "content_bytes": 8,
        "content_start": '{"n": 7}',
    }


def test_large_content_key_and_id_are_cut_by_the_server_and_never_travel(bench: Bench, tmp_path: Path) -> None:
    bench.run.execute(TABLE.format("jsonb"))
    for id_ in range(1, 6):
        insert(bench, id_, json.dumps({"a": "é" * (BIG // 2)}), key="k" * 2_000_000)
    source = bench.source(**MAPPED)
    with snapshot_open(Address.of(source.options)) as connection, (tmp_path / "wire").open("w+b") as wire:
        opened = table_open(connection, source.options, tuple(MAPPED))
        connection.pgconn.trace(wire.fileno())
        rows = newest_read(connection, opened.mapped, ("committed_at",))["rows"]
        connection.pgconn.untrace()
        assert 0 < (tmp_path / "wire").stat().st_size < 20_000
    assert [row["content_bytes"] for row in rows] == [BIG + 9] * 5
    assert {len(row["content_start"]) for row in rows} == {len(row["key"]) for row in rows} == {SAMPLE_CHARACTERS + 1}
    assert rows[0]["content_start"].endswith("é…")


@pytest.mark.parametrize(
    ("type_", "content_format", "content", "size", "start"),
    [
        ("bytea", "bytes", b"\x00\xff" * 500, 1000, "\\x" + "00ff" * 49 + "00…"),
        ("text", "text", "a\tb \u202e <i>", 11, "a\tb \u202e <i>"),
        ("text", "text", "", 0, ""),
        ("text", "text", None, None, None),
        ("json", "json", '{"a":  1}', 9, '{"a":  1}'),
        ("numeric", "text", "1.50", 4, "1.50"),
    ],
)
def test_content_of_every_type_is_shown_as_it_prints(
    bench: Bench, type_: str, content_format: str, content: Any, size: int | None, start: str | None
) -> None:
    bench.run.execute(TABLE.format(type_))
    insert(bench, 1, content)
    [row] = rows_of(bench.source(**MAPPED, content_format=content_format))
    assert (row["content_bytes"], row["content_start"]) == (size, start)


def test_op_that_is_mapped_to_nothing_is_shown_as_it_stands(bench: Bench) -> None:
    bench.run.execute(TABLE.format("jsonb"))
    insert(bench, 1, None, op="truncate")
    report = bench.source(**MAPPED).test()
    assert not report.is_usable
    assert [row["op"] for row in report.sample["rows"]] == ["truncate (mapped to nothing)"]


def test_nothing_but_the_mapped_columns_is_read(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY, key text, secret text, content jsonb)")
    bench.run.execute("INSERT INTO outbox VALUES (1, 'k', 'hush', '{}')")
    role = sql.Identifier("sample_reader")
    bench.run.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'r'").format(role))
    try:
        bench.run.execute(sql.SQL("GRANT SELECT (id, key, content) ON outbox TO {}").format(role))
        dsn = make_conninfo(bench.dsn, user="sample_reader", password="r")
        [row] = rows_of(bench.source(dsn=dsn, key="key", content="content"))
        assert row["key"] == "k" and "hush" not in str(row)
    finally:
        bench.run.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(role))


def test_coordinates_are_shown_in_their_own_spelling(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id pg_lsn, key text)")
    bench.run.execute("INSERT INTO outbox VALUES ('16/B374D848', 'k')")
    rows = rows_of(bench.source(coordinate_spelling="pg_lsn", key="key"))
    assert [row["coordinate"] for row in rows] == ["16/B374D848"]


def test_table_without_rows_says_so(bench: Bench) -> None:
    bench.run.execute(TABLE.format("jsonb"))
    report = bench.source(**MAPPED).test()
    assert report.sample["rows"] == [] and "holds no row yet" in report.sample["says"]


def test_table_of_acceptances_shows_the_latest_by_entry_where_an_index_finds_them(bench: Bench) -> None:
    bench.run.execute(
        "CREATE TABLE accepted (entry bigint GENERATED ALWAYS AS IDENTITY, id bigint PRIMARY KEY, key text)"
    )
    bench.run.execute("INSERT INTO accepted (id, key) SELECT n, 'k' FROM generate_series(9, 1, -1) n")
    by_coordinate = bench.sink(key="key", entry="entry", content="key", content_format="text").test()
    assert [row["coordinate"] for row in by_coordinate.sample["rows"]] == ["9", "8", "7", "6", "5"]
    bench.run.execute("CREATE INDEX ON accepted (entry)")
    by_entry = bench.sink(key="key", entry="entry", content="key", content_format="text").test()
    assert [(row["entry"], row["coordinate"]) for row in by_entry.sample["rows"]][:2] == [("9", "1"), ("8", "2")]
    assert by_entry.sample["says"] == "5 rows, the highest entry first."


def test_kit_shows_its_latest_acceptances_though_newer_numbers_were_drawn_for_nothing(
    database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    dsn = database_factory("kit")
    (tmp_path / "kit").write_text(dsn)
    options = options_parse(kind_get("postgresql_kit"), {"connection": f"file:{tmp_path / 'kit'}"})
    with psycopg.connect(dsn, autocommit=True) as connection:
        kit_install(connection, kit_options(options))
        sink = delivery_make("postgresql_kit", options)
        assert sink.test().sample["rows"] == []
        for id_ in range(7):
            connection.execute(
                "INSERT INTO fencepost.accepted (lane, position, ordinal, generation, accepted_at, admitted_in,"
                " payload_digest, op, event_id, key) VALUES ('0', %s, 0, 1, now(), pg_current_xact_id(), '\\x00', 'insert',"
                " 'e', %s)",
                [id_, "k" * 1000],
            )
        connection.execute("SELECT setval(pg_get_serial_sequence('fencepost.accepted', 'entry'), 2000000)")
    report = sink.test()
    rows = report.sample["rows"]
    assert [(row["coordinate"], row["entry"]) for row in rows] == [(str(6 - at), str(7 - at)) for at in range(5)]
    assert len(rows[0]["key"]) == SAMPLE_CHARACTERS + 1 and rows[0]["payload_digest"] == "00"
    assert "content_bytes" not in rows[0]
