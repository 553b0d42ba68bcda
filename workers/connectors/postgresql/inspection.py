"""The connection test of a mapped source table: everything that is wrong as a sentence, and nothing changed.

One law: an empty table is a fact, a missing one an error; what cannot serve is a problem, what is only believed a
weakness.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.coordinates import Spelling, coordinate_format
from recovery_api.domain.errors import TerminalError, Unreachable
from recovery_api.domain.grounds import Judged, doubts_say, transaction_ids_judge
from recovery_api.domain.kinds.base import Retention
from recovery_api.domain.kinds.postgresql_mapping import spelling_of
from recovery_api.domain.kinds.postgresql_outbox import COLUMN_OPTIONS
from workers.connectors.postgresql import safe_frontier
from workers.connectors.postgresql.catalogue import RELKINDS, table_read
from workers.connectors.postgresql.commit_evidence import foreign_rows_refuse, subscriber_refuse
from workers.connectors.postgresql.connection import Address, snapshot_open
from workers.connectors.postgresql.coordinate_sql import ROW
from workers.connectors.postgresql.extent import Extent, extent_read
from workers.connectors.postgresql.flushing import durability_weaknesses
from workers.connectors.postgresql.ground_facts import mapped_catalogue_read, sequence_position
from workers.connectors.postgresql.id_unique import ids_problems
from workers.connectors.postgresql.indexes import is_coordinate_unique
from workers.connectors.postgresql.late_rows import late_unseen
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.postgresql.mapping_notes import source_notes
from workers.connectors.postgresql.mapping_problems import joined_weaknesses, path_problems
from workers.connectors.postgresql.opening import Opened, identity_of, table_open
from workers.connectors.postgresql.partitions import detached_find
from workers.connectors.postgresql.poolers import pooler_weaknesses
from workers.connectors.postgresql.publications import publication_notes
from workers.connectors.postgresql.relay_cursor import cursor_read
from workers.connectors.postgresql.retention import DELIVERED_GONE, deletions_seen, dropped_unseen
from workers.connectors.postgresql.safe_frontier import replay_position, snapshot_read
from workers.connectors.postgresql.sample import newest_read
from workers.connectors.postgresql.share_lock import lock_ground
from workers.connectors.postgresql.upkeep import upkeep_read
from workers.connectors.readings import ConnectionReport

ROWS_LOOKED_AT = 1000
ROWS_COUNTED = 10_000
COMMIT_EVIDENCE = ("committed_at", "commit_xid")


def source_inspect(address: Address, options: Mapping[str, Any]) -> ConnectionReport:
    """What the source's `test` answers. Reads only; whatever stops it is the last problem, as data in `facts["error"]`."""
    facts: dict[str, Any] = {}
    problems: list[str] = []
    weaknesses: list[str] = []
    sample: dict[str, Any] | None = None
    try:
        with snapshot_open(address) as connection:
            facts["columns"] = column_names(connection, options)
            opened = table_open(connection, options, COLUMN_OPTIONS)
            facts |= table_facts(opened)
            weaknesses += pooler_weaknesses(connection) + durability_weaknesses(connection)
            subscriber_refuse(connection, opened.table)
            snapshot = snapshot_read(connection)
            facts["identity"] = identity_of(opened, snapshot)
            facts["ground"], reasons = _ground(connection, options, opened)
            weaknesses += reasons
            problems += ids_problems(connection, options, opened)
            if unseen := late_unseen(connection, opened):
                weaknesses.append(unseen)
            if opened.server.is_in_recovery:
                facts["replayed"] = replay_position(connection)
            extent = extent_read(connection, opened.mapped)
            facts |= extent_facts(connection, extent, opened.mapped)
            if not opened.server.is_in_recovery:
                foreign_rows_refuse(connection, opened.mapped, snapshot.xmax, extent.highest)
            weaknesses += table_weaknesses(connection, opened, extent)
            upkeep = upkeep_read(connection, opened)
            facts |= upkeep.facts()
            weaknesses += upkeep.weaknesses()
            weaknesses += source_notes(opened) + joined_weaknesses(connection, opened.mapped)
            weaknesses += [one.says(opened.mapped) for one in detached_find(connection, opened.mapped, opened.table)]
            weaknesses += publication_notes(connection, options, opened.table)
            if options["retention"] == "keeps":
                weaknesses += dropped_unseen(connection, opened, extent) + deletions_seen(connection, opened)
            elif options["retention"] == Retention.DELETES_DELIVERED:
                weaknesses.append(DELIVERED_GONE)
            weaknesses += clock_weaknesses(connection, opened.mapped)
            problems += op_problems(connection, opened.mapped) + path_problems(connection, opened.mapped)
            sample = newest_read(connection, opened.mapped, COMMIT_EVIDENCE)
    except (TerminalError, Unreachable) as error:
        problems.append(str(error))
        facts["error"] = error.as_row()
    if not problems and (cursor := cursor_read(address, options)) is not None:
        if cursor.problem:
            weaknesses.append(f"{cursor.problem} It is shown only: nothing is judged by it.")
        elif cursor.coordinate is not None:
            facts["relay_cursor"] = coordinate_format(cursor.coordinate, spelling_of(options))
        else:
            facts["relay_cursor"] = "none recorded yet"
    return ConnectionReport(not problems, facts, tuple(problems), tuple(weaknesses), sample)


