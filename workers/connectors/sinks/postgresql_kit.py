"""The fenced PostgreSQL sink: the kit's steps over real connections, each in a transaction of its own.

One law: an answer is what the kit's functions said; nothing is decided here. A step that had to wait in vain raises
SinkBusy with the names of those it waited for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import psycopg
import pyarrow as pa
from psycopg import sql
from psycopg.types.json import Jsonb

from recovery_api.domain.capabilities import Capability
from recovery_api.domain.claims import ClaimState, Word
from recovery_api.domain.conditions import UndisciplinedPath
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Refused, SinkBusy, SnapshotLost, Unsuitable
from recovery_api.domain.headroom.seen import EndSeen
from recovery_api.domain.kinds import options_parse
from recovery_api.domain.kinds.postgresql_kit import KIND, KitOptions, kit_options, kit_state
from recovery_api.domain.restores import SinkMemory
from workers.connectors.deadlines import ASKING, Step
from workers.connectors.postgresql.connection import (
    READING,
    Address,
    connection_open,
    snapshot_joined,
    snapshot_kept,
    transaction_begin,
    transaction_write,
)
from workers.connectors.postgresql.flushing import flush_wait
from workers.connectors.postgresql.looking import look
from workers.connectors.postgresql.rewritten import rewritten_refuse
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
from workers.connectors.protocols.image import StateReading, StateRecord
from workers.connectors.protocols.record import FollowedRecord, OrderedRecord
from workers.connectors.readings import BatchDigest, ConnectionReport, CoordinateRange, Reading, Width
from workers.connectors.rows import ranges_of
from workers.connectors.sinks.kit import KIT_VERSION, drilling, following, inspection, record, staging
from workers.connectors.sinks.kit.deliveries import events_as_json
from workers.connectors.sinks.kit.holders import holders_say
from workers.connectors.sinks.kit.install import kit_version_get
from workers.connectors.sinks.kit.versions import version_refuse
from workers.connectors.sinks.state import StateBeside
from workers.faults import Point, crash_point

STAGING_WAIT_SECONDS = 25.0
"""For a lock on the staging area: it holds up nobody at the fence, so it may be longer than the kit's own waits."""
PURGED_AT_ONCE = 100_000
CLAIM_FIELDS = ClaimReading.__dataclass_fields__


