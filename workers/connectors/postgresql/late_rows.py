"""Rows that came in at or below a frontier after it was pinned: its ground was none.

A row that the pinning snapshot does not hold was written by a transaction that had not ended then, so its `xmin` does
not lie below that snapshot's xmin. The reading gives the coordinates of such rows beside the others, in the same
message. Most of them are in the pinning snapshot, too: an UPDATE, a move between partitions and a rewriting ALTER give
a row a new `xmin`, and an old transaction somewhere holds the snapshot's xmin down. So each is looked up there.

`pg_visible_in_snapshot` would not do: it knows no subtransactions, and calls a savepoint's row visible that the snapshot
does not show. Freezing keeps the raw `xmin`. It has 32 bits: a row frozen two billion transactions ago may look new,
and is then looked up in vain; one written since the snapshot cannot look old, for the snapshot is held.

Two snapshots with the same bounds and the same open transactions show the same rows (a subtransaction is in neither
while its parent is open). Where the reading's is like the pinning one, nothing can be late in it and no row is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from recovery_api.domain.coordinates import INT64_MAX, Coordinate
from recovery_api.domain.frontiers import SINGLE_LANE
from workers.connectors.postgresql.connection import Address, snapshot_open
from workers.connectors.postgresql.coordinate_sql import column_of_row
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.postgresql.opening import Opened
from workers.connectors.postgresql.packed import Block, Packed, packed_integer, packed_some, read_packed
from workers.connectors.readings import CoordinateRange, LateRows

KEYS = ["position", "ordinal"]
YOUNG_POSITION, YOUNG_ORDINAL = "young position", "young ordinal"

SHOWN = 20
"""How many late rows are named."""

UNSEEN = (
    "Late rows cannot be seen here: this role may not read xmin, which the right to single columns does not include"
    " (GRANT SELECT on the whole table)."
)


NO_XMIN = "Late rows cannot be seen here: a part of the table keeps no xmin (a foreign table, or another access method than heap)."
NO_XMIN_IN_VIEW = (
    "Late rows cannot be seen here: a view keeps no xmin. They are found by the next audit, which counts again."
)
KEEPS_XMIN = """
SELECT has_table_privilege(%s::bigint::oid, 'SELECT'), NOT EXISTS (
    SELECT FROM pg_class c LEFT JOIN pg_am m ON m.oid = c.relam
    WHERE c.oid::bigint = ANY(%s::bigint[]) AND (c.relkind = 'f' OR m.amname <> 'heap'))
"""


def late_unseen(connection: psycopg.Connection[Any], opened: Opened) -> str | None:
    """Why late rows cannot be seen in the table, or None: the role may read its xmin."""
    row = connection.execute(KEEPS_XMIN.encode(), [opened.table.oid, list(opened.table.leaves)]).fetchone()
    assert row is not None
    may_read, is_kept = row
    if opened.table.is_view:
        return NO_XMIN_IN_VIEW
    if not is_kept:
        return NO_XMIN
    return None if may_read else UNSEEN


def pinned_make(
    connection: psycopg.Connection[Any], opened: Opened, snapshot_id: str, handle: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The pinning snapshot as a reading's handle carries it; None where late rows cannot be seen.

    `handle`: of the reading that was made in it.
    """
    if opened.server.is_in_recovery or late_unseen(connection, opened):
        return None
    return {"snapshot": snapshot_id, "xmin": handle["xmin"], "seen": handle["seen"]}


def xid_of(number: int) -> str:
    """A transaction id as rows carry it: the lower 32 of its 64 bits."""
    return str(number % 2**32)


def late_look(
    address: Address, mapped: MappedTable, handle: Mapping[str, Any], late: LateRows | None
) -> LateLook | None:
    """What looks for late rows while a range is read; None where nobody asked, it cannot be seen, or there are none."""
    pinned = handle.get("pinned")
    if late is None or pinned is None or pinned.get("seen") == handle["seen"]:
        return None
    return LateLook(address, mapped, pinned["snapshot"], pinned["xmin"], late)


