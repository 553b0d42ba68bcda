"""An existing table as an acceptance record, and what both ends do when a snapshot or a server goes away."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from recovery_api.domain.capabilities import Archetype
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import BadInput, NotFound, Refused, SnapshotLost, Unreachable, Unsuitable
from recovery_api.domain.restores import restore_find
from tests.integration.postgresql.mapped_tables import WHOLE, Bench, accepted, digests, history, rows_of
from workers.connectors.readings import CoordinateRange, Width
from workers.evidence import canonical
from workers.evidence.schemas import ACCEPTED, HISTORY

RECORD = """
CREATE TABLE accepted (
    entry bigint GENERATED ALWAYS AS IDENTITY, id bigint NOT NULL, event text, op text, key text, content jsonb,
    generation int, head bigint, at timestamptz DEFAULT now(), tx xid8 DEFAULT pg_current_xact_id(), digest text
)
"""
MAPPED = {
    "event_id": "event",
    "op": "op",
    "key": "key",
    "content": "content",
    "entry": "entry",
    "generation": "generation",
    "head": "head",
    "accepted_at": "at",
    "admitted_in": "tx",
}


def test_a_record_is_read_in_the_shape_of_evidence_with_its_duplicates(bench: Bench) -> None:
    bench.run.execute(RECORD)
    for id_, head in ((1, 5), (2, None), (1, 6)):
        bench.run.execute(
            "INSERT INTO accepted (id, event, op, key, content, generation, head) VALUES (%s, 'e', 'insert', 'k', '1.0', 3, %s)",
            [id_, head],
        )
    sink = bench.sink(**MAPPED)
    rows = accepted(sink, Width.FULL)
    expected = canonical.payload_digest("insert", "k", canonical.content_digest(1))
    assert [list(row) for row in rows[:1]] == [ACCEPTED.names]
    assert [(row["entry"], row["position"], row["head_position"], row["generation"]) for row in rows] == [
        (1, 1, 5, 3),
        (2, 2, None, 3),
        (3, 1, 6, 3),
    ]
    assert {row["payload_digest"] for row in rows} == {expected}
    assert all(row["admitted_in"] and row["accepted_at"].tzinfo for row in rows)
    assert list(accepted(sink)[0]) == ["position", "ordinal", "head_position", "head_ordinal", "entry"]
    assert list(accepted(sink, with_head=False)[0]) == ["position", "ordinal"]


def test_a_table_made_anew_under_the_same_name_is_another_incarnation(bench: Bench) -> None:
    bench.run.execute(RECORD)
    sink = bench.sink(**MAPPED)
    before = sink.said()
    assert before.incarnation and (before.counter, before.fence) == (None, None)
    assert sink.said() == before
    bench.run.execute("DROP TABLE accepted")
    bench.run.execute(RECORD)
    assert restore_find(before, sink.said()).is_restored


def test_a_record_says_that_it_has_no_fence_everywhere(bench: Bench) -> None:
    """RC-44: what cannot be fenced is said up front."""
    bench.run.execute(RECORD)
    sink = bench.sink(**MAPPED)
    capability = sink.capability()
    assert capability.archetype is Archetype.QUERYABLE
    assert not capability.has_fence and not capability.has_identity_key and not capability.lands_in_one_transaction
    assert any("no fence" in ground for ground in capability.grounds)
    assert any("no fence" in weakness for weakness in sink.test().weaknesses)
    with sink.hold_snapshot() as reading:
        assert reading.fence is None and any("no fence" in weakness for weakness in reading.weaknesses)
    with pytest.raises(Refused, match="no fence"), sink.hold_snapshot(generation=3):
        pass


def test_a_unique_coordinate_is_an_identity_key(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE accepted (id bigint PRIMARY KEY, content jsonb)")
    assert bench.sink(content="content").capability().has_identity_key


def test_a_record_not_said_to_be_append_only_makes_every_verdict_unknown(bench: Bench) -> None:
    bench.run.execute(RECORD)
    sink = bench.sink(**MAPPED, is_append_only=False)
    assert not sink.capability().is_record_complete
    with sink.hold_snapshot() as reading:
        assert not reading.is_complete


def test_a_digest_column_stands_in_place_of_content_and_a_broken_one_is_named(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE accepted (id bigint, as_hex text, as_bytes bytea)")
    digest = canonical.payload_digest("insert", None, canonical.content_digest(1))
    bench.run.execute("INSERT INTO accepted VALUES (4, %s, %s)", [digest.hex().upper(), digest])
    for column in ("as_hex", "as_bytes"):
        sink = bench.sink(digest=column)
        assert digests(accepted(sink, Width.PAYLOAD)) == {4: digest}
    bench.run.execute("INSERT INTO accepted VALUES (5, 'abcd', '\\xabcd')")
    for column in ("as_hex", "as_bytes"):
        with pytest.raises(Unsuitable, match=r"at 5.*32 bytes"):
            accepted(bench.sink(digest=column), Width.PAYLOAD)
    bench.run.execute("UPDATE accepted SET as_hex = 'not hex' WHERE id = 5")
    with pytest.raises(Unsuitable):
        accepted(bench.sink(digest="as_hex"), Width.PAYLOAD)


def test_a_record_needs_content_or_digest_and_a_head_like_its_coordinate(bench: Bench) -> None:
    bench.run.execute(RECORD)
    assert "neither content nor digest" in " ".join(bench.sink().test().problems)
    with pytest.raises(BadInput, match="head"):
        bench.sink(content="content", head=["head", "id"])
    assert "'accepted'" in " ".join(bench.sink("Accepted", content="content").test().problems)
    with pytest.raises(NotFound):
        bench.sink("akzeptiert", content="content").capability()


def test_a_reading_is_followed_by_another_process_and_carries_no_secret(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY)")
    bench.run.execute("INSERT INTO outbox SELECT generate_series(1, 100)")
    source = bench.source()
    with source.hold_snapshot() as reading:
        bench.run.execute("DELETE FROM outbox")
        followed = pickle.loads(pickle.dumps(reading))
        assert bench.run.info.password not in repr(followed)
        twin = bench.source()
        range_ = CoordinateRange("0", Coordinate(11), Coordinate(21))
        assert len(rows_of(twin.read_history(followed, range_, Width.COORDINATE))) == 10
        batches = list(twin.read_history(followed, WHOLE, Width.FULL))
        assert batches[0].schema == HISTORY


def test_a_snapshot_whose_holder_is_gone_is_lost_and_not_replaced_by_a_newer_one(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY)")
    source = bench.source()
    with source.hold_snapshot() as reading:
        pass
    for handle in (reading, _with(reading, "nonsense"), _with(reading, "00000003-0000001B-1")):
        with pytest.raises(SnapshotLost):
            rows_of(source.read_history(handle, WHOLE, Width.COORDINATE))


def test_a_killed_reader_is_a_transient_error(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY)")
    source = bench.source()
    with pytest.raises(Unreachable) as raised, source.hold_snapshot() as reading:
        bench.run.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'fencepost reader'"
            " AND datname = current_database()"
        )
        list(source.split(reading, "0", 2))
    assert raised.value.is_transient


def test_a_lane_that_a_table_has_not_is_refused(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY)")
    source = bench.source()
    with source.hold_snapshot() as reading:
        with pytest.raises(BadInput, match="lane"):
            source.split(reading, "1", 2)
        with pytest.raises(BadInput, match="lane"):
            rows_of(source.read_history(reading, CoordinateRange("1", None, None), Width.COORDINATE))


def test_history_by_coordinate_carries_the_key_only_where_it_is_asked(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY, k text)")
    bench.run.execute("INSERT INTO outbox VALUES (1, 'ä'), (2, NULL), (3, '')")
    source = bench.source(key="k")
    assert list(history(source)[0]) == ["position", "ordinal"]
    assert [row["key"] for row in history(source, with_key=True)] == ["ä", None, ""]
    unmapped = bench.source()
    assert [row["key"] for row in history(unmapped, with_key=True)] == [None, None, None]


def _with(reading: Any, snapshot: str) -> Any:
    from dataclasses import replace

    return replace(reading, handle={**reading.handle, "snapshot": snapshot})
