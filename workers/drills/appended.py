"""The drills of a sink without a fence, on a copy of its table: what its lock and a unique constraint prove.

No generation here refuses anybody. What is proved: a recoverer finds what came before its lock, whoever comes after it
finds what it landed, and one that dies leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from recovery_api.domain.drills import DrillName, DrillResult, DrillVerdict
from recovery_api.domain.errors import SinkBusy, Unsuitable
from recovery_api.domain.frontiers import SINGLE_LANE
from workers.connectors.protocols.appended import AppendedNamespace, AppendedSink, Driven
from workers.connectors.readings import CoordinateRange, Width
from workers.drills.script import played
from workers.drills.stage import Noted, named
from workers.evidence import schemas
from workers.evidence.canonical import ABSENT, content_digest, content_parse, payload_digest

EVERYTHING = CoordinateRange(SINGLE_LANE, None, None)
SHORT_SECONDS = 0.2
"""How long who is to wait in vain does."""
WAITS = "waits for the lock"


class Dies(Exception):
    """A recoverer or a relay is gone in the middle of its transaction."""


class AppendedStage(Noted):
    """One copy of a table. `refuses_repeats`: a unique constraint on the identity, checked at once, is there."""

    def __init__(self, sink: AppendedSink, driven: Driven) -> None:
        super().__init__()
        self.sink, self.driven = sink, driven
        self.refuses_repeats = sink.append_ability().absorbs_late_sends

    def batch(self, coordinates: Iterable[int], variant: str = "") -> pa.RecordBatch:
        rows = [self.driven.event(coordinate, variant) for coordinate in coordinates]
        return pa.RecordBatch.from_pylist(rows, schema=schemas.BATCH)

    def send(self, who: str, coordinates: Iterable[int], *expected: str) -> None:
        """A plain send, one transaction an event."""
        for coordinate in coordinates:
            try:
                with self.driven.send_held(self.batch([coordinate]), SHORT_SECONDS) as word:
                    pass
            except SinkBusy:
                word = WAITS
            self.expect(f"{who} sends event {coordinate}", word, *expected)

    def append(self, who: str, coordinates: Iterable[int], **expected: int) -> None:
        """A whole append; `expected` are its figures, and what is not named is 0."""
        wanted = list(coordinates)
        answer = self.sink.append(iter([self.batch(wanted)]))
        self.expect(f"{who} appends {named(wanted)}", said(answer.data), said(expected))

    def owed(self) -> list[int]:
        held = {coordinate for coordinate, _ in self.record()}
        return [coordinate for coordinate in self.history if coordinate not in held]

    def record(self) -> list[tuple[int, bytes]]:
        with self.sink.hold_snapshot() as reading:
            return [
                (row["position"], bytes(row["payload_digest"]))
                for batch in self.sink.read_accepted(reading, EVERYTHING, Width.PAYLOAD)
                for row in batch.to_pylist()
            ]

    def check_record(self) -> None:
        self.check(self.record(), [(coordinate, self._payload(coordinate)) for coordinate in self.history])

    def probe(self) -> None:
        """Whether the copy takes a synthetic event at all; nothing stays of it. Raises: Unsuitable."""
        with suppress(Dies), self.driven.append_held(self.batch([1])):
            raise Dies

    def _payload(self, coordinate: int) -> bytes:
        event = self.driven.event(coordinate)
        content = ABSENT if event["content"] is None else content_parse(event["content"])
        return payload_digest(event["op"], event["key"], content_digest(content, event["op"]))


def said(figures: Mapping[str, Any]) -> str:
    """`3 landed, 1 already there, 0 altered`."""
    counts = [figures.get(name) or 0 for name in ("landed_count", "absorbed_count", "altered_count")]
    return "{} landed, {} already there, {} altered".format(*counts)


def drill_append(name: DrillName, namespace: AppendedNamespace) -> DrillResult:
    """The drill's result on this empty copy. Raises: transient errors, after which it is to be played again."""
    stage = AppendedStage(namespace.sink, namespace.driven)
    try:
        stage.probe()
    except Unsuitable as error:
        says = f"Nothing was proved: the table takes no synthetic event. {error}"
        return DrillResult(name, DrillVerdict.UNKNOWN, says, notes=namespace.notes)
    return played(name, stage, lambda: SCRIPT[name](stage), namespace.notes)