@dataclass(frozen=True)
class LateLook:
    """Looks for late rows in the blocks of one range. `snapshot` None: the pinning snapshot is gone, and rows written
    since are only counted."""

    address: Address
    mapped: MappedTable
    snapshot: str | None
    xmin: str
    late: LateRows

    @property
    def columns(self) -> list[Packed]:
        """The coordinates of the rows whose xmin does not lie below the snapshot's. A frozen xmin below 3 is old."""
        young = sql.SQL("age({}) <= (SELECT age({}::xid))").format(column_of_row("xmin"), sql.Literal(self.xmin))
        components = self.mapped.coordinate.components
        names = (YOUNG_POSITION, YOUNG_ORDINAL)
        return [packed_some(name, one.send, one.held, young) for name, one in zip(names, components, strict=False)]

    def block(self, arrays: dict[str, pa.Array]) -> None:
        """Adds what is late in this block, whose own columns are taken out of `arrays`."""
        position = np.asarray(arrays.pop(YOUNG_POSITION))
        ordinal = (
            np.asarray(arrays.pop(YOUNG_ORDINAL)) if YOUNG_ORDINAL in arrays else np.zeros(len(position), np.int64)
        )
        f = self.late.frontier
        below = (position < f.position) | ((position == f.position) & (ordinal <= f.ordinal))
        if not below.any():
            return
        young = _coordinates(position[below], ordinal[below])
        if self.snapshot is None:
            self.late.written_since += young.num_rows
            self._name(young)
            return
        ordinals = arrays.get("ordinal", np.zeros(len(arrays["position"]), np.int64))
        now = _counted(_coordinates(arrays["position"], ordinals), young, "now")
        then = _counted(self._pinned(young), young, "then")
        both = now.join(then, KEYS, join_type="left outer")
        more = pc.subtract(both["now"], pc.fill_null(both["then"], 0))
        is_late = pc.greater(more, 0)
        self.late.count += pc.sum(more.filter(is_late)).as_py() or 0
        self._name(both.filter(is_late).select(KEYS))

    def _pinned(self, young: pa.Table) -> pa.Table:
        """The coordinates that the pinning snapshot holds from the lowest of `young` to the highest: at most a block."""
        ordered = young.sort_by([(name, "ascending") for name in KEYS])
        ends = [Coordinate(*(ordered[name][at].as_py() for name in KEYS)) for at in (0, -1)]
        high = Coordinate(ends[1].position, ends[1].ordinal + 1) if ends[1].ordinal < INT64_MAX else None
        within = self.mapped.coordinate.inside(CoordinateRange(SINGLE_LANE, ends[0], high))
        components = self.mapped.coordinate.components
        carried = [packed_integer(name, one.send, one.held) for name, one in zip(KEYS, components, strict=False)]
        held = [_coordinates([], [])]
        with snapshot_open(self.address, self.snapshot) as connection:
            for arrays in read_packed(connection, carried, self.mapped.rows, [Block(within)]):
                positions = arrays["position"]
                held.append(_coordinates(positions, arrays.get("ordinal", np.zeros(len(positions), np.int64))))
        return pa.concat_tables(held)

    def _name(self, found: pa.Table) -> None:
        room = SHOWN - len(self.late.first)
        if room > 0 and found.num_rows:
            first = found.sort_by([(name, "ascending") for name in KEYS]).slice(0, room)
            self.late.first += [Coordinate(row["position"], row["ordinal"]) for row in first.to_pylist()]


def _coordinates(position: Any, ordinal: Any) -> pa.Table:
    return pa.table({"position": pa.array(position, pa.int64()), "ordinal": pa.array(ordinal, pa.int64())})


def _counted(rows: pa.Table, wanted: pa.Table, name: str) -> pa.Table:
    """How many of `rows` each wanted coordinate has: a coordinate may repeat."""
    mine = rows.join(wanted.group_by(KEYS).aggregate([]), KEYS, join_type="left semi")
    return mine.group_by(KEYS).aggregate([([], "count_all")]).rename_columns([*KEYS, name])
