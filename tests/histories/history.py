"""One random history: what happens at both ends, audited incrementally and in full after each step."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.ledger.following import Known
from recovery_api.domain.ledger.lanes import base_lost
from tests.histories.ends import Ends, Event, accept, accepted, commit, committed
from tests.histories.expected import Expected, expected_of
from tests.histories.remembering import Memory
from workers.evidence import schemas
from workers.evidence.read import BEFORE_EVERYTHING, AuditRequest, Evidence, LaneEvidence, evidence_read
from workers.evidence.store import FINDINGS, ITEMS, rows_read
from workers.recovery.following import learned_of
from workers.spark.tasks import InProcess

STEPS = 6
SCOPES = (None, None, None, tuple(f"key {number}" for number in range(0, 200, 2)))


class Disagreement(AssertionError):
    """The incremental audit, the full one and the generated history are not of one mind."""


class History:
    """Drawn from `seed` alone; half of them with a ledger, which justifies what the source purged. `kept`: how many blocks
    the incremental audits did not read, and `gone_on`: how many of them went on after a purge, so that a test can tell
    that something was left out at all."""

    def __init__(self, ends: Ends, seed: int, directory: Path) -> None:
        self.ends, self.seed, self.directory = ends, seed, directory
        self.random = random.Random(seed)
        self.kept = 0
        self.gone_on = 0
        self.known: Known | None = None
        self.memory = Memory() if self.random.random() < 0.5 else None
        self.acknowledged: set[Coordinate] = set()
        self.scope: tuple[str, ...] | None = None
        self.number = 0
        self.log: list[str] = []

    def run(self) -> int:
        """Every step of it; how many audits agreed. Raises: Disagreement."""
        with self.ends.opened() as (source, sink), ExitStack() as held:
            self.source, self.sink, self.held = source, sink, held
            self.open_at: dict[str, list[psycopg.Connection[Any]]] = {"source": [], "sink": []}
            commit(source, self._keys(self.random.randint(0, 12)))
            for step in range(STEPS):
                for happen in self.random.choices(list(self._happenings()), k=self.random.randint(1, 5)):
                    self.log.append(happen.__name__)
                    happen()
                self._audit(step)
        return STEPS

    # -- what happens ------------------------------------------------------------------------------------------------

    def _happenings(self) -> Iterator[Any]:
        yield from (self.commits, self.commits, self.delivers, self.delivers, self.delivers)
        yield from (self.begins_a_commit, self.begins_a_delivery, self.ends_one, self.ends_one)
        yield from (self.doubles, self.alters, self.is_premature, self.omits, self.purges, self.is_restored)
        yield from (self.changes_scope, self.derives_everything, self.is_tampered_with)

    def commits(self) -> None:
        commit(self.source, self._keys(self.random.randint(1, 8)))

    def delivers(self) -> None:
        held = {one.at for one in accepted(self.sink)}
        waiting = [one for one in committed(self.source) if one.at not in held]
        some = self.random.sample(waiting, self.random.randint(0, len(waiting)))
        newest = max((one.at for one in committed(self.source)), default=None)
        accept(self.sink, [replace(one, head=self.random.choice([None, newest])) for one in some])

    def begins_a_commit(self) -> None:
        connection = self._open("source", self.ends.source_dsn)
        commit(connection, self._keys(self.random.randint(1, 3)))

    def begins_a_delivery(self) -> None:
        """Entry numbers are drawn now, and may commit after later ones."""
        history = committed(self.source)
        connection = self._open("sink", self.ends.sink_dsn)
        accept(connection, self.random.sample(history, min(len(history), self.random.randint(1, 3))))

    def ends_one(self) -> None:
        end = self.random.choice(["source", "sink"])
        if self.open_at[end]:
            connection = self.open_at[end].pop(self.random.randrange(len(self.open_at[end])))
            self.random.choice([connection.commit, connection.commit, connection.rollback])()

    def doubles(self) -> None:
        accept(self.sink, self._some(accepted(self.sink)))

    def alters(self) -> None:
        accept(
            self.sink, [replace(one, digest=self.random.randbytes(32)) for one in self._some(committed(self.source))]
        )

    def is_premature(self) -> None:
        """Never committed, anywhere; or sent under a head that nobody committed."""
        for one in self._some(committed(self.source)):
            nowhere = Coordinate(one.at.position, one.at.ordinal + 10**9)
            beyond = Coordinate(one.at.position + self.random.choice([-1, 1, 10**6]), 0)
            accept(self.sink, [self.random.choice([replace(one, at=nowhere), replace(one, head=beyond)])])

    def omits(self) -> None:
        self.acknowledged ^= {one.at for one in self._some(committed(self.source))}

    def purges(self) -> None:
        count = self.random.randint(0, 3)
        self.source.execute(
            "DELETE FROM outbox WHERE (tx, id) IN (SELECT tx, id FROM outbox ORDER BY tx, id LIMIT %s)", (count,)
        )

    def is_restored(self) -> None:
        """The record loses its newest entries: a backup came back."""
        count = self.random.randint(1, 4)
        self.sink.execute(
            "DELETE FROM fencepost.accepted WHERE entry IN (SELECT entry FROM fencepost.accepted ORDER BY entry DESC LIMIT %s)",
            (count,),
        )
        self.derives_everything()  # what was restored is found in the last increment, and elsewhere in its block's turn

    def is_tampered_with(self) -> None:
        self.sink.execute(
            "UPDATE fencepost.accepted SET payload_digest = %s WHERE entry = (SELECT min(entry) FROM fencepost.accepted)",
            (self.random.randbytes(32),),
        )
        self.derives_everything()

    def changes_scope(self) -> None:
        """Another scope is another epoch: nothing is gone on from."""
        scope = self.random.choice(SCOPES)
        if scope != self.scope:
            self.scope, self.known = scope, None
            self.memory = None if self.memory is None else Memory()

    def derives_everything(self) -> None:
        """Every block's turn has come."""
        if self.known is not None:
            self.known = replace(self.known, promised=timedelta(0))

    def _keys(self, count: int) -> list[int]:
        return [self.random.randrange(200) for _ in range(count)]

    def _some(self, rows: list[Event]) -> list[Event]:
        return self.random.sample(rows, min(len(rows), self.random.randint(0, 2)))

    def _open(self, end: str, dsn: str) -> psycopg.Connection[Any]:
        connection = psycopg.connect(dsn)
        self.held.callback(connection.close)  # what is open at the end is rolled back
        self.open_at[end].append(connection)
        return connection

    # -- the three -----------------------------------------------------------------------------------------------------

    def _audit(self, step: int) -> None:
        request = AuditRequest(
            source=self.ends.source_spec,
            sink=self.ends.sink_spec,
            evidence=self._folder(),
            acknowledged={SINGLE_LANE: _table(self.acknowledged)} if self.acknowledged else {},
            scope=self.scope,
            ranges_least=2,
            block_rows=self.random.choice([1, 3, 8]),
            ledger=None if self.memory is None else self.memory.ledger(),
        )
        with evidence_read(InProcess(), replace(request, is_followed=True, known=self.known), _quietly) as incremental:
            pass
        frontier = {lane: one.frontier for lane, one in incremental.lanes.items()}
        asked = {lane: at for lane, at in frontier.items() if at != BEFORE_EVERYTHING}
        with evidence_read(InProcess(), replace(request, evidence=self._folder(), frontier=asked), _quietly) as full:
            pass
        followed = incremental.followed
        assert followed is not None
        segments = followed.reach.segments
        self.kept += sum(bool(segment.kept) for segment in segments)
        self.gone_on += any(one.kept for one in segments) and any(one.is_purged for one in segments)
        self.log.append(f"audit {step}: {followed.reach.because or 'incremental'}")
        self.known = learned_of(incremental)
        if self.known is not None:
            self.known = replace(self.known, promised=timedelta(days=self.random.choice([0, 7, 7, 7])))
        if {lane: one.frontier for lane, one in full.lanes.items()} != frontier:
            return  # nothing was safe the first time
        self._compare("incremental and full", _said(incremental), _said(full))
        at = frontier.get(SINGLE_LANE, BEFORE_EVERYTHING)
        if self.memory is not None:
            self.memory.learn(incremental)
        elif self.scope is None:
            history, record = committed(self.source), accepted(self.sink)
            self._compare("full and generated", _counted(full), expected_of(history, record, at, self.acknowledged))

    def _compare(self, which: str, one: Any, other: Any) -> None:
        if one != other:
            raise Disagreement(f"seed {self.seed}, {which}:\n{one}\n{other}\nafter {self.log}")

    def _folder(self) -> str:
        self.number += 1
        place = self.directory / f"{self.seed} {self.number}"
        place.mkdir()
        return str(place)


