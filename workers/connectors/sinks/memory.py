"""A fenced sink in this process's memory: recovery_api.domain.claims driven over dictionaries.

One law: a step holds the store's lock from its first test to its last change, which is what a transaction is here.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain import claims
from recovery_api.domain.capabilities import Archetype, Capability
from recovery_api.domain.claims import ClaimState, Word
from recovery_api.domain.conditions import UndisciplinedPath
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Refused, SnapshotLost
from recovery_api.domain.restores import SinkMemory
from workers.connectors.protocols.delivery import Answer
from workers.connectors.protocols.fence import (
    ClaimReading,
    ClaimsFound,
    DrillableDelivery,
    DrillNamespace,
    FencedSink,
    GenerationReading,
    SinkState,
)
from workers.connectors.protocols.record import FollowedRecord
from workers.connectors.readings import BatchDigest, ConnectionReport, CoordinateRange, Following, Reading, Width
from workers.connectors.rows import (
    Where,
    accepted_columns,
    entry_make,
    inside,
    is_held,
    lanes_of,
    ranges_of,
    rows_digest,
    where_of,
)
from workers.connectors.sinks.memory_store import STORES, Store, now_says
from workers.evidence import schemas


class Memory:
    """A fenced sink of this process, by name."""

    kind = "memory"
    needs_order = False

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.name: str = options["name"]
        self.batch_limit: int = options["batch_limit"]
        self.store = STORES.setdefault(self.name, Store())

    # -- what it is -------------------------------------------------------------------------------------------------

    def test(self) -> ConnectionReport:
        weakness = "It lives in one process's memory: nothing outlasts the process."
        return ConnectionReport(True, {"name": self.name}, (), (weakness,))

    def capability(self) -> Capability:
        return Capability(
            archetype=Archetype.FENCED,
            can_read_record=True,
            is_record_complete=True,
            has_fence=True,
            has_identity_key=True,
            lands_in_one_transaction=True,
            can_lose_acceptances=True,
            batch_limit=self.batch_limit,
            grounds=("Every step holds the store's lock; the store is gone with its process.",),
        )

    def undisciplined_paths(self) -> list[UndisciplinedPath]:
        return []

    def state(self) -> SinkState:
        with self.store.lock:
            open_claim = next((c for c in self.store.claims.values() if c.state == ClaimState.OPEN), None)
            return SinkState(
                self.store.counter,
                self.store.fence,
                open_claim,
                f"memory:{self.name}",
                len(self.store.accepted) or None,
            )

    def said(self) -> SinkMemory:
        state = self.state()
        return SinkMemory(state.identity, state.counter, state.fence, state.last_entry)

    def claims(self, limit: int) -> list[ClaimReading]:
        with self.store.lock:
            return sorted(self.store.claims.values(), key=lambda claim: -claim.generation)[:limit]

    def generations(self, limit: int) -> list[GenerationReading]:
        with self.store.lock:
            newest = sorted(self.store.purposes, reverse=True)[:limit]
            return [GenerationReading(number, self.store.purposes[number], self.name) for number in newest]

    def hand_over(self) -> Mapping[str, Any]:
        with self.store.lock:
            return dict(self.store.start)

    # -- reading the record -----------------------------------------------------------------------------------------

    @contextmanager
    def hold_snapshot(self, generation: int | None = None) -> Iterator[Reading]:
        with self.store.lock:
            fence = self.store.fence
            if generation is not None and fence != generation:
                raise Refused(
                    f"Reading under the claim of generation {generation}",
                    f"this snapshot shows the fence at {fence}",
                    "Claim again with a new generation." if fence > generation else "Claim first.",
                )
            rows = pa.Table.from_pylist(list(self.store.accepted.values()), schema=schemas.ACCEPTED)
            number = next(self.store.transactions)
            self.store.snapshots[number] = fence, rows
        try:
            yield Reading(
                identity=f"memory:{self.name} entry {rows.num_rows} snapshot {number}",
                handle={"snapshot": number, "generation": generation, "oldest_open": str(number)},
                lanes=lanes_of(rows),
                fence=fence,
                following=Following(f"{number}:{number}:"),
            )
        finally:
            del self.store.snapshots[number]

    def split(self, reading: Reading, lane: str, parts: int) -> list[CoordinateRange]:
        rows = self._shown(reading)
        mine = rows.filter(pc.equal(rows["lane"], lane))
        places = zip(mine["position"].to_pylist(), mine["ordinal"].to_pylist(), strict=True)
        return ranges_of(sorted(places), lane, parts)

    def read_accepted(
        self, reading: Reading, range_: CoordinateRange, width: Width, with_head: bool = True
    ) -> Iterator[pa.RecordBatch]:
        rows = self._shown(reading)
        yield from rows.filter(inside(rows, range_)).select(accepted_columns(width, with_head)).to_batches()

    def read_since(self, reading: Reading, since: str) -> Iterator[pa.RecordBatch]:
        rows = self._shown(reading)
        is_new = pc.greater_equal(rows["admitted_in"], Following(since).oldest_open)  # no transaction is open here
        yield from rows.filter(is_new).sort_by([("admitted_in", "ascending"), ("entry", "ascending")]).to_batches()

    def _shown(self, reading: Reading) -> pa.Table:
        try:
            return self.store.snapshots[reading.handle["snapshot"]][1]
        except KeyError as error:
            raise SnapshotLost(f"memory:{self.name}", "its holder has ended") from error

    # -- the protocol -----------------------------------------------------------------------------------------------

    def generation_allocate(self, purpose: Literal["relay", "recoverer"], asked_by: str) -> Answer:
        with self.store.lock:
            open_claim = self.state().open_claim
            if claims.allocation_answer(purpose == "relay", open_claim is not None) is Word.WAIT and open_claim:
                return Answer(Word.WAIT, {"claim": open_claim.generation, "claimed_by": open_claim.claimed_by})
            self.store.counter += 1
            self.store.purposes[self.store.counter] = purpose
            self.store.names[self.store.counter] = asked_by
            return Answer(Word.ALLOCATED, {"generation": self.store.counter})

    def begin(self, generation: int) -> Answer:
        with self.store.lock:
            word = claims.begin_answer(generation, self.store.standing(generation))
            if word is Word.STARTED:
                self.store.fence_raise(generation)
            return Answer(word)

    def deliver(self, generation: int, events: pa.Table, head: Coordinate | None = None) -> list[str]:
        with self.store.lock:
            refused = claims.admission_answer(generation, self.store.standing(generation))
            if refused is not None:
                return [refused] * events.num_rows
            transaction = next(self.store.transactions)
            rows = [entry_make(event) for event in events.to_pylist()]  # all or nothing: before anything changes
            self.store.fence_raise(generation)
            return [self.store.accept(generation, row, transaction, head) for row in rows]

    def claim(self, generation: int, frontier: Mapping[str, Any], wait_seconds: float = 5.0) -> Answer:
        with self.store.lock:
            is_recoverer = self.store.purposes.get(generation) == "recoverer"
            word = claims.claim_answer(generation, is_recoverer, self.store.standing(generation))
            if word is not Word.GRANTED:
                return Answer(word, {"fence": self.store.fence} if word is Word.REFUSED else {})
            self.store.fence_raise(generation)
            held = self.store.claims.get(generation)
            self.store.claims[generation] = (
                replace(held, frontier=frontier, armed_count=None, armed_digest=None)
                if held
                else ClaimReading(
                    generation,
                    ClaimState.OPEN.value,
                    claimed_by=self.name,
                    claimed_at=now_says(),
                    frontier=frontier,
                    arm=0,
                )
            )
            return Answer(word)

    def claim_open(
        self, name: str, frontier: Mapping[str, Any], newest: int | None = None, wait_seconds: float = 5.0
    ) -> Answer:
        with self.store.lock:
            held = self.state().open_claim
            if held is not None and self.store.names.get(held.generation) == name:
                generation = held.generation
            elif newest is not None and max(self.store.claims, default=0) > newest:
                return Answer(Word.REFUSED, {"fence": self.store.fence})
            else:
                generation = int(self.generation_allocate("recoverer", name).data["generation"])
            return Answer(self.claim(generation, frontier).word, {"generation": generation})

    def claim_find(self, name: str, wait_seconds: float = 5.0) -> ClaimsFound:
        with self.store.lock:
            drawn = [
                n
                for n, who in self.store.names.items()
                if self.store.purposes[n] == "recoverer" and who.startswith(name)
            ]
            return ClaimsFound(tuple(sorted(drawn)), max(self.store.claims, default=0))

    def arm(self, generation: int, batch: BatchDigest, frontier: Mapping[str, Any]) -> Answer:
        with self.store.lock:
            word = claims.arm_answer(generation, batch.count, self.batch_limit, self.store.standing(generation))
            if word is Word.TOO_LARGE:
                raise Refused(
                    f"Arming {batch.count} entries",
                    f"one fire of this sink lands at most {self.batch_limit}",
                    "Split the recovery by frontier.",
                )
            if word is not Word.ARMED:
                return Answer(word)
            held = self.store.claims[generation]
            arm = (held.arm or 0) + 1
            self.store.claims[generation] = replace(
                held, arm=arm, armed_count=batch.count, armed_digest=batch.digest, frontier=frontier
            )
            return Answer(word, {"arm": arm})

    def stage(self, generation: int, arm: int, batches: Iterator[pa.RecordBatch]) -> int:
        count = 0
        for batch in batches:
            rows = [entry_make(event) for event in batch.to_pylist()]
            with self.store.lock:
                for row in rows:
                    self.store.staged.setdefault((generation, arm, where_of(row)), row)
            count += len(rows)
        return count

    def unrepresentable(self, batch: pa.RecordBatch) -> pa.Array:
        return pa.array([not is_held(event) for event in batch.to_pylist()], pa.bool_())

    def fire(self, generation: int, arm: int, start: Mapping[str, Any] | None = None) -> Answer:
        with self.store.lock:
            held = self.store.claims.get(generation)
            rows = [row for key, row in self.store.staged.items() if key[:2] == (generation, arm)]
            rows.sort(key=where_of)
            staged = rows_digest(rows)
            is_as_armed = held is not None and staged == BatchDigest(held.armed_count or 0, held.armed_digest or "")
            word = claims.fire_answer(generation, arm, is_as_armed, self.store.standing(generation))
            if word is Word.MISMATCH:
                return Answer(word, {"staged_count": staged.count, "staged_digest": staged.digest})
            if word is not Word.LANDED or held is None:
                return Answer(word, _as_row(held))
            transaction = next(self.store.transactions)
            words = [self.store.accept(generation, row, transaction, None) for row in rows]
            landed = words.count(Word.ACCEPTED)
            self.store.start |= {
                lane: {"position": str(at["position"]), "ordinal": str(at.get("ordinal", 0))}
                for lane, at in (start or {}).items()
            }
            fired = replace(
                held,
                state=ClaimState.FIRED.value,
                fired_at=now_says(),
                landed_count=landed,
                absorbed_count=len(rows) - landed,
                start=start,
            )
            self.store.claims[generation] = fired
            return Answer(word, _as_row(fired) | {"altered_count": words.count(Word.ALTERED)})

    def settle(self, generation: int, wait_seconds: float = 5.0) -> ClaimReading:
        with self.store.lock:
            return self.store.claims.get(generation) or ClaimReading(generation, ClaimState.NONE.value)

    def release(self, generation: int, reason: str) -> Answer:
        with self.store.lock:
            held = self.store.claims.get(generation)
            if held is None:
                return Answer(Word.NO_CLAIM)
            state = claims.state_when_released(ClaimState(held.state))
            self.store.claims[generation] = replace(held, state=state.value)
            return Answer(state.value)

    def counter_raise(self, above: int) -> int:
        with self.store.lock:
            self.store.counter = max(self.store.counter, above)
            return self.store.counter

    def staged_purge(self) -> int:
        with self.store.lock:
            claims = self.store.claims
            done = [key for key in self.store.staged if key[0] not in claims or claims[key[0]].state != ClaimState.OPEN]
            for key in done:
                del self.store.staged[key]
        return len(done)

    @contextmanager
    def drill_namespace(self) -> Iterator[DrillNamespace]:
        name = f"{self.name} drill {secrets.token_hex(4)}"
        try:
            yield DrillNamespace(name, Memory({"name": name, "batch_limit": self.batch_limit}))
        finally:
            STORES.pop(name, None)

    def altered(self) -> list[tuple[Where, bytes]]:
        """Coordinates offered again with other content, and the digest offered, once each."""
        with self.store.lock:
            return list(self.store.altered)


def _as_row(claim: ClaimReading | None) -> dict[str, Any]:
    return {name: getattr(claim, name) for name in ClaimReading.__dataclass_fields__} if claim else {}


if TYPE_CHECKING:
    _is_checked: tuple[type[FencedSink], type[DrillableDelivery], type[FollowedRecord]] = (Memory, Memory, Memory)
