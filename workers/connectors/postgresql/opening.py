"""A table opened for reading: what source and record do the same way before they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from recovery_api.domain.errors import Unsuitable
from workers.connectors.postgresql.catalogue import RELKINDS, Server, Table, privileges_check, server_read, table_read
from workers.connectors.postgresql.extent import Extent, grid_read
from workers.connectors.postgresql.indexes import has_coordinate_index
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.postgresql.safe_frontier import Snapshot

OLDEST_VERSION = 140000
"""Its catalogue says which partitions are being detached, and its snapshots are in 64-bit transaction ids."""

PAGES = """
SELECT coalesce(sum(pg_relation_size(oid::regclass) / current_setting('block_size')::int), 0)::bigint
FROM unnest(%s::bigint[]) AS oid
"""


@dataclass(frozen=True, slots=True)
class Opened:
    """The server, the table and its mapping, as one connection saw them."""

    server: Server
    table: Table
    mapped: MappedTable
    has_index: bool


def columns_of(options: Mapping[str, Any], column_options: tuple[str, ...]) -> list[str]:
    """Every mapped column once."""
    names = [*options["coordinate"], *(options.get("head") or [])]
    names += [options[option] for option in column_options if options.get(option)]
    return list(dict.fromkeys(names))


def table_open(
    connection: psycopg.Connection[Any], options: Mapping[str, Any], column_options: tuple[str, ...]
) -> Opened:
    """The mapped table, checked. Raises: NotFound, AccessDenied, Unsuitable."""
    server = server_read(connection)
    if server.version < OLDEST_VERSION:
        problem = (
            f"is PostgreSQL {server.version // 10000}, and {OLDEST_VERSION // 10000} is the oldest that can be read"
        )
        raise Unsuitable(f"database {server.database!r}", problem, "Upgrade the server.")
    table = table_read(connection, options["schema"], options["table"])
    place = f"{table.schema}.{table.name}"
    if table.relkind not in ("r", "p"):
        kind = RELKINDS.get(table.relkind, table.relkind)
        raise Unsuitable(place, f"is a {kind}, not a table", "Name the table that holds the rows.")
    names = columns_of(options, column_options)
    mapped = MappedTable.of(options, names, table, server)
    privileges_check(connection, table, names)
    if table.is_row_security_active:
        remedy = "Grant BYPASSRLS, or use a role that the policies do not concern."
        raise Unsuitable(place, "row-level security hides rows from this role", remedy)
    return Opened(server, table, mapped, has_coordinate_index(connection, mapped, table))


def identity_of(opened: Opened, snapshot: Snapshot) -> str:
    """The server, timeline, database and snapshot, as a person reads them."""
    server = opened.server
    system = server.system_identifier or "not shown to this role"
    timeline = server.timeline if server.timeline is not None else "not shown to this role"
    return (
        f"PostgreSQL {server.version // 10000}.{server.version % 10000}, system {system}, timeline {timeline},"
        f" database {server.database}, snapshot {snapshot}"
    )


def incarnation_of(opened: Opened) -> str:
    """The server, its timeline, the database and the table, by what a restore or a new table changes. "" where the role
    may not see the server's."""
    server, table = opened.server, opened.table
    if server.system_identifier is None or server.timeline is None:
        return ""
    return f"{server.system_identifier}/{server.timeline}/{server.database}/{table.oid}"


def handle_of(
    connection: psycopg.Connection[Any], opened: Opened, extent: Extent, snapshot_id: str | None
) -> dict[str, Any]:
    """What tasks need to read in the same snapshot: JSON-able, without credentials."""
    grid: list[list[int]] = []
    if snapshot_id is not None and extent.lowest is not None:
        leaves = list(opened.table.leaves)
        row = connection.execute(PAGES.encode(), [leaves]).fetchone()
        grid = grid_read(connection, opened.mapped, extent, int(row[0]) if row else 0)
    return {
        "snapshot": snapshot_id,
        "types": {name: dict(facts) for name, facts in opened.mapped.types.items()},
        "has_soft_errors": opened.mapped.has_soft_errors,
        "has_index": opened.has_index,
        "grid": grid,
        "rows": extent.estimated_rows,
        "system_identifier": opened.server.system_identifier,
        "timeline": opened.server.timeline,
    }