def checkpoint_crash(stage: AppendedStage) -> None:
    """The cursor stands at 2, the table has up to 4, and 5 and 6 are owed."""
    stage.commit(6)
    stage.send("the relay", [1, 2], "accepted")
    stage.send("the relay, which dies before its checkpoint,", [3, 4], "accepted")
    stage.expect("the recoverer reads the record and finds owed", named(stage.owed()), named([5, 6]))
    stage.append("the recoverer", [5, 6], landed_count=2)
    stage.append("a recoverer that believes the cursor", [3, 4, 5, 6], absorbed_count=4)
    if stage.refuses_repeats:
        stage.send("a relay with the stale cursor", [3, 4, 5, 6], "refused")
    stage.commit(1)
    stage.send("the relay, going on,", [7], "accepted")
    stage.check_record()


def in_flight_straggler(stage: AppendedStage) -> None:
    """Event 3 stands in an open transaction of the relay, 4 comes under the lock, and 5 after the commit."""
    stage.commit(5)
    stage.send("the relay", [1, 2], "accepted")
    with stage.driven.send_held(stage.batch([3])) as word:
        stage.expect("a send in flight", word, "accepted")
        waited = waits_for(stage, [3, 4, 5])
        stage.expect("the recoverer, while that is not committed,", waited, WAITS)
    with stage.driven.append_held(stage.batch([3, 4, 5])) as figures:
        stage.expect("the recoverer, after it, has", said(figures), said({"landed_count": 2, "absorbed_count": 1}))
        stage.send("a straggler, under the lock,", [4], WAITS)
    stage.send("the straggler, after the commit,", [4, 5], "refused")
    stage.check_record()


def split_brain_worker(stage: AppendedStage) -> None:
    """Both recoverers have read the same record; the older holds the lock when the newer comes."""
    stage.commit(4)
    stage.send("the relay", [1], "accepted")
    both = stage.owed()
    stage.expect("both recoverers find owed", named(both), named([2, 3, 4]))
    with stage.driven.append_held(stage.batch(both)) as figures:
        stage.expect("the older recoverer has", said(figures), said({"landed_count": 3}))
        stage.expect("the newer recoverer, meanwhile,", waits_for(stage, both), WAITS)
    stage.append("the newer recoverer", both, absorbed_count=3)
    stage.append("the older recoverer, once more,", both, absorbed_count=3)
    stage.check_record()


def crash_inside_recovery(stage: AppendedStage) -> None:
    """A recoverer dies while it copies, before its commit, and after it; each time a successor ends the work."""
    for where in ("under the lock", "before its commit", "after its commit"):
        owed = stage.commit(3)
        dead = f"the recoverer that dies {where}"
        with (
            suppress(Dies),
            stage.driven.append_held(stage.batch(owed if where != "under the lock" else [])) as figures,
        ):
            stage.expect(f"{dead} has", said(figures), said({"landed_count": 0 if where == "under the lock" else 3}))
            if where != "after its commit":
                raise Dies
        landed = 3 if where == "after its commit" else 0
        stage.append("its successor", owed, landed_count=3 - landed, absorbed_count=landed)
    stage.check_record()


def expired_deduplication(stage: AppendedStage) -> None:
    """Event 1 is the oldest; it comes again as it was and with other content."""
    stage.commit(22)
    stage.send("the relay", range(1, 21), "accepted")
    stage.append("the recoverer", stage.owed(), landed_count=2)
    stage.append("a recoverer that replays from the beginning", stage.history, absorbed_count=22)
    altered = stage.sink.append(iter([stage.batch([1], variant="other content")])).data
    stage.expect("the first event with other content", said(altered), said({"altered_count": 1}))
    stage.check_record()


def waits_for(stage: AppendedStage, coordinates: list[int]) -> str:
    """What becomes of an append that is given little time."""
    try:
        stage.sink.append(iter([stage.batch(coordinates)]), SHORT_SECONDS)
    except SinkBusy:
        return WAITS
    return "did not wait"


SCRIPT: Mapping[DrillName, Callable[[AppendedStage], None]] = {
    DrillName.CHECKPOINT_CRASH: checkpoint_crash,
    DrillName.IN_FLIGHT_STRAGGLER: in_flight_straggler,
    DrillName.SPLIT_BRAIN_WORKER: split_brain_worker,
    DrillName.EXPIRED_DEDUPLICATION: expired_deduplication,
    DrillName.CRASH_INSIDE_RECOVERY: crash_inside_recovery,
}
