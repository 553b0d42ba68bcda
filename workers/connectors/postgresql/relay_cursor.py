"""The relay's own cursor, read where the relay keeps it: shown beside what the sink says, never believed.

One law: what it says enters no verdict, no plan and no digest, and that it cannot be read stops nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_parse
from recovery_api.domain.errors import BadCoordinate, FencepostError
from recovery_api.domain.kinds.postgresql_mapping import spelling_of
from workers.connectors.postgresql.connection import Address, snapshot_open
from workers.connectors.postgresql.identifiers import qualified
from workers.connectors.readings import CursorReading

CHARACTERS = 100
"""More than any coordinate has, however it is written."""


def cursor_read(address: Address, options: Mapping[str, Any]) -> CursorReading | None:
    """What the relay recorded, in one short snapshot of its own. None: no cursor is registered."""
    if not options.get("cursor_table"):
        return None
    try:
        with snapshot_open(address) as connection:
            return cursor_in(connection, options)
    except FencepostError as error:
        return CursorReading(None, f"The relay's cursor could not be read: {error}")


def cursor_in(connection: psycopg.Connection[Any], options: Mapping[str, Any]) -> CursorReading:
    """The same, on a connection that is open. Raises: what the driver's errors are mapped to."""
    columns, where = options["cursor_columns"], options.get("cursor_where") or {}
    cut = sql.SQL("left({}::text, {})")
    query = sql.SQL("SELECT {} FROM {} WHERE {} LIMIT 2").format(
        sql.SQL(", ").join(cut.format(sql.Identifier(name), sql.Literal(CHARACTERS)) for name in columns),
        qualified(options.get("cursor_schema") or options["schema"], options["cursor_table"]),
        sql.SQL(" AND ").join(
            [sql.SQL("{}::text = {}").format(sql.Identifier(name), sql.Literal(value)) for name, value in where.items()]
        )
        if where
        else sql.SQL("true"),
    )
    rows = connection.execute(query).fetchall()
    if len(rows) > 1:
        return CursorReading(None, "Several rows could be the relay's cursor. Say which one in cursor_where.")
    if not rows or any(text is None for text in rows[0]):
        return CursorReading(None)
    try:
        return CursorReading(_coordinate(list(rows[0]), options))
    except BadCoordinate as error:  # its text quotes what the column holds
        expected = error.data["expected"]
        return CursorReading(None, f"The relay's cursor is no coordinate of this source; expected {expected}.")


def _coordinate(texts: list[str], options: Mapping[str, Any]) -> Coordinate:
    if options["cursor_spelling"] == "held":
        held = [coordinate_parse(text, Spelling.BIGINT, "cursor").position for text in texts]
        return Coordinate(*held)
    return coordinate_parse(":".join(texts), spelling_of(options), "cursor")
