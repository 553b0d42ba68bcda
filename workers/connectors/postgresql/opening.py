"""A table opened for reading: what source and record do the same way before they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import psycopg

from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.kinds.postgresql_mapping import filter_says, joined_place
from recovery_api.domain.mapping import JOINED
from workers.connectors.postgresql.catalogue import RELKINDS, Server, Table, privileges_check, server_read, table_read
from workers.connectors.postgresql.extent import Extent, grid_even, grid_read
from workers.connectors.postgresql.indexes import has_coordinate_index
from workers.connectors.postgresql.joining import filter_refuse, joined_open
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.postgresql.safe_frontier import Snapshot
from workers.connectors.postgresql.views import policies_behind_refuse, view_open

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


def table_open(
    connection: psycopg.Connection[Any], options: Mapping[str, Any], column_options: tuple[str, ...]
) -> Opened:
    """The mapped table or view, checked. `column_options`: those whose value is mapped.

    Raises: BadInput, NotFound, AccessDenied, Unsuitable.
    """
    server = server_read(connection)
    if server.version < OLDEST_VERSION:
        problem = (
            f"is PostgreSQL {server.version // 10000}, and {OLDEST_VERSION // 10000} is the oldest that can be read"
        )
        raise Unsuitable(f"database {server.database!r}", problem, "Upgrade the server.")
    table = table_read(connection, options["schema"], options["table"])
    if table.is_view:
        table = view_open(connection, table)
    elif table.relkind not in ("r", "p"):
        kind = RELKINDS.get(table.relkind, table.relkind)
        remedy = NOT_READ.get(table.relkind, "Name the table that holds the rows.")
        raise Unsuitable(f"{table.schema}.{table.name}", f"is a {kind}, not a table", remedy)
    place = joined_place(options)
    joined = table_read(connection, *place) if place else None
    mapped = MappedTable.of(options, column_options, table, server, joined)
    own = [name for name, facts in mapped.types.items() if not facts.get("is_joined")]
    privileges_check(connection, table, own)
    policies_refuse(table)
    policies_behind_refuse(connection, table)
    if joined is not None:
        theirs = [name.removeprefix(JOINED) for name, facts in mapped.types.items() if facts.get("is_joined")]
        joined_open(connection, options["joined_on"], table, joined)
        privileges_check(connection, joined, list(dict.fromkeys([*theirs, *options["joined_on"].values()])))
        policies_refuse(joined)
    filter_refuse(connection, mapped)
    return Opened(server, table, mapped, has_coordinate_index(connection, mapped, table))


NOT_READ = {
    "m": "It shows its rows as they were when it was last refreshed: name the table or view that it is made from.",
    "f": "Its rows are committed on another server: register that server's table.",
}


def policies_refuse(table: Table) -> None:
    """Raises: Unsuitable where row-level security hides rows."""
    if table.is_row_security_active:
        remedy = "Grant BYPASSRLS, or use a role that the policies do not concern."
        raise Unsuitable(f"{table.schema}.{table.name}", "row-level security hides rows from this role", remedy)


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
    """The server, its timeline, the database and the rows that count, by what a restore, a new table, another filter or
    another view changes. "" where the role may not see the server's."""
    server, table = opened.server, opened.table
    if server.system_identifier is None or server.timeline is None:
        return ""
    bound = f"{filter_says(opened.mapped.options) or ''}\n{table.definition}"
    rows = f"/{sha256(bound.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}" if bound.strip() else ""
    return f"{server.system_identifier}/{server.timeline}/{server.database}/{table.oid}{rows}"


def handle_of(
    connection: psycopg.Connection[Any], opened: Opened, extent: Extent, snapshot_id: str | None
) -> dict[str, Any]:
    """What tasks need to read in the same snapshot: JSON-able, without credentials."""
    grid: list[list[int]] = []
    if snapshot_id is not None and extent.lowest is not None:
        leaves = list(opened.table.leaves)
        row = connection.execute(PAGES.encode(), [leaves]).fetchone()
        pages = int(row[0]) if row else 0
        grid = grid_even(extent) if opened.table.is_view else grid_read(connection, opened.mapped, extent, pages)
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