class PostgresqlKit(StateBeside):
    """A sink that carries the kit. Made from parsed options; opens a connection for each call."""

    kind = "postgresql_kit"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.address = Address.of(options)
        self.kit: KitOptions = kit_options(options)
        self.state_place = kit_state(options)
        self.needs_order = self.kit.effect.order == "ordered"
        self._armed_count = 0  # how long a fire may take is told by what it fires
        self._is_current = False
        self._drill_reference: str = options.get("drill_connection") or options["connection"]

    def look(self, clock: Callable[[], datetime]) -> EndSeen:
        return look(self.address, {}, clock)

    # -- what it is -------------------------------------------------------------------------------------------------

    def test(self) -> ConnectionReport:
        with connection_open(self.address) as connection:
            return inspection.kit_test(connection, self.kit)

    def capability(self) -> Capability:
        with connection_open(self.address) as connection:
            return inspection.kit_capability(connection, self.kit)

    def state(self) -> SinkState:
        row = self._row("SELECT counter, fence, open_claim, identity, last_entry FROM {schema}.state()")
        counter, fence, claim, identity, last_entry = row
        return SinkState(counter, fence, _claim(claim) if claim else None, identity, last_entry)

    def said(self) -> SinkMemory:
        state = self.state()
        return SinkMemory(state.identity, state.counter, state.fence, state.last_entry)

    def claims(self, limit: int) -> list[ClaimReading]:
        query = "SELECT to_jsonb(c) FROM {schema}.claim c ORDER BY c.generation DESC LIMIT %s"
        with connection_open(self.address) as connection:
            return [_claim(row) for (row,) in connection.execute(self._sql(query), (limit,))]

    def generations(self, limit: int) -> list[GenerationReading]:
        query = (
            "SELECT g.number, g.purpose, coalesce(g.asked_by, g.given_name), g.allocated_at, g.superseded_by"
            " FROM {schema}.generation g ORDER BY g.number DESC LIMIT %s"
        )
        with connection_open(self.address) as connection:
            return [
                GenerationReading(number, purpose, asked_by, allocated_at.isoformat(), superseded_by)
                for number, purpose, asked_by, allocated_at, superseded_by in connection.execute(
                    self._sql(query), (limit,)
                )
            ]

    def facts(self) -> Mapping[str, Any]:
        """What pins this sink: system identifier, database, timeline, kit; and its effect and batch limit."""
        facts: Mapping[str, Any] = self._row("SELECT facts FROM {schema}.state()")[0]
        return facts

    def undisciplined_paths(self) -> list[UndisciplinedPath]:
        """Who can write record or target by another way than admission: path, role, and a sentence."""
        with connection_open(self.address) as connection:
            return inspection.paths_read(connection, self.kit)

    def hand_over(self) -> Mapping[str, Any]:
        with connection_open(self.address) as connection:
            rows = connection.execute(self._sql("SELECT lane, position::text, ordinal::text FROM {schema}.hand_over"))
            return {lane: {"position": position, "ordinal": ordinal} for lane, position, ordinal in rows}

    # -- reading the record -----------------------------------------------------------------------------------------

    @contextmanager
    def hold_snapshot(self, generation: int | None = None) -> Iterator[Reading]:
        with connection_open(self.address, step=READING) as connection:
            transaction_begin(connection, self.address)
            fence, is_replica = connection.execute(
                self._sql("SELECT s.fence, pg_is_in_recovery() FROM {schema}.state() s")
            ).fetchone() or (0, True)
            if generation is not None and is_replica:
                raise Unsuitable(
                    "the sink",
                    "this server is a replica, and what a claim reads must come from the primary",
                    "Connect to the primary.",
                )
            if generation is not None and fence != generation:
                raise Refused(
                    f"Reading under the claim of generation {generation}",
                    f"this snapshot shows the fence at {fence}",
                    "Claim again with a new generation." if fence > generation else "Claim first.",
                )
            reading = self._reading(connection, fence, generation, is_replica)
            with snapshot_kept(connection):
                yield reading

    def split(self, reading: Reading, lane: str, parts: int) -> list[CoordinateRange]:
        return ranges_of(reading.handle["grid"].get(lane, {"points": []})["points"], lane, parts)

    def read_accepted(
        self, reading: Reading, range_: CoordinateRange, width: Width, with_head: bool = True
    ) -> Iterator[pa.RecordBatch]:
        handle = reading.handle
        with snapshot_joined(self.address, handle["snapshot"]) as connection:
            shown = connection.execute(self._sql("SELECT fence FROM {schema}.state()")).fetchone()
            if handle["generation"] is not None and shown != (handle["generation"],):
                raise SnapshotLost(self.address.reference, f"a part shows the fence at {shown}")
            yield from record.accepted_read(connection, self.kit.schema, range_, width, with_head, handle["grid"])

    def read_since(self, reading: Reading, since: str) -> Iterator[pa.RecordBatch]:
        with snapshot_joined(self.address, reading.handle["snapshot"]) as connection:
            yield from following.since_read(connection, self.kit.schema, reading.following, since)

    def later_accepted(self, reading: Reading, lane: str, rows: pa.Table) -> pa.Array:
        with snapshot_joined(self.address, reading.handle["snapshot"]) as connection:
            return record.later_keys_read(connection, self.kit.schema, lane, rows)

    def read_later(
        self, reading: Reading, state: StateReading, lane: str, above: Coordinate | None
    ) -> Iterator[pa.RecordBatch]:
        with snapshot_joined(self.address, reading.handle["snapshot"]) as connection:
            yield from record.later_read(connection, self.kit.schema, state, lane, above, reading.handle["grid"])

    def _reading(
        self, connection: psycopg.Connection[Any], fence: int, generation: int | None, is_replica: bool
    ) -> Reading:
        row = connection.execute(
            self._sql(
                "SELECT s.identity, s.last_entry, pg_snapshot_xmin(pg_current_snapshot())::text,"
                " CASE WHEN NOT pg_is_in_recovery() THEN pg_export_snapshot() END FROM {schema}.state() s"
            )
        ).fetchone()
        assert row is not None
        flush_wait(connection, self.address)
        identity, last_entry, oldest_open, snapshot = row
        grid = record.grid_read(connection, self.kit.schema)
        if snapshot is None:  # a replica cannot export one
            raise Unsuitable(
                "the sink", "this server is a replica: it cannot be read as one", "Connect to the primary."
            )
        reading = Reading(
            identity=f"{identity} entry {last_entry or 0} snapshot {snapshot}",
            handle={
                "snapshot": snapshot,
                "generation": generation,
                "oldest_open": oldest_open,
                "last_entry": last_entry,
                "grid": grid,
            },
            lanes=record.lanes_read(connection, self.kit.schema, grid),
            is_complete=not is_replica,
            fence=fence,
            following=following.following_read(connection, self.kit.schema),
        )
        name = sql.Identifier(self.kit.schema, "accepted").as_string(connection)
        rewritten_refuse(connection, connection.execute("SELECT %s::regclass::oid::bigint", [name]).fetchone() or ())
        return reading

    # -- the protocol -----------------------------------------------------------------------------------------------

    def generation_allocate(self, purpose: Literal["relay", "recoverer"], asked_by: str) -> Answer:
        word, generation, detail = self._written(
            "SELECT answer, generation, detail FROM {schema}.generation_allocate(%s, %s)", purpose, asked_by
        )
        return self._answer(word, {"generation": generation} if generation is not None else detail)

    def begin(self, generation: int) -> Answer:
        wait = self.kit.lock_wait_seconds
        return self._step(Step("a start", waits_seconds=wait), "begin(%s, %s)", generation, wait)

    def deliver(self, generation: int, events: pa.Table, head: Coordinate | None = None) -> list[str]:
        query = "SELECT {schema}.deliver_many(%s, %s::jsonb)"
        step = Step("a delivery", len(events), self.kit.lock_wait_seconds)
        words: list[str] = self._written(query, generation, events_as_json(events, head), step=step)[0]
        return words

    def claim(self, generation: int, frontier: Mapping[str, Any], wait_seconds: float | None = None) -> Answer:
        wait = self._wait(wait_seconds)
        step = Step("the claim", waits_seconds=wait)
        return self._step(step, "claim(%s, %s, %s)", generation, Jsonb(frontier), wait)

    def claim_open(
        self, name: str, frontier: Mapping[str, Any], newest: int | None = None, wait_seconds: float | None = None
    ) -> Answer:
        wait = self._wait(wait_seconds)
        word, generation, detail = self._written(
            "SELECT answer, generation, detail FROM {schema}.claim_open(%s, %s, %s, %s)",
            *(name, Jsonb(frontier), newest, wait),
            step=Step("the claim", waits_seconds=wait),
        )
        return self._answer(word, {"generation": generation} if generation is not None else detail)

    def claim_find(self, name: str, wait_seconds: float | None = None) -> ClaimsFound:
        wait = self._wait(wait_seconds)
        found = self._step(Step("looking for a claim", waits_seconds=wait), "claim_find(%s, %s)", name, wait).data
        return ClaimsFound(tuple(found["generations"]), found["newest"])

    def arm(self, generation: int, batch: BatchDigest, frontier: Mapping[str, Any]) -> Answer:
        step = Step("the arming", waits_seconds=self.kit.lock_wait_seconds)
        answer = self._step(step, "arm(%s, %s, %s, %s)", generation, batch.count, batch.digest, Jsonb(frontier))
        if answer.word == Word.TOO_LARGE:
            raise Refused(
                f"Arming {batch.count} entries",
                f"one fire of this sink lands at most {answer.data['batch_limit']}",
                "Split the recovery by frontier, or install the kit with a higher batch limit.",
            )
        self._armed_count = batch.count
        return answer

    def stage(self, generation: int, arm: int, batches: Iterator[pa.RecordBatch]) -> int:
        count = 0
        with connection_open(self.address) as connection:
            self._current_check(connection)
            for batch in batches:
                connection.step = Step("the staging", batch.num_rows, STAGING_WAIT_SECONDS)
                begin = functools.partial(transaction_write, connection, self.address)
                staging.batch_stage(connection, self.kit.schema, generation, arm, batch, begin)
                count += batch.num_rows
        return count

    def unrepresentable(self, batch: pa.RecordBatch) -> pa.Array:
        return staging.unrepresentable(batch, needs_key=self.kit.effect.kind == "target")

    def fire(self, generation: int, arm: int, start: Mapping[str, Any] | None = None) -> Answer:
        step = Step("the fire", self._armed_count, self.kit.lock_wait_seconds)
        with connection_open(self.address, step=step) as connection:
            self._current_check(connection)
            with transaction_write(connection, self.address):
                query = self._sql("SELECT answer, detail FROM {schema}.fire(%s, %s, %s)")
                row = connection.execute(query, (generation, arm, None if start is None else Jsonb(start))).fetchone()
                crash_point(Point.DURING_FIRE)
            assert row is not None
            if row[0] in (Word.LANDED, Word.ALREADY_FIRED):
                flush_wait(connection, self.address)
        return self._answer(*row)

    def settle(self, generation: int, wait_seconds: float | None = None) -> ClaimReading:
        wait = self._wait(wait_seconds)
        with connection_open(self.address, step=Step("the settling", waits_seconds=wait)) as connection:
            with transaction_write(connection, self.address):
                query = self._sql("SELECT answer, detail FROM {schema}.settle(%s, %s)")
                row = connection.execute(query, (generation, wait)).fetchone()
            assert row is not None
            if row[0] != "busy":
                flush_wait(connection, self.address)
        answer = self._answer(*row)
        if answer.word == ClaimState.NONE:
            return ClaimReading(generation, ClaimState.NONE.value)
        return _claim(answer.data)

    def release(self, generation: int, reason: str) -> Answer:
        step = Step("the release", waits_seconds=self.kit.lock_wait_seconds)
        return self._step(step, "release(%s, %s)", generation, reason)

    def counter_raise(self, above: int) -> int:
        """After a restore: no generation at or below `above` is allocated any more. Returns where the counter stands."""
        counter: int = self._written("SELECT {schema}.counter_raise(%s)", above)[0]
        return counter

    def staged_purge(self) -> int:
        """Takes away staged rows that no open claim needs; how many."""
        total = 0
        step = Step("the purge of what was staged", PURGED_AT_ONCE)
        while purged := self._written("SELECT {schema}.staged_purge()", step=step)[0]:
            total += purged
        return total

    @contextmanager
    def drill_namespace(self) -> Iterator[DrillNamespace]:
        address = replace(self.address, reference=self._drill_reference)
        with drilling.namespace_open(address, self.kit) as (kit, notes):
            options = {
                "connection": self._drill_reference,
                "connect_timeout_seconds": address.connect_timeout_seconds,
                "statement_timeout_seconds": address.statement_timeout_seconds,
                "answer_timeout_seconds": address.answer_timeout_seconds,
                "schema": kit.schema,
                "prefix": kit.prefix,
                "batch_limit": kit.batch_limit,
                "lock_wait_seconds": kit.lock_wait_seconds,
                "relay_wait_seconds": kit.relay_wait_seconds,
            }
            yield DrillNamespace(kit.schema, PostgresqlKit(options_parse(KIND, options)), notes)

    def _wait(self, wait_seconds: float | None) -> float:
        return self.kit.lock_wait_seconds if wait_seconds is None else wait_seconds

    def _step(self, step: Step, call: str, *arguments: Any) -> Answer:
        asked = "SELECT answer, detail FROM {schema}." + call  # nosec B608 # built of constants; names are quoted
        return self._answer(*self._written(asked, *arguments, step=step))

    def _answer(self, word: str, detail: Any) -> Answer:
        if word == "busy":
            raise SinkBusy(holders_say(detail), self.kit.lock_wait_seconds)
        return Answer(word, detail or {})

    def _written(self, query: str, *arguments: Any, step: Step = ASKING) -> tuple[Any, ...]:
        """A step that changes something: only in a kit of today's version."""
        return self._asked(query, arguments, step, is_change=True)

    def _row(self, query: str, *arguments: Any, step: Step = ASKING) -> tuple[Any, ...]:
        return self._asked(query, arguments, step, is_change=False)

    def _asked(self, query: str, arguments: tuple[Any, ...], step: Step, is_change: bool) -> tuple[Any, ...]:
        with connection_open(self.address, step=step) as connection:
            if is_change:
                self._current_check(connection)
            with transaction_write(connection, self.address):
                row = connection.execute(self._sql(query), arguments or None).fetchone()
            assert row is not None
            return row

    def _current_check(self, connection: psycopg.Connection[Any]) -> None:
        """Once a connector: a kit is upgraded, never brought back. Raises: Unsuitable, naming the version."""
        if not self._is_current:
            found = kit_version_get(connection, self.kit.schema)
            if found is not None and found["kit_version"] != KIT_VERSION:
                raise version_refuse(found["kit_version"], self.kit.schema)
            self._is_current = True

    def _sql(self, query: str) -> sql.Composed:
        return sql.SQL(query).format(schema=sql.Identifier(self.kit.schema))


def _claim(row: Mapping[str, Any]) -> ClaimReading:
    return ClaimReading(**{name: row[name] for name in CLAIM_FIELDS if row.get(name) is not None})


if TYPE_CHECKING:
    _is_checked: tuple[
        type[FencedSink], type[DrillableDelivery], type[OrderedRecord], type[FollowedRecord], type[StateRecord]
    ] = (PostgresqlKit, PostgresqlKit, PostgresqlKit, PostgresqlKit, PostgresqlKit)
