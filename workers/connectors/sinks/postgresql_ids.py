"""An existing PostgreSQL table that knows only message ids, as an acceptance record: an inbox, for instance.

It is read by shares of its pages, since ids have no order that both ends know. The laws: only one consumer's rows
count. The owner says how long rows are kept, and this server's clock decides which may be gone. A row is the mark of an
effect, never the effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from recovery_api.domain.capabilities import Archetype, Capability
from recovery_api.domain.conditions import UNFENCED as UNFENCED_PATH
from recovery_api.domain.conditions import UndisciplinedPath
from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.errors import AccessDenied, Refused, TerminalError, Unreachable, Unsuitable
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.headroom.seen import EndSeen
from recovery_api.domain.identity import MARK, IdType, Lifetime
from recovery_api.domain.restores import SinkMemory
from workers.connectors.postgresql.catalogue import RELKINDS, Server, Table, privileges_check, server_read, table_read
from workers.connectors.postgresql.commit_evidence import subscriber_refuse
from workers.connectors.postgresql.connection import Address, snapshot_kept, snapshot_open
from workers.connectors.postgresql.coordinate_sql import ROW
from workers.connectors.postgresql.flushing import durability_weaknesses, flush_wait
from workers.connectors.postgresql.id_sql import IdSql
from workers.connectors.postgresql.identifiers import qualified
from workers.connectors.postgresql.indexes import exact_uniques
from workers.connectors.postgresql.inspection import column_names
from workers.connectors.postgresql.looking import look
from workers.connectors.postgresql.mapping_notes import deletion_notes
from workers.connectors.postgresql.packed import Block, packed_choice, packed_text, read_packed
from workers.connectors.postgresql.poolers import pooler_weaknesses
from workers.connectors.postgresql.safe_frontier import SafeFrontier, snapshot_read
from workers.connectors.protocols.record import IdRecord
from workers.connectors.readings import (
    ConnectionReport,
    CoordinateRange,
    LaneReading,
    Reading,
    RecordIds,
    Width,
)
from workers.evidence.schemas import ENTRY_IDS

UNFENCED = "The table has no fence: nothing stops a message that is still in flight."
CONSUMERS_NAMED = 20
PAGES_A_BLOCK = 512
"""Pages of each leaf that one message of a packed read carries: some tens of thousands of ids."""

NOT_JUDGED = SafeFrontier(None, "acceptance record", "An acceptance record has no safe frontier.")

SIZES = """
SELECT coalesce(max(pg_relation_size(l.oid::regclass) / current_setting('block_size')::int), 0)::bigint,
       coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint
FROM unnest(%s::bigint[]) AS l(oid) JOIN pg_class c ON c.oid::bigint = l.oid
"""

EQUATING = """
SELECT 'its collation'
FROM pg_attribute a JOIN pg_collation n ON n.oid = a.attcollation AND NOT n.collisdeterministic
WHERE a.attrelid = %(table)s::bigint::oid AND a.attname::text = %(column)s::text
UNION ALL
SELECT 'the unique index ' || quote_literal(c.relname)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = %(table)s::bigint::oid AND i.indisunique AND i.indexprs IS NOT NULL AND EXISTS (
    SELECT FROM pg_depend d JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE d.objid = i.indexrelid AND d.refobjid = i.indrelid AND a.attname::text = %(column)s::text)
