"""What every kind with a fenced delivery does alike, through the connector protocol: the kit and the in-memory kind."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from recovery_api.domain.abilities import Ability
from recovery_api.domain.capabilities import Archetype
from recovery_api.domain.claims import Settlement, settlement
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Refused
from tests.contract.benches import Place, bench_of, params
from tests.contract.sink_engines import batch_make, digest_make, event_make, rows_make
from workers.connectors.protocols.fence import FencedSink
from workers.connectors.readings import CoordinateRange, Width
from workers.evidence import schemas

EVERYTHING = CoordinateRange("0", None, None)


@pytest.fixture(params=params(Ability.FENCED))
def sink(request: pytest.FixtureRequest, place: Place) -> FencedSink:
    made: FencedSink = bench_of(request, place).connector()
    return made


def test_new_sink_stands_at_zero_with_an_empty_record(sink: FencedSink) -> None:
    state = sink.state()
    assert (state.counter, state.fence, state.open_claim, state.last_entry) == (0, 0, None, None)
    assert state.identity == sink.state().identity
    assert dict(sink.hand_over()) == {}
    with sink.hold_snapshot() as reading:
        assert (dict(reading.lanes), reading.fence, reading.is_complete) == ({}, 0, True)
        assert _read(sink, reading) == []


def test_capability_is_fenced_with_an_identity_key_and_its_limit(sink: FencedSink) -> None:
    assert sink.test().is_usable
    found = sink.capability()
    assert (found.archetype, found.batch_limit, found.horizon_seconds) == (Archetype.FENCED, 5, None)
    assert found.has_fence
    assert found.has_identity_key
    assert found.lands_in_one_transaction
    assert found.can_read_record
    assert found.is_record_complete
    assert found.grounds


def test_generations_ascend_and_a_relay_waits_under_an_open_claim(sink: FencedSink) -> None:
    first = sink.generation_allocate("relay", "relay").data["generation"]
    assert sink.begin(first).word == "started"
    assert sink.begin(first).word == "refused"
    generation = _claim(sink)
    assert generation > first
    answer = sink.generation_allocate("relay", "relay")
    assert (answer.word, answer.data["claim"]) == ("wait", generation)
    assert sink.generation_allocate("recoverer", "another").word == "allocated"  # a recoverer is not held up
    sink.release(generation, "test")
    assert sink.generation_allocate("relay", "relay").word == "allocated"


def test_words_of_a_delivery(sink: FencedSink) -> None:
    assert _deliver(sink, 0, 1, 2) == ["accepted", "accepted"]
    assert _deliver(sink, 0, 2, 3) == ["absorbed", "accepted"]
    changed = pa.Table.from_batches([rows_make([event_make(3, content='{"number": 3.5}')])])
    assert sink.deliver(0, changed) == ["absorbed"]  # 3.5 and 3.50 are one number
    changed = pa.Table.from_batches([rows_make([event_make(3, content='{"number": 4}')])])
    assert sink.deliver(0, changed) == ["altered"]
    assert _deliver(sink, 7, 9) == ["unallocated"]
    generation = _claim(sink)
    assert _deliver(sink, 0, 9) == ["fenced"]
    assert _deliver(sink, generation, 9) == ["paused"]


def test_claim_to_hand_over(sink: FencedSink) -> None:
    _deliver(sink, 0, 1, 3)
    generation, batch = _claim(sink), batch_make(1, 2, 4)
    arm = sink.arm(generation, digest_make(batch), {"0": {"position": "4", "ordinal": "0"}}).data["arm"]
    assert sink.stage(generation, arm, iter([batch.slice(0, 2), batch.slice(2)])) == 3
    assert sink.stage(generation, arm, iter([batch])) == 3
    start = {"0": {"position": "4", "ordinal": "0"}}
    fired = sink.fire(generation, arm, start)
    assert fired.word == "landed"
    figures = {name: fired.data[name] for name in ("landed_count", "absorbed_count", "altered_count")}
    assert figures == {"landed_count": 2, "absorbed_count": 1, "altered_count": 0}
    again = sink.fire(generation, arm, start)
    assert (again.word, again.data["landed_count"], again.data["absorbed_count"]) == ("already fired", 2, 1)
    claim = sink.settle(generation)
    assert (claim.landed_count, claim.absorbed_count, claim.start) == (2, 1, start)
    assert settlement(claim, generation) is Settlement.FIRED
    assert dict(sink.hand_over()) == start
    assert sink.state().open_claim is None


def test_claims_and_generations_are_listed_newest_first(sink: FencedSink) -> None:
    for _ in range(3):
        generation = sink.generation_allocate("recoverer", "ada").data["generation"]
        sink.claim(generation, {})
    assert [(claim.generation, claim.state) for claim in sink.claims(2)] == [(3, "open"), (2, "superseded")]
    assert [(one.number, one.purpose) for one in sink.generations(10)][-2:] == [(1, "recoverer"), (0, "relay")]


def test_settlement_of_each_end(sink: FencedSink) -> None:
    older, newer = _claim(sink), _claim(sink)
    claim = sink.settle(older)
    assert (settlement(claim), claim.superseded_by) == (Settlement.SUPERSEDED, newer)
    assert settlement(sink.settle(newer)) is Settlement.OPEN
    assert settlement(sink.settle(99)) is Settlement.UNCLAIMED
    open_claim = sink.state().open_claim
    assert open_claim is not None
    assert open_claim.generation == newer
    assert sink.fire(older, 1).word == "fenced"
    assert sink.claim(older, {}).word == "refused"
    assert sink.claim(older, {}).data["fence"] == newer


def test_mismatch_tells_what_was_staged_and_lands_nothing(sink: FencedSink) -> None:
    generation = _claim(sink)
    arm = sink.arm(generation, digest_make(batch_make(1, 2)), {}).data["arm"]
    sink.stage(generation, arm, iter([batch_make(1)]))
    answer = sink.fire(generation, arm)
    assert (answer.word, answer.data["staged_count"]) == ("mismatch", 1)
    assert answer.data["staged_digest"] == digest_make(batch_make(1)).digest
    with sink.hold_snapshot(generation) as reading:
        assert _read(sink, reading) == []


def test_batch_above_the_limit_is_refused(sink: FencedSink) -> None:
    with pytest.raises(Refused, match="at most 5"):
        sink.arm(_claim(sink), digest_make(batch_make(*range(6))), {})


def test_record_is_read_in_three_widths_by_range_and_lane(sink: FencedSink) -> None:
    rows = [event_make(at, ordinal=ordinal, lane=lane) for lane in ("0", "é") for at in (1, 2, 9) for ordinal in (0, 7)]
    sink.deliver(0, pa.Table.from_batches([rows_make(rows[:8])]), head=Coordinate(9, 7))
    sink.deliver(0, pa.Table.from_batches([rows_make(rows[8:])]))
    with sink.hold_snapshot() as reading:
        lanes = {lane: (found.lowest, found.head) for lane, found in reading.lanes.items()}
        assert lanes == {lane: (Coordinate(1, 0), Coordinate(9, 7)) for lane in ("0", "é")}
        full = _read(sink, reading, EVERYTHING, Width.FULL)
        assert set(full[0]) == set(schemas.ACCEPTED.names)
        assert {row["lane"] for row in full} == {"0"}
        assert {row["head_position"] for row in full} == {9}
        inside = CoordinateRange("0", Coordinate(1, 7), Coordinate(9, 7))
        for width in Width:
            found = _read(sink, reading, inside, width)
            assert [(row["position"], row["ordinal"]) for row in found] == [(1, 7), (2, 0), (2, 7), (9, 0)]
            assert all(len(row["payload_digest"]) == 32 for row in found if width is not Width.COORDINATE)
        heads = _read(sink, reading, CoordinateRange("é", None, None), Width.PAYLOAD)
        assert [row["head_position"] for row in heads] == [9, 9, None, None, None, None]
        assert len({row["entry"] for row in heads}) == 6
        narrow = next(iter(sink.read_accepted(reading, EVERYTHING, Width.PAYLOAD, with_head=False)))
        assert "head_position" not in narrow.schema.names
        assert _read(sink, reading, CoordinateRange("nowhere", None, None)) == []


def test_snapshot_under_a_claim_shows_its_fence_or_is_refused(sink: FencedSink) -> None:
    generation = _claim(sink)
    with sink.hold_snapshot(generation) as reading:
        assert reading.fence == generation
    newer = _claim(sink)
    with pytest.raises(Refused, match=f"fence at {newer}"), sink.hold_snapshot(generation):
        pass


@pytest.mark.parametrize("content", [None, "null", '""', '{"b": 1, "a": [1.0, "é"]}'])
def test_content_has_one_digest_at_sink_and_recoverer(sink: FencedSink, content: str | None) -> None:
    for op in ("insert", "delete"):
        generation, batch = _claim(sink), rows_make([event_make(1 + (op == "delete"), content=content, op=op)])
        assert sink.unrepresentable(batch).to_pylist() == [False]
        arm = sink.arm(generation, digest_make(batch), {}).data["arm"]
        sink.stage(generation, arm, iter([batch]))
        assert sink.fire(generation, arm).word == "landed"


def test_empty_batch_is_a_completed_claim(sink: FencedSink) -> None:
    generation = _claim(sink)
    arm = sink.arm(generation, digest_make(batch_make()), {}).data["arm"]
    assert sink.fire(generation, arm).data["landed_count"] == 0
    assert settlement(sink.settle(generation)) is Settlement.FIRED


def _claim(sink: FencedSink) -> int:
    generation = int(sink.generation_allocate("recoverer", "contract").data["generation"])
    assert sink.claim(generation, {}).word == "granted"
    return generation


def _deliver(sink: FencedSink, generation: int, *coordinates: int) -> list[str]:
    return sink.deliver(generation, pa.Table.from_batches([batch_make(*coordinates)]))


def _read(
    sink: FencedSink, reading: Any, range_: CoordinateRange = EVERYTHING, width: Width = Width.PAYLOAD
) -> list[dict[str, Any]]:
    rows = [row for batch in sink.read_accepted(reading, range_, width) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["position"], row["ordinal"]))
