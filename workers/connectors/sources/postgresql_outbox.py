"""A PostgreSQL table as a source: any table whose rows are committed events with an ordered coordinate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate, Spelling
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.grounds import Catalogue, Judged, numbers_step, transaction_ids_judge
from recovery_api.domain.headroom.seen import EndSeen
from recovery_api.domain.kinds.base import Retention
from recovery_api.domain.kinds.postgresql_mapping import OPS, filter_says, spelling_of
from recovery_api.domain.kinds.postgresql_outbox import COLUMN_OPTIONS
from workers.connectors.postgresql import safe_frontier
from workers.connectors.postgresql.commit_evidence import foreign_rows_refuse, subscriber_refuse
from workers.connectors.postgresql.connection import (
    READER_NAME,
    Address,
    connection_open,
    snapshot_kept,
    snapshot_open,
    transaction_begin,
)
from workers.connectors.postgresql.content import coordinates_held, read_content
from workers.connectors.postgresql.extent import Extent, end_read, extent_read
from workers.connectors.postgresql.flushing import flush_wait
from workers.connectors.postgresql.ground_facts import first_number, mapped_catalogue_read, sequence_position
from workers.connectors.postgresql.id_unique import source_ids
from workers.connectors.postgresql.image_columns import image_columns
from workers.connectors.postgresql.image_contents import contents_image
from workers.connectors.postgresql.inspection import source_inspect
from workers.connectors.postgresql.late_rows import late_unseen, pinned_make, xid_of
from workers.connectors.postgresql.looking import look
from workers.connectors.postgresql.mapping_notes import source_notes
from workers.connectors.postgresql.open_transactions import open_transactions
from workers.connectors.postgresql.opening import Opened, handle_of, identity_of, incarnation_of, table_open
from workers.connectors.postgresql.packed import Packed, packed_choice, packed_digest, packed_text, packed_time
from workers.connectors.postgresql.partitions import detached_find, floor_above
from workers.connectors.postgresql.publications import publication_notes
from workers.connectors.postgresql.relay_cursor import cursor_read
from workers.connectors.postgresql.retention import DELIVERED_GONE
from workers.connectors.postgresql.rewritten import rewritten_refuse
from workers.connectors.postgresql.safe_frontier import replay_position, snapshot_read
from workers.connectors.postgresql.share_lock import lock_ground, share_lock
from workers.connectors.postgresql.table_reader import TableReader, lane_check, schema_of
from workers.connectors.protocols.image import ImageSource, StateMapping
from workers.connectors.protocols.source import Source
from workers.connectors.readings import (
    ConnectionReport,
    CoordinateRange,
    CursorReading,
    LaneReading,
    LateRows,
    Reading,
    SafeFrontier,
    Width,
)
from workers.connectors.rows import history_columns, ranges_of
from workers.evidence.schemas import HISTORY, IMAGE_EVENT

NOT_ASKED = "pin() says what is safe; a reading that is held does not ask again, for what was safe stays safe."


class PostgresqlOutbox:
    """Source `postgresql_outbox`. Made from parsed options; opens connections only when asked."""

    kind = "postgresql_outbox"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = dict(options)
        self.address = Address.of(options)
        self.spelling: Spelling = spelling_of(options)
        self._pinned: SafeFrontier | None = None

    def test(self) -> ConnectionReport:
        """What is there and whether it can serve. A thing that is wrong is a problem in the report, not an error."""
        return source_inspect(self.address, self.options)

    def cursors(self) -> Mapping[str, CursorReading]:
        found = cursor_read(self.address, self.options)
        return {} if found is None else {SINGLE_LANE: found}

    def look(self, clock: Callable[[], datetime]) -> EndSeen:
        return look(self.address, self.options, clock)

    @contextmanager
    def hold_pin(self) -> Iterator[Reading]:
        """Head, floor and safe frontier from one snapshot, held until the manager ends.

        May wait: for the SHARE lock as long as `lock_tries` allow, under grace for `grace_seconds` at most.

        Raises: NotFound, AccessDenied, Unsuitable, Unreachable.
        """
        with connection_open(self.address, READER_NAME) as connection:
            opened = self._open(connection)
            found = self._catalogue(connection, opened)
            obstacles = self._transaction_ids(found).obstacles
            if opened.server.is_in_recovery or not obstacles:
                safe = None
                transaction_begin(connection, self.address)
            else:
                safe = self._for_numbers(connection, opened, obstacles, found)
            row = connection.execute("SELECT pg_export_snapshot()").fetchone()
            assert row is not None
            reading = self._reading(connection, opened, safe, None, found)
            self._pinned = reading.lanes[SINGLE_LANE].safe
            handle = {**reading.handle, "pinned": pinned_make(connection, opened, row[0], reading.handle)}
            with snapshot_kept(connection):
                yield replace(reading, handle=handle)
            connection.execute("ROLLBACK")

    @contextmanager
    def hold_snapshot(self) -> Iterator[Reading]:
        """One exported snapshot, open until the manager ends.

        Its lane's `safe` is computed where the snapshot itself shows it (transaction ids, a replica); on the other
        grounds it is what this connector pinned before, for what was safe stays safe. Its `catalogue` is today's.
        """
        with snapshot_open(self.address) as connection:
            opened = self._open(connection)
            found = self._catalogue(connection, opened)
            safe = None
            if self._transaction_ids(found).obstacles and not opened.server.is_in_recovery:
                safe = self._pinned or SafeFrontier(None, safe_frontier.GRACE, NOT_ASKED)
            flush_wait(connection, self.address)
            row = connection.execute("SELECT pg_export_snapshot()").fetchone()
            assert row is not None
            reading = self._reading(connection, opened, safe, row[0], found, is_of_snapshot=True)
            rewritten_refuse(connection, opened.table.leaves)
            with snapshot_kept(connection):
                yield reading
            connection.execute("ROLLBACK")

    def split(self, reading: Reading, lane: str, parts: int) -> list[CoordinateRange]:
        lane_check(lane)
        return ranges_of(reading.handle["grid"], lane, parts)

    def read_history(
        self,
        reading: Reading,
        range_: CoordinateRange,
        width: Width,
        with_key: bool = False,
        late: LateRows | None = None,
    ) -> Iterator[pa.RecordBatch]:
        reader = TableReader(self.address, self.options, reading.handle)
        mapped, columns = reader.mapped, []
        names = history_columns(width, with_key)
        if "key" in names and mapped.column("key") is not None:
            columns.append(packed_text("key", mapped.key))
        if "payload_digest" in names:
            columns.append(packed_digest("payload_digest", mapped.payload_digest))
        if width is Width.FULL:
            columns.append(packed_choice("op", mapped.op_code, OPS))
            columns += self._shown(mapped)
        return reader.read(range_, columns, schema_of(HISTORY, names), late)

    def read_content(self, reading: Reading, coordinates: pa.Table) -> Iterator[pa.RecordBatch]:
        reader = TableReader(self.address, self.options, reading.handle)
        with snapshot_open(self.address, reading.handle["snapshot"]) as connection:
            yield from read_content(connection, reader.mapped, coordinates)

    def read_image(self, reading: Reading, range_: CoordinateRange, mapping: StateMapping) -> Iterator[pa.RecordBatch]:
        reader = TableReader(self.address, self.options, reading.handle)
        return reader.read(range_, image_columns(reader.mapped, mapping), IMAGE_EVENT)

    def image_of_contents(self, reading: Reading, rows: pa.Table, mapping: StateMapping) -> Iterator[pa.RecordBatch]:
        return contents_image(self.address, reading.handle, mapping, rows)

    @property
    def has_filter(self) -> bool:
        return bool(self.options.get("filter"))

    def left_out(self, reading: Reading, coordinates: pa.Table) -> list[Coordinate]:
        """As FilteredSource.left_out."""
        reader = TableReader(self.address, {**self.options, "filter": None}, reading.handle)
        with snapshot_open(self.address, reading.handle["snapshot"]) as connection:
            return coordinates_held(connection, reader.mapped, coordinates)

    def _shown(self, mapped: Any) -> list[Packed]:
        shown = []
        if (event_id := mapped.column("event_id")) is not None:
            shown.append(packed_text("event_id", event_id))
        if (committed_at := mapped.column("committed_at")) is not None:
            shown.append(packed_time("committed_at", committed_at))
        return shown

    def _open(self, connection: psycopg.Connection[Any]) -> Opened:
        opened = table_open(connection, self.options, COLUMN_OPTIONS)
        subscriber_refuse(connection, opened.table)
        return opened

    def _catalogue(self, connection: psycopg.Connection[Any], opened: Opened) -> Catalogue:
        return mapped_catalogue_read(connection, opened)

    def _transaction_ids(self, found: Catalogue) -> Judged:
        if self.spelling is not Spelling.XID8_BIGINT:
            return Judged(("the coordinate carries no transaction id",), ())
        return transaction_ids_judge(found)

    def _for_numbers(
        self, connection: psycopg.Connection[Any], opened: Opened, obstacles: tuple[str, ...], found: Catalogue
    ) -> SafeFrontier:
        """The safe frontier of coordinates that carry no transaction id; begins the reader's transaction."""
        if not self.options["share_lock"]:
            return self._after_grace(connection, opened, (*obstacles, "the share lock is not asked for"))
        ground = lock_ground(connection, self.options, opened.table, opened.server, found)
        if ground.obstacles:
            return self._after_grace(connection, opened, (*obstacles, *ground.obstacles))
        with share_lock(self.address, self.options, opened.mapped.name, opened.table) as lock:
            unlocked = [] if lock.blockers else lock.unlocked()
            transaction_begin(connection, self.address)
            snapshot_read(connection)
            if not lock.blockers:
                unlocked += lock.unlocked()
        if unlocked:
            connection.execute("ROLLBACK")
            took = f"{self.options['share_lock_function'] or 'the lock'} left no SHARE lock on {', '.join(unlocked)}"
            return self._after_grace(connection, opened, (*obstacles, took))
        head = end_read(connection, opened.mapped, is_highest=True)
        drawn = sequence_position(connection, found)
        is_attested = bool(self.options["numbers_are_drawn_in_insert"])
        return safe_frontier.by_share_lock(head, drawn, lock.blockers, ground.doubts, is_attested)

    def _after_grace(
        self, connection: psycopg.Connection[Any], opened: Opened, obstacles: tuple[str, ...]
    ) -> SafeFrontier:
        """Reads the head, waits for the transactions open then, and begins the reader's transaction after that."""
        leaves, grace_seconds = list(opened.table.leaves), self.options["grace_seconds"]
        head = end_read(connection, opened.mapped, is_highest=True)
        first = open_transactions(connection, leaves)
        waited = safe_frontier.transactions_wait(connection, leaves, first, grace_seconds)
        transaction_begin(connection, self.address)
        return safe_frontier.by_grace(head, waited, grace_seconds, obstacles)

    def _reading(
        self,
        connection: psycopg.Connection[Any],
        opened: Opened,
        safe: SafeFrontier | None,
        snapshot_id: str | None,
        found: Catalogue,
        is_of_snapshot: bool = False,
    ) -> Reading:
        """The lane as the connection's snapshot shows it. `safe` None: the snapshot itself says what is safe.

        `found` was read before the snapshot was taken, unless `is_of_snapshot`; what the catalogue shows now must be the
        same.
        """
        snapshot = snapshot_read(connection)
        extent = extent_read(connection, opened.mapped)
        identity, is_complete = identity_of(opened, snapshot), True
        judged = self._transaction_ids(found)
        if opened.server.is_in_recovery:
            replayed = replay_position(connection)
            safe = safe_frontier.on_replica(snapshot, not judged.obstacles, replayed)
            identity, is_complete = f"{identity}, a replica replayed up to {replayed}", False
        else:
            foreign_rows_refuse(connection, opened.mapped, snapshot.xmax, extent.highest)
            if safe is None:
                transactions = open_transactions(connection, list(opened.table.leaves))
                is_attested = bool(self.options["numbers_are_drawn_in_insert"])
                safe = safe_frontier.by_transaction_ids(snapshot, transactions, judged.doubts, is_attested)
        digest = found.digest if is_of_snapshot else self._catalogue(connection, opened).digest
        if digest != found.digest:
            safe = safe.unproven("who may write the table changed while it was read")
        safe = replace(safe, catalogue=digest, incarnation=incarnation_of(opened))
        safe = safe_frontier.under_filter(safe, filter_says(self.options), found.moves)
        weaknesses = [*([safe.weakness] if safe.weakness else []), *source_notes(opened)]
        if unseen := late_unseen(connection, opened):
            weaknesses.append(unseen)
        weaknesses += publication_notes(connection, self.options, opened.table)
        floor, notes, is_seen = self._floor(connection, opened, extent)
        first = None
        if self.spelling is Spelling.BIGINT and not self.has_filter:
            first = first_number(connection, found)
        lane = LaneReading(
            SINGLE_LANE, extent.highest, extent.lowest, floor, safe, extent.estimated_rows, numbers_step(found), first
        )
        handle = {
            **handle_of(connection, opened, extent, snapshot_id),
            "xmin": xid_of(snapshot.xmin),
            "seen": [snapshot.xmin, snapshot.xmax, *snapshot.running],
        }
        ids = source_ids(connection, self.options, opened)
        return Reading(
            identity,
            handle,
            {SINGLE_LANE: lane},
            is_complete and is_seen,
            (*weaknesses, *notes),
            ids=ids,
            rows_go=self.options["retention"] == Retention.DELETES_DELIVERED,
        )

    def _floor(
        self, connection: psycopg.Connection[Any], opened: Opened, extent: Extent
    ) -> tuple[Coordinate | None, list[str], bool]:
        """The floor, what to say about it, and whether everything that was dropped could be seen."""
        detached = detached_find(connection, opened.mapped, opened.table)
        floors = [floor_above(detached), extent.lowest if self.options["retention"] == "purges" else None]
        floor = max((floor for floor in floors if floor is not None), default=None)
        notes, is_seen = [one.says(opened.mapped) for one in detached], all(one.is_readable for one in detached)
        if self.options["retention"] == Retention.DELETES_DELIVERED:
            notes = [DELIVERED_GONE, *notes]
        return floor, notes, is_seen


if TYPE_CHECKING:
    _is_checked: tuple[type[Source], type[ImageSource]] = (PostgresqlOutbox, PostgresqlOutbox)
