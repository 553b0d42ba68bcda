"""Owed rows into a table without a fence: one transaction under a lock, read back, and nothing twice."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from recovery_api.domain.errors import Refused, SinkBusy, Unsuitable
from tests.contract.sink_engines import batch_make, digest_make, event_make, rows_make
from tests.integration.postgresql.mapped_tables import Bench, accepted, digests
from workers.connectors.readings import BatchDigest, Width
from workers.evidence import canonical

EFFECT = "CREATE TABLE accepted (id bigint PRIMARY KEY, event text, op text, key text, content jsonb)"
MAPPED = {"event_id": "event", "op": "op", "key": "key", "content": "content", "is_effect": True}
ONE = "INSERT INTO accepted VALUES (%s, %s, 'insert', %s, %s::jsonb)"


@pytest.fixture
def sink(bench: Bench) -> Any:
    bench.run.execute(EFFECT)
    return bench.sink(**MAPPED)


def ids(bench: Bench) -> list[int]:
    return [id_ for (id_,) in bench.run.execute("SELECT id FROM accepted ORDER BY id").fetchall()]


# -- what lands ---------------------------------------------------------------------------------------------------------


def test_what_is_missing_lands_once_in_the_order_of_coordinates(bench: Bench, sink: Any) -> None:
    bench.run.execute("ALTER TABLE accepted ADD came bigint GENERATED ALWAYS AS IDENTITY")
    bench.run.execute("INSERT INTO accepted VALUES (2, 'event 2', 'insert', 'key 2', '{\"number\": 2.5}')")
    batch = batch_make(5, 1, 2, 3)
    answer = sink.append(iter([batch.slice(0, 1), batch.slice(1)]), 5.0, digest_make(batch))
    assert (answer.word, answer.data["landed_count"], answer.data["absorbed_count"]) == ("appended", 3, 1)
    assert answer.data["altered_count"] == 0 and answer.data["altered"] == []
    assert bench.run.execute("SELECT array_agg(id ORDER BY came) FROM accepted").fetchone() == ([2, 1, 3, 5],)
    again = sink.append(iter([batch]))
    assert (again.data["landed_count"], again.data["absorbed_count"]) == (0, 4)


def test_what_landed_reads_as_what_was_owed(bench: Bench, sink: Any) -> None:
    rows = [
        event_make(1, content=None, op="delete"),
        event_make(2, content="null", key=None),
        event_make(3, content='{"a": "\\n\\t\\\\ \\" , ; \\u00e9", "b": [1.50, 1e2, -0]}', key='line\n\\.\n"quoted", '),
        event_make(4, content='""', event_id=None, op="update"),
    ]
    assert sink.append(iter([rows_make(rows)])).data["landed_count"] == 4
    assert digests(accepted(sink, Width.PAYLOAD)) == {row["position"]: payload(row) for row in rows}


def payload(row: dict[str, Any]) -> bytes:
    content = canonical.ABSENT if row["content"] is None else canonical.content_parse(row["content"])
    return canonical.payload_digest(row["op"], row["key"], canonical.content_digest(content, row["op"]))


def test_a_row_with_other_content_stays_and_is_counted_altered(bench: Bench, sink: Any) -> None:
    bench.run.execute(ONE, [2, "e", "key 2", "{}"])
    answer = sink.append(iter([batch_make(1, 2, 3)]))
    assert (answer.data["landed_count"], answer.data["absorbed_count"], answer.data["altered_count"]) == (2, 0, 1)
    assert answer.data["altered"] == ["0:2:0"]
    assert bench.run.execute("SELECT content FROM accepted WHERE id = 2").fetchone() == ({},)


def test_nothing_owed_is_a_part_that_lands_nothing(bench: Bench, sink: Any) -> None:
    assert sink.append(iter([])).data["landed_count"] == 0


def test_what_came_otherwise_than_it_was_judged_lands_nothing(bench: Bench, sink: Any) -> None:
    batch = batch_make(1, 2)
    owed = digest_make(batch)
    for other in (BatchDigest(3, owed.digest), BatchDigest(2, digest_make(batch_make(1, 3)).digest)):
        with pytest.raises(Refused, match="are owed"):
            sink.append(iter([batch]), 5.0, other)
    assert ids(bench) == []


def test_a_batch_that_repeats_a_coordinate_is_refused(bench: Bench, sink: Any) -> None:
    with pytest.raises(Refused, match="0:1:0"):
        sink.append(iter([rows_make([event_make(1), event_make(1, key="another")])]))


@pytest.mark.parametrize(
    "table, coordinate, options, event",
    [
        ("id pg_lsn PRIMARY KEY, key text, content jsonb", "id", {"coordinate_spelling": "pg_lsn"}, {}),
        ("id text PRIMARY KEY, key text, content jsonb", "id", {"coordinate_spelling": "pg_lsn"}, {}),
        ("id numeric(20) PRIMARY KEY, key text, content json", "id", {"coordinate_spelling": "unsigned"}, {}),
        ("id bigint PRIMARY KEY, key text, content text", "id", {"coordinate_spelling": "unsigned"}, {}),
        (
            "x xid8, n int, key text, content jsonb, UNIQUE (x, n)",
            ["x", "n"],
            {"coordinate_spelling": "xid8_bigint"},
            {"ordinal": 7},
        ),
        ("id int PRIMARY KEY, key uuid, content jsonb", "id", {}, {"key": "7a0e7bd2-3f6e-4a0e-8f65-0f9f4d0c5d11"}),
        ("id smallint PRIMARY KEY, key bigint, content text", "id", {"content_format": "text"}, {"content": '"a\\nb"'}),
        (
            "id bigint PRIMARY KEY, key text, content bytea",
            "id",
            {"content_format": "bytes"},
            {"content": '"\\\\x00ff"'},
        ),
        ("id bigint PRIMARY KEY, key text, content text", "id", {"content_format": "hex"}, {"content": '"\\\\x00ff"'}),
        (
            "id bigint PRIMARY KEY, key text, content text",
            "id",
            {"content_format": "base64"},
            {"content": '"\\\\x00ff"'},
        ),
        (
            "id bigint PRIMARY KEY, key text, content text",
            "id",
            {"content_format": "escaped"},
            {"content": '{"a": "b"}'},
        ),
        ("id bigint PRIMARY KEY, key text, content jsonb", "id", {"content_format": "escaped"}, {"content": '"a"'}),
        ("id bigint PRIMARY KEY, key text, content bytea", "id", {"content_format": "json_bytes"}, {}),
        (
            "id bigint PRIMARY KEY, key text, content bytea",
            "id",
            {"content_format": "text_bytes"},
            {"content": '"\u00e9"'},
        ),
        ("id bigint PRIMARY KEY, content jsonb", "id", {"key": "=fixed", "op": "=insert"}, {"key": "fixed"}),
        ("id bigint PRIMARY KEY, key text, digest text", "id", {"digest": "digest", "content": None}, {}),
        ("id bigint PRIMARY KEY, key text, digest bytea", "id", {"digest": "digest", "content": None}, {}),
        ("id bigint PRIMARY KEY, key text, content text", "id", {}, {"content": '{"a": "\\u0000"}'}),
    ],
)
def test_every_spelling_that_is_read_can_be_written(
    bench: Bench, table: str, coordinate: Any, options: dict[str, Any], event: dict[str, Any]
) -> None:
    bench.run.execute(f"CREATE TABLE accepted ({table})")  # type: ignore[call-overload]
    sink = bench.sink(coordinate=coordinate, **{"key": "key", "content": "content", "is_effect": True, **options})
    low, high = (-(2**63) + 1000, -(2**63) + 3) if "coordinate_spelling" in options else (11, 3)
    key = {"key": "42"} if "key bigint" in table else {}
    rows = [event_make(position, **{**key, **event}) for position in (low, high)]
    batch = rows_make(rows)
    assert not any(sink.unrepresentable(batch).to_pylist())
    answer = sink.append(iter([batch]), 5.0, digest_make(batch))
    assert answer.data["landed_count"] == 2
    found = accepted(sink, Width.PAYLOAD)
    assert {(row["position"], row["ordinal"], row["payload_digest"]) for row in found} == {
        (row["position"], row["ordinal"], payload(row)) for row in rows
    }
    assert sink.append(iter([batch])).data["absorbed_count"] == 2


# -- what cannot land ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column, event",
    [
        ("content jsonb", {"content": '{"a": "\\u0000"}'}),
        ("key text", {"key": "a\x00b"}),
        ("key int", {"key": "007"}),
        ("key text NOT NULL", {"key": None}),
        ("op text", {"op": "merge"}),
    ],
)
def test_t23_a_row_that_the_table_cannot_hold_is_told_in_the_plan_and_named(
    bench: Bench, column: str, event: dict[str, Any]
) -> None:
    name = column.split()[0]
    fitting = {"op": "op text", "key": "key text", "content": "content jsonb"} | {name: column}
    bench.run.execute(f"CREATE TABLE accepted (id bigint PRIMARY KEY, event text, {', '.join(fitting.values())})")  # type: ignore[call-overload]
    sink = bench.sink(**MAPPED)
    good = {"key": "1"}
    batch = rows_make([event_make(1, **good), event_make(2, **{**good, **event})])
    assert sink.unrepresentable(batch).to_pylist() == [False, True]
    with pytest.raises(Unsuitable, match="0:2:0"):
        sink.append(iter([batch]))
    assert ids(bench) == []


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE accepted ALTER key TYPE varchar(5)",
        "ALTER TABLE accepted ADD CHECK (id <> 4)",
        "ALTER TABLE accepted ADD UNIQUE (event)",
        "ALTER TABLE accepted ADD UNIQUE (event) DEFERRABLE INITIALLY DEFERRED",
        "ALTER TABLE accepted ALTER key TYPE numeric(4, 1) USING 1",
    ],
)
def test_a_row_that_only_the_server_refuses_is_named_and_nothing_landed(bench: Bench, sink: Any, change: str) -> None:
    bench.run.execute(change)  # type: ignore[call-overload]
    rows = [event_make(position, key="1.0") for position in (1, 2, 3, 5)]
    bad = event_make(
        4, key="too long" if "varchar" in change else "1.04" if "numeric" in change else "1.0", event_id="event 2"
    )
    with pytest.raises(Unsuitable, match="0:4:0"):
        sink.append(iter([rows_make([*rows[:3], bad, rows[3]])]))
    assert ids(bench) == []


def test_a_table_that_may_not_be_locked_is_not_written(bench: Bench, sink: Any) -> None:
    role = f"{bench.run.info.dbname}_writer"
    bench.run.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'p'; GRANT SELECT, INSERT ON accepted TO {role}")  # type: ignore[call-overload]
    weak = bench.sink(dsn=psycopg.conninfo.make_conninfo(bench.dsn, user=role, password="p"), **MAPPED)
    with pytest.raises(Refused, match="may not lock"):
        weak.append(iter([batch_make(1)]))
    assert ids(bench) == []


def test_a_table_not_declared_the_effect_is_not_written(bench: Bench, sink: Any) -> None:
    with pytest.raises(Refused, match="is_effect"):
        bench.sink(**{**MAPPED, "is_effect": False}).append(iter([batch_make(1)]))
    assert ids(bench) == []


@pytest.mark.parametrize(
    "body, timing",
    [
        ("IF NEW.id = 2 THEN RETURN NULL; END IF; RETURN NEW;", "BEFORE"),
        ("IF NEW.id = 2 THEN NEW.content := '{}'; END IF; RETURN NEW;", "BEFORE"),
        ("IF NEW.id = 2 THEN NEW.id := 12; END IF; RETURN NEW;", "BEFORE"),
        ("IF NEW.id = 2 THEN DELETE FROM accepted WHERE id = 2; END IF; RETURN NULL;", "AFTER"),
    ],
)
def test_a_trigger_that_swallows_or_changes_a_row_is_noticed_by_the_read_back(
    bench: Bench, sink: Any, body: str, timing: str
) -> None:
    bench.run.execute(f"CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {body} END$$")  # type: ignore[call-overload]
    bench.run.execute(f"CREATE TRIGGER meddles {timing} INSERT ON accepted FOR EACH ROW EXECUTE FUNCTION meddle()")  # type: ignore[call-overload]
    with pytest.raises(Refused, match=r"1 were not there.*0:2:0"):
        sink.append(iter([batch_make(1, 2, 3)]))
    assert ids(bench) == []


def test_a_trigger_finds_its_own_names_as_in_any_session(bench: Bench, sink: Any) -> None:
    bench.run.execute("CREATE TABLE counted (id bigint)")
    bench.run.execute(
        "CREATE FUNCTION counts() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN INSERT INTO counted VALUES (NEW.id); RETURN NEW; END$$;"
        "CREATE TRIGGER counts BEFORE INSERT ON accepted FOR EACH ROW EXECUTE FUNCTION counts()"
    )
    assert sink.append(iter([batch_make(1, 2)])).data["landed_count"] == 2
    assert bench.run.execute("SELECT count(*) FROM counted").fetchone() == (2,)


@pytest.mark.parametrize("before, during", [("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")])
def test_a_lowered_synchronous_commit_is_raised_and_a_higher_one_kept(bench: Bench, before: str, during: str) -> None:
    bench.run.execute(EFFECT + "; CREATE TABLE seen (setting text)")
    bench.run.execute(
        "CREATE FUNCTION sees() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END$$;"
        "CREATE TRIGGER sees BEFORE INSERT ON accepted FOR EACH ROW EXECUTE FUNCTION sees()"
    )
    dsn = psycopg.conninfo.make_conninfo(bench.dsn, options=f"-c synchronous_commit={before}")
    assert bench.sink(dsn=dsn, **MAPPED).append(iter([batch_make(1)])).data["landed_count"] == 1
    assert bench.run.execute("SELECT setting FROM seen").fetchone() == (during,)


def test_a_partitioned_table_is_locked_and_filled_whole(bench: Bench) -> None:
    bench.run.execute(
        EFFECT + " PARTITION BY RANGE (id); CREATE TABLE low PARTITION OF accepted FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE high PARTITION OF accepted FOR VALUES FROM (10) TO (20)"
    )
    sink = bench.sink(**MAPPED)
    assert sink.append_ability().absorbs_late_sends
    writer = bench.session(application_name="writes one partition")
    writer.execute("INSERT INTO high (id) VALUES (19)")
    with pytest.raises(SinkBusy, match="writes one partition"):
        sink.append(iter([batch_make(9)]), 0.05)
    writer.rollback()
    assert sink.append(iter([batch_make(9, 11)])).data["landed_count"] == 2
    with pytest.raises(Unsuitable, match="0:30:0"):
        sink.append(iter([batch_make(12, 30)]))
    assert ids(bench) == [9, 11]


def test_names_that_need_quotes_are_written_as_they_are(bench: Bench) -> None:
    bench.run.execute('CREATE TABLE "Or%ders" ("nth" bigint PRIMARY KEY, "a ""%s"" b" text, content jsonb)')
    options = {"key": 'a "%s" b', "content": "content", "is_effect": True}
    sink = bench.sink("Or%ders", "nth", **options)
    batch = batch_make(1, 2)
    assert sink.append(iter([batch]), 5.0, digest_make(batch)).data["landed_count"] == 2
    assert sink.append(iter([batch])).data["absorbed_count"] == 2