def column_names(connection: psycopg.Connection[Any], options: Mapping[str, Any]) -> list[str]:
    """The table's columns in its order, whichever are mapped. Raises: NotFound."""
    return list(table_read(connection, options["schema"], options["table"]).columns)


def table_facts(opened: Opened) -> dict[str, Any]:
    """Server and table, as data."""
    server, table = opened.server, opened.table
    return {
        "server_version": f"{server.version // 10000}.{server.version % 10000}",
        "database": server.database,
        "role": server.role,
        "encoding": server.encoding,
        "system_identifier": server.system_identifier,
        "timeline": server.timeline,
        "is_replica": server.is_in_recovery,
        "table": f"{table.schema}.{table.name}",
        "kind_of_table": RELKINDS[table.relkind],
        "partitions": sorted(table.leaves.values()) if table.relkind == "p" else [],
        "has_coordinate_index": opened.has_index,
    }


def extent_facts(connection: psycopg.Connection[Any], extent: Extent, mapped: MappedTable) -> dict[str, Any]:
    """Whether the table is empty, its ends in their own spelling, and how many rows: counted where they are few.

    Of a small table that was never analysed the planner's estimate is ten times too high.
    """
    lowest, highest = (
        None if end is None else mapped.coordinate.format(end) for end in (extent.lowest, extent.highest)
    )
    return {
        "is_empty": extent.lowest is None,
        "lowest": lowest,
        "head": highest,
        **_rows_facts(connection, extent, mapped),
    }


def _rows_facts(connection: psycopg.Connection[Any], extent: Extent, mapped: MappedTable) -> dict[str, int]:
    if extent.estimated_rows <= ROWS_COUNTED:
        count = sql.SQL("SELECT count(*) FROM (SELECT FROM {} LIMIT {}) AS counted")
        row = connection.execute(count.format(mapped.rows, sql.Literal(ROWS_COUNTED + 1))).fetchone()
        if row is not None and row[0] <= ROWS_COUNTED:
            return {"rows": int(row[0])}
    return {"estimated_rows": extent.estimated_rows}


def table_weaknesses(connection: psycopg.Connection[Any], opened: Opened, extent: Extent) -> list[str]:
    """What makes reading slow or belief weaker, for any mapped table."""
    names = ", ".join(opened.mapped.options["coordinate"])
    said = []
    if not opened.has_index:
        said.append(f"No B-tree index begins with ({names}): every reading scans the whole table.")
    if not is_coordinate_unique(connection, opened.mapped, opened.table):
        said.append(f"No unique index on ({names}): that coordinates strictly ascend is checked in every audit.")
    if opened.table.persistence == "u":
        said.append("The table is UNLOGGED: a crash of the server empties it. ALTER TABLE … SET LOGGED.")
    if opened.table.detaching:
        said.append(f"Partitions are being detached: {', '.join(opened.table.detaching)}.")
    if opened.server.encoding != "UTF8":
        said.append(
            f"The database's encoding is {opened.server.encoding}: contents are converted to UTF-8 as they are read."
        )
    if opened.mapped.spelling is Spelling.BIGINT and extent.lowest is not None and extent.lowest.position < 0:
        said.append(
            f"({names}) has negative numbers: genuine ones, or unsigned ones above 2^63-1 printed as signed?"
            " Set coordinate_spelling to unsigned if they are unsigned."
        )
    return said


