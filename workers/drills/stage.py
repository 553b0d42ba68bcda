"""What a drill plays on: one fenced sink, a synthetic history, and a note of every step with what the sink said.

A step that does not go as the protocol says ends the drill there; the note is its evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from recovery_api.domain.frontiers import SINGLE_LANE
from workers.connectors.protocols.fence import FencedSink
from workers.connectors.readings import BatchDigest, CoordinateRange, Width
from workers.evidence import schemas
from workers.evidence.canonical import batch_digest, content_digest, content_parse, entry_digest, payload_digest

EVERYTHING = CoordinateRange(SINGLE_LANE, None, None)


class NotAsExpected(Exception):
    """The drill failed at its last noted step."""


class Noted:
    """Every step with what was said. `history`: the coordinates committed so far, each an event that follows from it."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.history: list[int] = []

    def expect(self, step: str, said: object, *expected: object) -> None:
        """Notes a step. Raises: NotAsExpected where what was said is none of `expected`."""
        holds = said in expected
        wanted = " or ".join(map(str, expected))
        self.steps.append({"step": step, "said": str(said), "expected": wanted, "holds": holds})
        if not holds:
            raise NotAsExpected(f"{step}: expected {wanted}, and the sink said {said}.")

    def commit(self, count: int) -> list[int]:
        """So many more events at the synthetic source; their coordinates."""
        first = len(self.history) + 1
        self.history += range(first, first + count)
        return self.history[-count:]

    def check(self, found: list[tuple[int, bytes]], wanted: list[tuple[int, bytes]]) -> None:
        """A record (coordinate and payload digest) against what was committed: none twice, none missing, none else."""
        said = "every event exactly once"
        if sorted(found) != wanted:
            held, committed = [coordinate for coordinate, _ in found], dict(wanted)
            twice = sorted({coordinate for coordinate in held if held.count(coordinate) > 1})
            lost = sorted(set(self.history) - set(held))
            other = sorted({one for one, what in found if what != committed.get(one)})
            said = f"twice: {named(twice)}; missing: {named(lost)}; not as committed: {named(other)}"
        self.expect("the acceptance record, compared with what was committed, holds", said, "every event exactly once")


class Stage(Noted):
    """A fenced sink."""

    def __init__(self, sink: FencedSink) -> None:
        super().__init__()
        self.sink = sink

    # -- a relay ----------------------------------------------------------------------------------------------------

    def relay_start(self, who: str = "the relay") -> int:
        answer = self.sink.generation_allocate("relay", "drill relay")
        self.expect(f"{who} asks for a generation", answer.word, "allocated")
        generation = int(answer.data["generation"])
        self.expect(f"{who} begins generation {generation}", self.sink.begin(generation).word, "started")
        return generation

    def deliver(self, who: str, generation: int, coordinates: Iterable[int], expected: str) -> None:
        """One transaction of the relay; every event must be answered with the expected word."""
        wanted = list(coordinates)
        words = self.sink.deliver(generation, rows(wanted))
        said = words[0] if len(words) == len(wanted) and len(set(words)) == 1 else f"{words}"
        self.expect(f"{who} delivers {named(wanted)} in generation {generation}", said, expected)

    # -- a recoverer ------------------------------------------------------------------------------------------------

    def claim(self, who: str) -> int:
        answer = self.sink.claim_open(f"drill {who}", {SINGLE_LANE: position(self.history[-1])})
        self.expect(f"{who} claims", answer.word, "granted")
        generation = int(answer.data["generation"])
        self.expect(f"the fence stands at generation {generation}", self.sink.state().fence, generation)
        return generation

    def delta(self, generation: int) -> list[int]:
        """The obligations that the record, read under the claim, does not hold."""
        held = {row["position"] for row in self.record(generation)}
        return [coordinate for coordinate in self.history if coordinate not in held]

    def arm(self, who: str, generation: int, batch: list[int]) -> int:
        armed = self.sink.arm(generation, digest(batch), {SINGLE_LANE: position(self.history[-1])})
        self.expect(f"{who} arms {named(batch)}", armed.word, "armed")
        return int(armed.data["arm"])

    def stage(self, generation: int, arm: int, batch: list[int]) -> None:
        self.sink.stage(generation, arm, iter(rows(batch).to_batches()))

    def fire(self, who: str, generation: int, arm: int, *expected: str) -> Mapping[str, Any]:
        answer = self.sink.fire(generation, arm, {SINGLE_LANE: position(self.history[-1])})
        self.expect(f"{who} fires generation {generation}", answer.word, *expected)
        return answer.data

    def recover(self, who: str, owed: list[int]) -> int:
        """A whole recovery, claim to fire, that must find exactly `owed`; its generation."""
        generation = self.claim(who)
        batch = self.delta(generation)
        self.expect(f"{who} reads the record under the claim and finds owed", named(batch), named(owed))
        arm = self.arm(who, generation, batch)
        self.stage(generation, arm, batch)
        landed = self.fire(who, generation, arm, "landed").get("landed_count")
        self.expect(f"of {who}'s batch there landed", landed, len(owed))
        return generation

    # -- the oracle -------------------------------------------------------------------------------------------------

    def record(self, generation: int | None = None) -> list[dict[str, Any]]:
        with self.sink.hold_snapshot(generation) as reading:
            return [
                row
                for batch in self.sink.read_accepted(reading, EVERYTHING, Width.PAYLOAD)
                for row in batch.to_pylist()
            ]

    def check_record(self) -> None:
        found = [(row["position"], bytes(row["payload_digest"])) for row in self.record()]
        self.check(found, [(coordinate, payload(coordinate)) for coordinate in self.history])


def rows(coordinates: Iterable[int], content: str | None = None) -> pa.Table:
    """Synthetic events in the shape of schemas.BATCH; `content` in place of what follows from the coordinate."""
    return pa.Table.from_pylist(
        [
            {
                "lane": SINGLE_LANE,
                "position": coordinate,
                "ordinal": 0,
                "event_id": f"drill-{coordinate}",
                "op": "insert",
                "key": f"drill-key-{coordinate}",
                "content": content or content_of(coordinate),
            }
            for coordinate in coordinates
        ],
        schema=schemas.BATCH,
    )


def content_of(coordinate: int) -> str:
    return f'{{"drill": {coordinate}, "amount": {coordinate}.50}}'


def payload(coordinate: int) -> bytes:
    parsed = content_parse(content_of(coordinate))
    return bytes(payload_digest("insert", f"drill-key-{coordinate}", content_digest(parsed, "insert")))


def digest(batch: list[int]) -> BatchDigest:
    entries = [entry_digest(SINGLE_LANE, coordinate, 0, payload(coordinate)) for coordinate in batch]
    return BatchDigest(len(batch), batch_digest(pa.array(entries, pa.binary(32))))


def position(coordinate: int) -> dict[str, str]:
    return {"position": str(coordinate), "ordinal": "0"}


def named(coordinates: Iterable[int]) -> str:
    """Coordinates in words: `events 1, 2`, or `nothing`."""
    found = [str(coordinate) for coordinate in coordinates]
    return f"event{'s' if len(found) > 1 else ''} {', '.join(found)}" if found else "nothing"