"""
"""What makes two ids of one column equal to the sink that are not equal: a collation, or a unique index of an expression."""


@dataclass(frozen=True, slots=True)
class OpenedIds:
    """The server, the table and what its rows mean, as one connection saw them. `consumer`: whose rows count."""

    server: Server
    table: Table
    ids: IdSql
    consumer: str | None


class PostgresqlIds:
    """Sink `postgresql_table` with `identity=event_id`. Made from parsed options; opens connections only when asked."""

    kind = "postgresql_table"
    needs_order = False
    spelling = Spelling.BIGINT

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = dict(options)
        self.address = Address.of(options)
        self.lifetime = Lifetime.of(options)

    def look(self, clock: Callable[[], datetime]) -> EndSeen:
        return look(self.address, {}, clock)

    def capability(self) -> Capability:
        """Queryable, as far as the record can be read now; never fired into. Raises: what opening the table raises."""
        with snapshot_open(self.address) as connection:
            opened = self._open(connection)
            may_lose = opened.table.persistence == "u" or bool(durability_weaknesses(connection))
            said = self._weaknesses(connection, opened)
        return Capability(
            archetype=Archetype.QUERYABLE,
            can_read_record=True,
            is_record_complete=not opened.server.is_in_recovery,
            has_fence=False,
            has_identity_key=False,
            lands_in_one_transaction=False,
            can_lose_acceptances=may_lose,
            grounds=(UNFENCED, self.lifetime.says(), *self._incomplete(opened), *said),
            mark_because=MARK,
        )

    def undisciplined_paths(self) -> list[UndisciplinedPath]:
        return [(UNFENCED_PATH, None, "whoever may write the table is a path into the record that no protocol checks")]

    def said(self) -> SinkMemory:
        """Server, timeline, database and table: the table keeps no counter, and its rows may well be deleted."""
        with snapshot_open(self.address) as connection:
            opened = self._open(connection)
        server = opened.server
        if server.system_identifier is None or server.timeline is None:
            return SinkMemory("")
        return SinkMemory(f"{server.system_identifier}/{server.timeline}/{server.database}/{opened.table.oid}")

    def test(self) -> ConnectionReport:
        """What is there and whether it can be read as a record of ids. Changes nothing."""
        facts: dict[str, Any] = {}
        problems: list[str] = []
        weaknesses = [MARK, UNFENCED, self.lifetime.says()]
        sample: dict[str, Any] | None = None
        try:
            with snapshot_open(self.address) as connection:
                facts["columns"] = column_names(connection, self.options)
                opened = self._open(connection)
                facts |= _facts(connection, opened)
                weaknesses += [*self._incomplete(opened), *self._weaknesses(connection, opened)]
                weaknesses += pooler_weaknesses(connection) + durability_weaknesses(connection)
                sample = self._sample(connection, opened)
        except (TerminalError, Unreachable) as error:
            problems.append(str(error))
            facts["error"] = error.as_row()
        return ConnectionReport(not problems, facts, tuple(problems), tuple(weaknesses), sample)

    @contextmanager
    def hold_snapshot(self, generation: int | None = None) -> Iterator[Reading]:
        """One exported snapshot of the record. Raises: Refused where a fence is asked for, which a table has not."""
        if generation is not None:
            raise Refused(f"Reading under generation {generation}", "a record of ids has no fence", MARK)
        with snapshot_open(self.address) as connection:
            opened = self._open(connection)
            snapshot = snapshot_read(connection)
            flush_wait(connection, self.address)
            pages, rows = _size(connection, opened.table)
            row = connection.execute("SELECT pg_export_snapshot(), clock_timestamp()").fetchone()
            assert row is not None
            incomplete = self._incomplete(opened)
            reading = Reading(
                identity=_identity(opened.server, str(snapshot)),
                handle={
                    "snapshot": row[0],
                    "types": dict(opened.ids.types),
                    "pages": pages,
                    "consumer": opened.consumer,
                    "system_identifier": opened.server.system_identifier,
                    "timeline": opened.server.timeline,
                },
                lanes={SINGLE_LANE: LaneReading(SINGLE_LANE, None, None, None, NOT_JUDGED, rows)},
                is_complete=not incomplete,
                weaknesses=(*incomplete, UNFENCED, *self._weaknesses(connection, opened)),
                ids=RecordIds(opened.ids.id_type, self.lifetime, row[1], self._consumer_says(opened)),
            )
            with snapshot_kept(connection):
                yield reading
            connection.execute("ROLLBACK")

    def read_ids(self, reading: Reading, part: int, parts: int) -> Iterator[pa.RecordBatch]:
        """One share of the table's pages. What the table grew by since is not in the snapshot."""
        ids = IdSql(self.options, reading.handle["types"])
        columns = [
            packed_text("event_id", ids.event_id),
            packed_choice("is_accepted", ids.accepted_code, ("received", "accepted")),
        ]
        counted = ids.counted(reading.handle["consumer"])
        blocks = [
            Block(sql.SQL("{} AND {}").format(_pages(low, high), counted))
            for low, high in _blocks(reading.handle["pages"], part, parts)
        ]
        table = sql.SQL("{} AS {}").format(self._name, sql.Identifier(ROW))
        with snapshot_open(self.address, reading.handle["snapshot"]) as connection:
            for arrays in read_packed(connection, columns, table, blocks):
                is_accepted = pc.equal(arrays["is_accepted"], "accepted")
                yield pa.record_batch([arrays["event_id"], is_accepted], schema=ENTRY_IDS)

    def read_accepted(
        self, reading: Reading, range_: CoordinateRange, width: Width, with_head: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """Raises: Refused: a record of ids answers by no coordinate."""
        remedy = "Look the event up by its id."
        raise Refused(f"Reading the record at lane {range_.lane}", "it knows message ids and no coordinate", remedy)

    @property
    def _name(self) -> sql.Identifier:
        return qualified(self.options["schema"], self.options["table"])

    def _open(self, connection: psycopg.Connection[Any]) -> OpenedIds:
        server = server_read(connection)
        table = table_read(connection, self.options["schema"], self.options["table"])
        place = f"{table.schema}.{table.name}"
        if table.relkind not in ("r", "p"):
            problem = f"is a {RELKINDS.get(table.relkind, table.relkind)}, not a table"
            raise Unsuitable(place, problem, "Name the table that holds the rows.")
        ids = IdSql.of(self.options, table)
        privileges_check(connection, table, list(ids.types))
        row = connection.execute("SELECT has_table_privilege(%s::bigint::oid, 'SELECT')", [table.oid]).fetchone()
        if row is None or not row[0]:
            problem = f"role {server.role!r} may read some columns only, and ids are read by the table's pages"
            raise AccessDenied(place, problem, f"GRANT SELECT ON {place} TO {server.role}.")
        if table.is_row_security_active:
            remedy = "Grant BYPASSRLS, or use a role that the policies do not concern."
            raise Unsuitable(place, "row-level security hides rows from this role", remedy)
        subscriber_refuse(connection, table)
        return OpenedIds(server, table, ids, self._consumer(connection, table, ids))

    def _consumer(self, connection: psycopg.Connection[Any], table: Table, ids: IdSql) -> str | None:
        """Whose rows count; None: the table is one consumer's. Raises: Unsuitable where several share it, none named."""
        place = f"{table.schema}.{table.name}"
        if self.options["consumer"] is not None:
            return str(self.options["consumer"])
        if ids.consumer is None:
            self._shared_refuse(connection, table, ids, place)
            return None
        found = self._consumers(connection, ids.consumer)
        if len(found) > 1:
            more = ", …" if len(found) > CONSUMERS_NAMED else ""
            names = ", ".join(repr(one) for one in found[:CONSUMERS_NAMED])
            problem = f"is shared by several consumers: {names}{more}"
            raise Unsuitable(place, problem, "Name one: consumer=…. What one processed says nothing of another.")
        return found[0] if found else None

    def _shared_refuse(self, connection: psycopg.Connection[Any], table: Table, ids: IdSql, place: str) -> None:
        uniques = exact_uniques(connection, table)
        column = ids.id_column
        others = {name for names in uniques if column in names for name in names} - {column}
        if column is None or {column} in uniques or not others:
            return
        names = ", ".join(sorted(others))
        problem = f"has no row a message but a row a message and {names}: several consumers may share it"
        remedy = "Name the column, and the one consumer whose rows count: consumer_column=…, consumer=…."
        raise Unsuitable(place, problem, remedy)

    def _consumers(self, connection: psycopg.Connection[Any], column: sql.Composable) -> list[str]:
        query = sql.SQL("SELECT DISTINCT {} FROM {} AS {} WHERE {} IS NOT NULL ORDER BY 1 LIMIT {}").format(
            column, self._name, sql.Identifier(ROW), column, sql.Literal(CONSUMERS_NAMED + 1)
        )
        return [one for (one,) in connection.execute(query)]

    def _has_rows(self, connection: psycopg.Connection[Any], condition: sql.Composable) -> bool:
        query = sql.SQL("SELECT EXISTS (SELECT FROM {} AS {} WHERE {})")
        row = connection.execute(query.format(self._name, sql.Identifier(ROW), condition)).fetchone()
        return bool(row and row[0])

    def _consumer_says(self, opened: OpenedIds) -> str:
        if opened.consumer is None:
            return ""
        return f"rows whose {self.options['consumer_column']} is {opened.consumer}"

    def _incomplete(self, opened: OpenedIds) -> list[str]:
        if opened.server.is_in_recovery:
            return ["This is a replica: what the primary accepted since is not here. Register the primary."]
        return []

    def _weaknesses(self, connection: psycopg.Connection[Any], opened: OpenedIds) -> list[str]:
        """What the table itself makes weaker, or what makes two ids one there."""
        said = []
        if opened.ids.consumer is not None and opened.consumer is not None:
            if self.options["consumer"] is None:
                said.append(
                    f"No consumer is named: {opened.consumer!r} was the only one there, and its rows were taken."
                )
            elif not self._has_rows(connection, opened.ids.consumed_by(opened.consumer)):
                names = ", ".join(repr(one) for one in self._consumers(connection, opened.ids.consumer))
                said += [f"No row is of consumer {opened.consumer!r}; there are rows of {names}."] if names else []
        if (column := opened.ids.id_column) is not None:
            given = {"table": opened.table.oid, "column": column}
            said += [
                f"Of {column!r}, {cause} takes different ids for one: the sink may discard an event as a repetition of"
                " another. Here ids are compared exactly, so that such an event is lost."
                for (cause,) in connection.execute(EQUATING.encode(), given)
            ]
        if not self.options["accepted_when"] and not self.options["filter"]:
            said.append("Every row counts as an acceptance: no acceptance condition is given.")
        said += deletion_notes(opened.table.columns, opened.ids.types, "accepted_when")
        if opened.table.persistence == "u":
            said.append("The table is UNLOGGED: a crash of the server empties it. ALTER TABLE … SET LOGGED.")
        return said

    def _sample(self, connection: psycopg.Connection[Any], opened: OpenedIds) -> dict[str, Any]:
        """A few rows that count, as they lie: the id, and whether it is an acceptance."""
        query = sql.SQL("SELECT left({}, 200), {} = '\\x02'::bytea FROM {} AS {} WHERE {} LIMIT 5").format(
            opened.ids.event_id,
            opened.ids.accepted_code,
            self._name,
            sql.Identifier(ROW),
            opened.ids.counted(opened.consumer),
        )
        rows = [
            {"coordinate": None, "event_id": text, "is_accepted": "accepted" if is_in else "received"}
            for text, is_in in connection.execute(query)
        ]
        says = f"{len(rows)} rows, in no order." if rows else "The table holds no row of this consumer yet."
        return {"says": says, "columns": ["event_id", "is_accepted"], "rows": rows}


def _facts(connection: psycopg.Connection[Any], opened: OpenedIds) -> dict[str, Any]:
    server, table = opened.server, opened.table
    pages, rows = _size(connection, table)
    return {
        "server_version": f"{server.version // 10000}.{server.version % 10000}",
        "database": server.database,
        "role": server.role,
        "system_identifier": server.system_identifier,
        "timeline": server.timeline,
        "is_replica": server.is_in_recovery,
        "table": f"{table.schema}.{table.name}",
        "kind_of_table": RELKINDS[table.relkind],
        "id_type": opened.ids.id_type.value if isinstance(opened.ids.id_type, IdType) else "",
        "consumer": opened.consumer,
        "estimated_rows": rows,
        "is_empty": pages == 0,
        "identity": _identity(server, str(snapshot_read(connection))),
    }


def _identity(server: Server, snapshot: str) -> str:
    system = server.system_identifier or "not shown to this role"
    timeline = server.timeline if server.timeline is not None else "not shown to this role"
    return (
        f"PostgreSQL {server.version // 10000}.{server.version % 10000}, system {system}, timeline {timeline},"
        f" database {server.database}, snapshot {snapshot}"
    )


def _size(connection: psycopg.Connection[Any], table: Table) -> tuple[int, int]:
    """The pages of the largest leaf, and about how many rows there are in all."""
    row = connection.execute(SIZES.encode(), [list(table.leaves)]).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def _blocks(pages: int, part: int, parts: int) -> list[tuple[int, int | None]]:
    """The page ranges of one share; the last share's last one is open, so that no page is left out."""
    low, high = pages * part // parts, pages * (part + 1) // parts
    starts = list(range(low, high, PAGES_A_BLOCK))
    blocks: list[tuple[int, int | None]] = [(start, min(start + PAGES_A_BLOCK, high)) for start in starts]
    if part == parts - 1:
        blocks.append((high, None))
    return blocks


def _pages(low: int, high: int | None) -> sql.Composable:
    ctid = sql.Identifier(ROW, "ctid")
    from_low = sql.SQL("{} >= {}::tid").format(ctid, sql.Literal(f"({low},0)"))
    if high is None:
        return from_low
    return sql.SQL("{} AND {} < {}::tid").format(from_low, ctid, sql.Literal(f"({high},0)"))


if TYPE_CHECKING:
    _is_checked: type[IdRecord] = PostgresqlIds