def op_problems(connection: psycopg.Connection[Any], mapped: MappedTable) -> list[str]:
    """A sentence for values of the op column, among the newest rows, that are mapped to no op."""
    column = mapped.column("op")
    if column is None:
        return []
    rows = connection.execute(
        sql.SQL(
            "SELECT DISTINCT newest.said FROM (SELECT {}::text AS said, {} AS op FROM {} ORDER BY {} LIMIT {}) AS newest"
            " WHERE newest.op IS NULL LIMIT 5"
        ).format(
            column, mapped.op, mapped.rows, mapped.coordinate.order(is_descending=True), sql.Literal(ROWS_LOOKED_AT)
        )
    ).fetchall()
    if not rows:
        return []
    known = ", ".join(mapped.op_values)
    found = _op_spellings([said for (said,) in rows])
    return [f"Column {mapped.options['op']!r} holds {found}, and only {known} are mapped. Map them in op_values."]


OP_SPELLINGS = frozenset(
    [
        "c",
        "u",
        "d",
        "r",
        "i",
        "t",
        "create",
        "created",
        "update",
        "updated",
        "delete",
        "deleted",
        "insert",
        "upsert",
        "remove",
        "read",
    ]
)
"""How others write an operation: said as they are. Any other value may be anything, were the wrong column named."""


def _op_spellings(found: list[str | None]) -> str:
    """The unmapped values, without one that is not a known spelling of an operation.

    >>> _op_spellings(["C", None, "pbkdf2_sha256$..."])
    "'C', null, a text of 17 characters"
    """
    said = []
    for value in found:
        is_known = value is not None and value.lower() in OP_SPELLINGS
        said.append("null" if value is None else repr(value) if is_known else f"a text of {len(value)} characters")
    return ", ".join(dict.fromkeys(said))


def clock_weaknesses(connection: psycopg.Connection[Any], mapped: MappedTable) -> list[str]:
    """A sentence where the display clock runs backwards along the coordinate: whoever follows it loses rows."""
    column = mapped.column("committed_at")
    if column is None:
        return []
    row = connection.execute(
        sql.SQL(
            "SELECT max(newest.said - newest.after)::text FROM (SELECT {at}::timestamptz AS said,"
            " lead({at}::timestamptz) OVER (ORDER BY {order}) AS after FROM (SELECT * FROM {rows} ORDER BY {down} LIMIT {some})"
            " AS {row}) AS newest WHERE newest.said > newest.after"
        ).format(
            at=column,
            order=mapped.coordinate.order(),
            rows=mapped.rows,
            down=mapped.coordinate.order(is_descending=True),
            some=sql.Literal(ROWS_LOOKED_AT),
            row=sql.Identifier(ROW),
        )
    ).fetchone()
    if row is None or row[0] is None:
        return []
    return [
        f"Column {mapped.options['committed_at']!r} steps back by up to {row[0]} along the coordinate: clocks differ or"
        " were set. It is shown only; a relay that follows it as a cursor passes rows over."
    ]


def _ground(connection: psycopg.Connection[Any], options: Mapping[str, Any], opened: Opened) -> tuple[str, list[str]]:
    """The ground a safe frontier will have, and what is weak about it."""
    found = mapped_catalogue_read(connection, opened)
    is_attested = bool(options["numbers_are_drawn_in_insert"])
    judged = Judged(("the coordinate carries no transaction id",), ())
    if opened.mapped.spelling is Spelling.XID8_BIGINT:
        judged = transaction_ids_judge(found)
    obstacles = judged.obstacles
    if opened.server.is_in_recovery:
        return safe_frontier.REPLICA, [
            "This is a replica: every verdict is bounded by what it has replayed, and unknown. Register the primary."
        ]
    if not obstacles:
        return safe_frontier.TRANSACTION_IDS, _believed(judged.doubts, is_attested)
    if options["share_lock"]:
        ground = lock_ground(connection, options, opened.table, opened.server, found)
        if not ground.obstacles:
            unseen = () if sequence_position(connection, found).is_seen else (safe_frontier.SEQUENCE_UNSEEN,)
            return safe_frontier.SHARE_LOCK, _believed((*ground.doubts, *unseen), is_attested)
        obstacles = (*obstacles, *ground.obstacles)
    else:
        obstacles = (*obstacles, "the share lock is not asked for")
    return safe_frontier.GRACE, [
        f"What is safe is assumed after a grace of {options['grace_seconds']} s, because {'; '.join(obstacles)}."
    ]


def _believed(doubts: tuple[str, ...], is_attested: bool) -> list[str]:
    who = "On the owner's word only" if is_attested else "The ground of a safe frontier is not proven"
    return [f"{who}: {doubts_say(doubts)}."] if doubts else []
