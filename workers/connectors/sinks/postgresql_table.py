"""An existing PostgreSQL table as an acceptance record, read as it is, and appended to where its owner says that a row is
the effect. It has no fence, and that is said everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
from psycopg import sql

from recovery_api.domain.capabilities import Archetype, Capability
from recovery_api.domain.conditions import UNFENCED as UNFENCED_PATH
from recovery_api.domain.conditions import UndisciplinedPath
from recovery_api.domain.coordinates import Coordinate, Spelling
from recovery_api.domain.errors import Refused, TerminalError, Unreachable, Unsuitable
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.headroom.seen import EndSeen
from recovery_api.domain.identity import is_by_event_id
from recovery_api.domain.kinds.postgresql_mapping import spelling_of
from recovery_api.domain.kinds.postgresql_table import COLUMN_OPTIONS
from recovery_api.domain.kinds.state import state_of
from recovery_api.domain.ledger.blocks import coordinate_after
from recovery_api.domain.restores import SinkMemory
from workers.connectors.postgresql.commit_evidence import subscriber_refuse
from workers.connectors.postgresql.connection import Address, snapshot_kept, snapshot_open
from workers.connectors.postgresql.content import contents_begin
from workers.connectors.postgresql.coordinate_sql import CoordinateSql
from workers.connectors.postgresql.extent import Extent, extent_read
from workers.connectors.postgresql.flushing import durability_weaknesses, flush_wait
from workers.connectors.postgresql.indexes import is_coordinate_unique, latest_by
from workers.connectors.postgresql.inspection import (
    column_names,
    extent_facts,
    op_problems,
    table_facts,
    table_weaknesses,
)
from workers.connectors.postgresql.looking import look
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.postgresql.mapping_notes import record_notes
from workers.connectors.postgresql.mapping_problems import joined_weaknesses, path_problems
from workers.connectors.postgresql.opening import Opened, handle_of, identity_of, incarnation_of, table_open
from workers.connectors.postgresql.packed import (
    Packed,
    packed_digest,
    packed_nullable_integer,
    packed_text,
    packed_time,
    signed,
)
from workers.connectors.postgresql.poolers import pooler_weaknesses
from workers.connectors.postgresql.rewritten import rewritten_refuse
from workers.connectors.postgresql.safe_frontier import snapshot_read
from workers.connectors.postgresql.sample import newest_read
from workers.connectors.postgresql.state_table import hash_of_key_text
from workers.connectors.postgresql.table_reader import TableReader, lane_check, schema_of
from workers.connectors.protocols.appended import AppendAbility, AppendedNamespace, AppendedSink
from workers.connectors.protocols.delivery import Answer
from workers.connectors.protocols.fence import DrillableDelivery
from workers.connectors.protocols.image import StateReading
from workers.connectors.protocols.record import ContentRecord, ContentSeen
from workers.connectors.readings import (
    BatchDigest,
    ConnectionReport,
    CoordinateRange,
    LaneReading,
    Reading,
    SafeFrontier,
    Width,
)
from workers.connectors.rows import ranges_of
from workers.connectors.sinks.postgresql_ids import PostgresqlIds
from workers.connectors.sinks.state import StateBeside
from workers.connectors.sinks.table import appending, drilling
from workers.connectors.sinks.table.ability import append_ability
from workers.connectors.sinks.table.facts import WrittenColumn, facts_read
from workers.connectors.sinks.table.target import digest_read
from workers.connectors.sinks.table.unfit import unfit
from workers.evidence.schemas import ACCEPTED, IMAGE_ROW

UNFENCED = "The table has no fence: nothing in it stops an entry that is still in flight."
NOT_KEPT = "Nobody keeps the table append-only: a row that was updated or deleted since is judged as it is now."
UNDISCIPLINED = "whoever may write the table is a path into the record that no protocol checks"
ACCEPTANCE = ("entry", "generation", "accepted_at", "admitted_in", "digest")
NOT_JUDGED = SafeFrontier(None, "acceptance record", "An acceptance record has no safe frontier.")


def record_of(options: Mapping[str, Any]) -> PostgresqlTable | PostgresqlIds:
    """The table as its options say it is met: by coordinate, or by message id."""
    return PostgresqlIds(options) if is_by_event_id(options) else PostgresqlTable(options)


class PostgresqlTable(StateBeside):
    """Sink `postgresql_table`: queryable, unfenced. Made from parsed options; opens connections only when asked."""

    kind = "postgresql_table"
    needs_order = False

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = dict(options)
        self.address = Address.of(options)
        self.spelling: Spelling = spelling_of(options)
        self.state_place = state_of(self.kind, options)
        self._written: tuple[MappedTable, Mapping[str, WrittenColumn]] | None = None

    def look(self, clock: Callable[[], datetime]) -> EndSeen:
        return look(self.address, {}, clock)

    def capability(self) -> Capability:
        """Queryable, as far as the record can be read now. Raises: what opening the table raises."""
        with snapshot_open(self.address) as connection:
            opened = self._open(connection)
            ability = append_ability(connection, opened)
            unique = is_coordinate_unique(connection, opened.mapped, opened.table)
            may_lose = opened.table.persistence == "u" or bool(durability_weaknesses(connection))
        is_complete = self.options["is_append_only"] is not False and not opened.server.is_in_recovery
        return Capability(
            archetype=Archetype.QUERYABLE,
            can_read_record=True,
            is_record_complete=is_complete,
            has_fence=False,
            has_identity_key=unique,
            lands_in_one_transaction=ability.may_append,
            can_lose_acceptances=may_lose,
            grounds=(
                UNFENCED,
                NOT_KEPT,
                "A unique index on the coordinate refuses a second entry at one coordinate."
                if unique
                else "No unique index on the coordinate: a repeated delivery leaves a second entry.",
                *self._incomplete(opened),
                *ability.problems,
            ),
        )

    def said(self) -> SinkMemory:
        """Server, timeline, database and table: a table keeps no counter, and its rows may well be deleted."""
        with snapshot_open(self.address) as connection:
            return SinkMemory(incarnation_of(self._open(connection)))

    def append_ability(self) -> AppendAbility:
        """What stands in the way is a problem in it, not an error. Raises: Unreachable."""
        try:
            with snapshot_open(self.address) as connection:
                return append_ability(connection, self._open(connection))
        except TerminalError as error:
            return AppendAbility(False, False, False, (str(error),), "The table could not be looked at.")

    def unrepresentable(self, batch: pa.RecordBatch) -> pa.Array:
        """As AppendedDelivery.unrepresentable: the catalogue is asked once."""
        if self._written is None:
            with snapshot_open(self.address) as connection:
                opened = self._open(connection)
                self._written = (opened.mapped, facts_read(connection, opened.table).columns)
        return unfit(*self._written, batch)

    def append(
        self, content: Iterator[pa.RecordBatch], wait_seconds: float = 5.0, owed: BatchDigest | None = None
    ) -> Answer:
        return appending.append(self.address, self._open, content, wait_seconds, owed)

    @contextmanager
    def drill_namespace(self) -> Iterator[AppendedNamespace]:
        """As DrillableDelivery.drill_namespace: a copy LIKE the table, in a schema of its own."""
        reference = self.options.get("drill_connection") or self.options["connection"]
        address = replace(self.address, reference=reference)
        with drilling.namespace_open(address, self._open) as (schema, notes):
            copy = PostgresqlTable({**self.options, "connection": reference, "schema": schema})
            yield AppendedNamespace(schema, copy, drilling.DrilledTable(copy.address, copy._open), notes)

    def undisciplined_paths(self) -> list[UndisciplinedPath]:
        return [(UNFENCED_PATH, None, UNDISCIPLINED)]

    def test(self) -> ConnectionReport:
        """What is there and whether it can be read as a record. Changes nothing."""
        facts: dict[str, Any] = {}
        problems: list[str] = []
        weaknesses = [UNFENCED, NOT_KEPT]
        sample: dict[str, Any] | None = None
        try:
            with snapshot_open(self.address) as connection:
                facts["columns"] = column_names(connection, self.options)
                opened = self._open(connection)
                facts |= table_facts(opened)
                ability = append_ability(connection, opened)
                facts["append_ability"] = asdict(ability)
                weaknesses += [*ability.problems, *ability.says]
                weaknesses += [] if ability.absorbs_late_sends else [ability.late_sends_says]
                facts["identity"] = identity_of(opened, snapshot_read(connection))
                extent = extent_read(connection, opened.mapped)
                facts |= extent_facts(connection, extent, opened.mapped)
                weaknesses += [*self._incomplete(opened), *table_weaknesses(connection, opened, extent)]
                weaknesses += record_notes(opened) + joined_weaknesses(connection, opened.mapped)
                weaknesses += pooler_weaknesses(connection) + durability_weaknesses(connection)
                problems += op_problems(connection, opened.mapped) + path_problems(connection, opened.mapped)
                by = latest_by(connection, opened.mapped, opened.table)
                sample = newest_read(connection, opened.mapped, ACCEPTANCE, by)
        except (TerminalError, Unreachable) as error:
            problems.append(str(error))
            facts["error"] = error.as_row()
        return ConnectionReport(not problems, facts, tuple(problems), tuple(weaknesses), sample)

    @contextmanager
    def hold_snapshot(self, generation: int | None = None) -> Iterator[Reading]:
        """One exported snapshot of the record. Raises: Refused where a fence is asked for, which a table has not."""
        if generation is not None:
            remedy = "Append to it instead, or install the sink kit."
            raise Refused(f"Reading under generation {generation}", "the table has no fence", remedy)
        with snapshot_open(self.address) as connection:
            opened = self._open(connection)
            snapshot = snapshot_read(connection)
            flush_wait(connection, self.address)
            extent = extent_read(connection, opened.mapped)
            row = connection.execute("SELECT pg_export_snapshot()").fetchone()
            assert row is not None
            rewritten_refuse(connection, opened.table.leaves)
            incomplete = self._incomplete(opened)
            handle = handle_of(connection, opened, extent, row[0])
            if opened.mapped.column("admitted_in") is not None:
                handle["oldest_open"] = str(snapshot.xmin)
            reading = Reading(
                identity=identity_of(opened, snapshot),
                handle=handle,
                lanes={SINGLE_LANE: _lane(extent)},
                is_complete=not incomplete,
                weaknesses=(*incomplete, UNFENCED, NOT_KEPT, *record_notes(opened)),
            )
            with snapshot_kept(connection):
                yield reading
            connection.execute("ROLLBACK")

    def split(self, reading: Reading, lane: str, parts: int) -> list[CoordinateRange]:
        return ranges_of(reading.handle["grid"], lane, parts)

    def read_accepted(
        self, reading: Reading, range_: CoordinateRange, width: Width, with_head: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """The record in the range. Head and entry come with `with_head`, and always at full width."""
        reader = TableReader(self.address, self.options, reading.handle)
        mapped = reader.mapped
        columns: list[Packed] = []
        names = ["position", "ordinal"]
        if with_head or width is Width.FULL:
            names += ["head_position", "head_ordinal", "entry"]
            columns += [*self._head(mapped), *self._numbers(mapped, ["entry"])]
        if width is Width.PAYLOAD:
            names.append("admitted_in")
            columns += self._numbers(mapped, ["admitted_in"])
        if width is not Width.COORDINATE:
            names.append("payload_digest")
            columns.append(packed_digest("payload_digest", digest_read(mapped)))
        if width is Width.FULL:
            names = list(ACCEPTED.names)
            columns += [*self._numbers(mapped, ["generation", "admitted_in"]), *self._shown(mapped)]
        return reader.read(range_, columns, schema_of(ACCEPTED, names))

    def contents_at(self, reading: Reading, lane: str, coordinate: Coordinate) -> list[ContentSeen] | None:
        if not self.options.get("content"):
            return None
        lane_check(lane)
        mapped = TableReader(self.address, self.options, reading.handle).mapped
        with snapshot_open(self.address, reading.handle["snapshot"]) as connection:
            return contents_begin(connection, mapped, coordinate)

    def read_later(
        self, reading: Reading, state: StateReading, lane: str, above: Coordinate | None
    ) -> Iterator[pa.RecordBatch]:
        reader = TableReader(self.address, self.options, reading.handle)
        hash_ = hash_of_key_text(state, reader.mapped.key.as_string(None))
        low = None if above is None else coordinate_after(above)
        return reader.read(CoordinateRange(lane, low, None), [packed_digest("key_hash", hash_)], IMAGE_ROW)

    def _open(self, connection: psycopg.Connection[Any]) -> Opened:
        opened = table_open(connection, self.options, COLUMN_OPTIONS)
        subscriber_refuse(connection, opened.table)
        if self.options.get("head"):
            CoordinateSql.of(self.spelling, self.options["head"], opened.mapped.types)
        if not self.options.get("digest") and not self.options.get("content"):
            remedy = "Map the content, or a digest column; without either only coordinates can be compared."
            raise Unsuitable(f"table {self.options['table']!r}", "has neither content nor digest mapped", remedy)
        return opened

    def _incomplete(self, opened: Opened) -> list[str]:
        """Why the record as read here may miss acceptances; then every verdict is unknown."""
        said = []
        if opened.server.is_in_recovery:
            said.append("This is a replica: what the primary accepted since is not here. Register the primary.")
        if self.options["is_append_only"] is False:
            said.append("The table is not said to be append-only: what was accepted may be gone from it.")
        return said

    def _head(self, mapped: MappedTable) -> list[Packed]:
        if not self.options.get("head"):
            return []
        head = CoordinateSql.of(self.spelling, self.options["head"], mapped.types)
        names = ("head_position", "head_ordinal")
        return [
            packed_nullable_integer(name, component.send, component.held)
            for name, component in zip(names, head.components, strict=False)
        ]

    def _numbers(self, mapped: MappedTable, options: list[str]) -> list[Packed]:
        sends = {option: column for option in options if (column := mapped.column(option)) is not None}
        return [
            packed_nullable_integer(
                option,
                sql.SQL("xid8send({})" if option == "admitted_in" else "int8send({}::int8)").format(column),
                signed,
            )
            for option, column in sends.items()
        ]

    def _shown(self, mapped: MappedTable) -> list[Packed]:
        shown = []
        if (event_id := mapped.column("event_id")) is not None:
            shown.append(packed_text("event_id", event_id))
        if (accepted_at := mapped.column("accepted_at")) is not None:
            shown.append(packed_time("accepted_at", accepted_at))
        return shown


def _lane(extent: Extent) -> LaneReading:
    return LaneReading(SINGLE_LANE, extent.highest, extent.lowest, None, NOT_JUDGED, extent.estimated_rows)


if TYPE_CHECKING:
    _is_checked: tuple[type[AppendedSink], type[DrillableDelivery], type[ContentRecord]] = (
        PostgresqlTable,
        PostgresqlTable,
        PostgresqlTable,
    )
