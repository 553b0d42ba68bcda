"""What a connection test says about a table: bad input named with its remedy, and nothing changed."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import AccessDenied, BadInput, FencepostError, NotFound, Unreachable, Unsuitable
from tests.integration.postgresql.mapped_tables import Bench, history, lane
from tests.pins import pin
from workers.connectors.readings import ConnectionReport, Width

TABLE = "CREATE TABLE outbox (id bigint PRIMARY KEY, key text, op text, content jsonb, at timestamptz)"


def problem_of(report: ConnectionReport) -> str:
    assert not report.is_usable
    return " ".join(report.problems)


def error_of(report: ConnectionReport) -> FencepostError:
    return FencepostError.from_row(report.facts["error"])


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        ({"password": "wrong-secret"}, AccessDenied, "password was not accepted"),
        ({"user": "nobody_here"}, AccessDenied, "login or its password"),
        ({"dbname": "no_such_database"}, NotFound, "no_such_database"),
        ({"port": "1"}, Unreachable, "refused"),
        ({"host": "no-such-host.invalid"}, Unreachable, "no-such-host.invalid"),
    ],
)
def test_a_connection_that_fails_says_why_and_never_the_password(
    bench: Bench, change: dict[str, str], kind: type[FencepostError], says: str
) -> None:
    dsn = make_conninfo(bench.dsn, **change)
    source = bench.source(dsn=dsn, connect_timeout_seconds=5)
    report = source.test()
    problem = problem_of(report)
    assert isinstance(error_of(report), kind)
    assert says in problem
    password = change.get("password") or bench.run.info.password
    assert password not in problem
    with pytest.raises(kind) as raised:
        pin(source)
    cause = raised.value.__cause__
    assert cause is None or getattr(cause, "pgconn", None) is None, "the driver's exception still holds the connection"


def test_a_connection_string_that_cannot_be_read_is_not_quoted(bench: Bench) -> None:
    for dsn in ("postgresql://u:hush%zz@h/db", "nonsense=1 password=hush", "postgresql://u:hush@h:port/db"):
        report = bench.source(dsn=dsn).test()
        assert "hush" not in repr(report)
        assert isinstance(error_of(report), BadInput | Unreachable)


def test_a_credential_that_is_not_there_is_named_by_its_reference(bench: Bench) -> None:
    source = bench.source(connection="env:FENCEPOST_END_NO_SUCH_CREDENTIAL")
    assert "FENCEPOST_END_NO_SUCH_CREDENTIAL" in problem_of(source.test())


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"table": "Outbox"}, NotFound, "'outbox'"),
        ({"table": "no_such"}, NotFound, "no_such"),
        ({"schema": "publik"}, NotFound, "'public'"),
        ({"coordinate": "Id"}, NotFound, "'id'"),
        ({"key": "keys"}, NotFound, "'key'"),
        ({"coordinate": "content"}, Unsuitable, "is jsonb and cannot hold a bigint coordinate"),
        ({"coordinate": "at"}, Unsuitable, "timestamptz"),
        ({"content": "content", "content_format": "bytes"}, Unsuitable, "cannot be read as bytes"),
        ({"content": "at", "content_format": "json"}, Unsuitable, "cannot be read as json"),
        ({"key": "content"}, Unsuitable, "cannot be the key"),
        ({"committed_at": "key"}, Unsuitable, "committed_at"),
        ({"commit_xid": "id"}, Unsuitable, "xid8"),
        ({"table": "seen"}, Unsuitable, "is a materialized view"),
        ({"table": "numbers"}, Unsuitable, "is a sequence"),
        ({"table": 'x"; DROP TABLE outbox; --'}, NotFound, "DROP TABLE"),
        ({"table": "outbox WHERE false"}, NotFound, "'outbox'"),
        ({"coordinate": "id) FROM outbox; DROP TABLE outbox; --"}, NotFound, "DROP TABLE"),
    ],
)
def test_what_is_mapped_wrong_is_named_with_what_is_nearest(
    bench: Bench, options: dict[str, Any], kind: type[FencepostError], says: str
) -> None:
    bench.run.execute(TABLE)
    bench.run.execute("INSERT INTO outbox VALUES (1, 'k', 'insert', '{}')")
    bench.run.execute("CREATE MATERIALIZED VIEW seen AS SELECT * FROM outbox; CREATE SEQUENCE numbers")
    source = bench.source(**options)
    report = source.test()
    assert says in problem_of(report)
    assert isinstance(error_of(report), kind)
    for use in (lambda: pin(source), lambda: history(source)):
        with pytest.raises(kind):
            use()
    assert bench.run.execute("SELECT count(*) FROM outbox").fetchone() == (1,)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"table": "x" * 64}, "63 bytes"),
        ({"key": "a\x00b"}, "NUL|not a text"),
        ({"coordinate": ["id", "key"]}, "2 columns"),
        ({"coordinate": ["id"], "coordinate_spelling": "xid8_bigint"}, "1 columns"),
        ({"op": "op", "op_values": {"c": "create"}}, "'create'"),
        ({"op_values": {"c": "insert"}}, "without an op column"),
        ({"connection": "postgresql://u:p@h/db"}, "env:FENCEPOST_END_NAME or file:"),
        ({"tabel": "outbox"}, "'table'"),
        ({"lock_timeout_ms": 60000}, "outside 1 to 1000"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_before_any_connection(
    bench: Bench, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        bench.source(**options)


def test_a_null_coordinate_is_a_problem_and_never_passed_over(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint, key text)")
    bench.run.execute("INSERT INTO outbox VALUES (1, 'a'), (NULL, 'b')")
    source = bench.source()
    assert "is null" in problem_of(source.test())
    with pytest.raises(Unsuitable, match="is null"):
        pin(source)
    with pytest.raises(Unsuitable, match="is null"):
        history(source)


def test_a_least_privileged_role_can_test_pin_and_read(bench: Bench) -> None:
    role = bench.run.info.dbname + "_reader"
    bench.run.execute(TABLE)
    bench.run.execute("INSERT INTO outbox VALUES (1, 'k', 'insert', '{\"a\": 1}')")
    bench.run.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    dsn = make_conninfo(bench.dsn, user=role, password="x")
    mapped = {"key": "key", "op": "op", "content": "content"}
    source = bench.source(dsn=dsn, **mapped)
    assert "may not read" in problem_of(source.test())
    bench.run.execute(f"GRANT SELECT (id, key, op, content) ON outbox TO {role}")
    assert source.test().is_usable, source.test().problems
    assert lane(pin(source)).head == Coordinate(1)
    assert len(history(source, Width.FULL)) == 1
    bench.run.execute("CREATE SCHEMA hidden; CREATE TABLE hidden.outbox (id bigint)")
    bench.run.execute(f"GRANT SELECT ON hidden.outbox TO {role}")
    assert "may not use schema" in problem_of(bench.source(dsn=dsn, schema="hidden").test())


def test_rows_that_a_policy_hides_are_an_error_and_never_a_shorter_history(bench: Bench) -> None:
    role = bench.run.info.dbname + "_reader"
    bench.run.execute(TABLE)
    bench.run.execute("INSERT INTO outbox VALUES (1), (2)")
    bench.run.execute("ALTER TABLE outbox ENABLE ROW LEVEL SECURITY")
    bench.run.execute("CREATE POLICY odd ON outbox USING (id % 2 = 1)")
    bench.run.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    bench.run.execute(f"GRANT SELECT ON outbox TO {role}")
    source = bench.source(dsn=make_conninfo(bench.dsn, user=role, password="x"))
    assert "row-level security" in problem_of(source.test())
    with pytest.raises(Unsuitable, match="row-level security"):
        pin(source)


def test_missing_indexes_and_unlogged_tables_are_weaknesses_and_the_table_still_serves(bench: Bench) -> None:
    bench.run.execute("CREATE UNLOGGED TABLE outbox (id bigint NOT NULL)")
    bench.run.execute("INSERT INTO outbox SELECT generate_series(1, 1000)")
    source = bench.source()
    report = source.test()
    said = " ".join(report.weaknesses)
    assert report.is_usable
    assert "No B-tree index" in said and "No unique index" in said and "UNLOGGED" in said
    assert len(history(source)) == 1000


def test_unmapped_op_values_are_a_problem_and_stop_a_reading_by_coordinate_named(bench: Bench) -> None:
    bench.run.execute(TABLE)
    bench.run.execute("INSERT INTO outbox VALUES (7, 'k', 'c', '{}'), (8, 'k', 'r', '{}')")
    source = bench.source(op="op", op_values={"c": "insert"}, content="content", key="key")
    assert "'r'" in problem_of(source.test())
    for width in (Width.PAYLOAD, Width.FULL):
        with pytest.raises(Unsuitable, match="at 8"):
            history(source, width)
    mapped = bench.source(op="op", op_values={"c": "insert", "r": "update"}, content="content", key="key")
    assert [row["op"] for row in history(mapped, Width.FULL)] == ["insert", "update"]


def test_a_clock_that_steps_back_is_named_and_orders_nothing(bench: Bench) -> None:
    """RC-07."""
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY, created_at timestamptz, available_at timestamptz)")
    bench.run.execute(
        "INSERT INTO outbox VALUES (31, '2026-01-01 12:00:40Z', NULL), (32, '2026-01-01 11:59:10Z', NULL),"
        " (33, '2026-01-01 12:01:00Z', '2026-01-01 12:00:50Z')"
    )
    source = bench.source(committed_at="created_at")
    report = source.test()
    assert report.is_usable
    assert any("00:01:30" in weakness and "cursor" in weakness for weakness in report.weaknesses)
    rows = history(source, Width.FULL)
    assert [row["position"] for row in rows] == [31, 32, 33]
    assert lane(pin(source)).safe.coordinate == Coordinate(33)
    assert rows[1]["committed_at"].isoformat() == "2026-01-01T11:59:10+00:00"


def test_a_table_said_to_keep_everything_that_lost_its_beginning_is_a_weakness(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text)")
    bench.run.execute("INSERT INTO outbox (note) SELECT '' FROM generate_series(1, 10)")
    bench.run.execute("DELETE FROM outbox WHERE id < 6")
    assert any("set retention to purges" in weakness for weakness in bench.source().test().weaknesses)
    assert lane(pin(bench.source())).floor is None
    assert lane(pin(bench.source(retention="purges"))).floor == Coordinate(6)


def test_nothing_a_connector_does_writes(bench: Bench) -> None:
    bench.run.execute(TABLE)
    bench.run.execute("INSERT INTO outbox VALUES (1, 'k', 'insert', '{}', now())")
    before = bench.run.execute("SELECT pg_current_wal_insert_lsn(), xmin, ctid FROM outbox").fetchone()
    source = bench.source(key="key", op="op", content="content", committed_at="at", share_lock=True)
    source.test(), pin(source), history(source, Width.FULL)
    after = bench.run.execute("SELECT pg_current_wal_insert_lsn(), xmin, ctid FROM outbox").fetchone()
    assert before is not None and after is not None and before[1:] == after[1:]


def test_u8_the_rows_of_a_small_table_are_counted_not_estimated(bench: Bench) -> None:
    """Of a table that was never analysed the planner believes ten pages, however few there are."""
    bench.run.execute(TABLE)
    bench.run.execute("INSERT INTO outbox SELECT n, 'k', 'insert', '{}' FROM generate_series(1, 120) n")
    facts = bench.source().test().facts
    assert facts["rows"] == 120 and "estimated_rows" not in facts
    bench.run.execute("INSERT INTO outbox SELECT n, 'k', 'insert', '{}' FROM generate_series(121, 20000) n")
    bench.run.execute("ANALYZE outbox")
    facts = bench.source().test().facts
    assert facts["estimated_rows"] == 20000 and "rows" not in facts