def _quietly(**_: Any) -> None: ...


def _said(found: Evidence) -> dict[str, Any]:
    """Everything that an audit concludes from."""
    findings = rows_read(found.stored, found.stored.of(FINDINGS), schemas.FINDING).to_pylist()
    for row in findings:
        if row["is_keyed_hidden"]:  # of several entries at its coordinate any one is named, as they come
            row["accepted_digest"] = None
    told = rows_read(found.stored, found.stored.of(ITEMS), schemas.ITEM).to_pylist()
    for row in told:
        if found.spec.questions[row["lane"]].scope is None:  # looked up for people, once, and judged by nowhere
            row["key"] = None
    return {
        "lanes": {
            lane: (one.frontier, asdict(one.counts), dict(one.fingerprint), one.stranded, _learnt(one))
            for lane, one in found.lanes.items()
        },
        "items": sorted(repr(row | {"id": None, "other_digest": None, "entry": None}) for row in told),
        "findings": sorted(map(repr, findings)),
        "batch": (found.batch_count, found.batch_digest),
        "weaknesses": found.source_reading.weaknesses,
    }


def _learnt(lane: LaneEvidence) -> Any:
    """What the ledger may learn, but for the transactions that were open: others of the cluster end meanwhile."""
    if lane.found is None:
        return None
    return replace(lane.found, evidence="", admitted_below=None, prefix={}), base_lost(lane.known, lane.found)


def _counted(found: Evidence) -> Expected:
    counts = [one.counts for one in found.lanes.values()]
    return Expected(
        sum(one.obligations_retained for one in counts),
        sum(one.lost for one in counts),
        sum(one.acknowledged for one in counts),
        sum(one.duplicate_payloads for one in counts),
        sum(one.premature for one in counts),
        sum(one.justification_unknown for one in counts),
    )


def _table(coordinates: set[Coordinate]) -> pa.Table:
    """Position and ordinal, as a reading is given what was acknowledged."""
    held = sorted(coordinates)
    columns = {"position": [one.position for one in held], "ordinal": [one.ordinal for one in held]}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
