"""One mapped table read by ranges of its coordinate, in a snapshot that somebody else holds.

What source and record have in common: which columns a width carries, in which blocks, and where Python steps in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate, coordinate_format
from recovery_api.domain.errors import BadInput, Unsuitable
from recovery_api.domain.frontiers import SINGLE_LANE
from workers.connectors.postgresql.connection import Address, snapshot_joined, snapshot_open
from workers.connectors.postgresql.content import digests_complete, op_unmapped
from workers.connectors.postgresql.extent import ROWS_A_BLOCK, blocks_are_bounded, blocks_of
from workers.connectors.postgresql.late_rows import late_look
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.postgresql.packed import Block, Packed, packed_integer, read_packed
from workers.connectors.readings import CoordinateRange, LateRows

REPEATED_ROWS = 2 * ROWS_A_BLOCK


@dataclass(frozen=True)
class TableReader:
    """`handle` is a Reading's: snapshot, types, has_soft_errors, grid, rows, has_index."""

    address: Address
    options: Mapping[str, Any]
    handle: Mapping[str, Any]

    @property
    def mapped(self) -> MappedTable:
        return MappedTable(self.options, self.handle["types"], self.handle["has_soft_errors"])

    def read(
        self, range_: CoordinateRange, columns: Sequence[Packed], schema: pa.Schema, late: LateRows | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches of `schema`: position, ordinal and lane from the range, `columns` as read, the rest null.

        `late` is filled where the handle tells of a pinning snapshot.
        """
        lane_check(range_.lane)
        mapped, coordinate = self.mapped, self.mapped.coordinate
        names = ("position", "ordinal")
        carried = [
            packed_integer(name, component.send, component.held, component.send_above if name == "position" else None)
            for name, component in zip(names, coordinate.components, strict=False)
        ]
        cut = blocks_of(self.handle["grid"], range_, self.handle["rows"]) if self.handle["has_index"] else [range_]
        blocks = [Block.within(block, coordinate.inside(block)) for block in cut]
        look = late_look(self.address, mapped, self.handle, late)
        rows = mapped.rows
        if look is not None:
            columns, rows = [*columns, *look.columns], mapped.rows_with_xmin
        by_index = self.handle["has_index"] and blocks_are_bounded(cut)
        with snapshot_joined(self.address, self.handle["snapshot"]) as connection:
            for arrays in read_packed(connection, [*carried, *columns], rows, blocks, by_index):
                count = len(arrays["position"])
                if look is not None:
                    look.block(arrays)
                if "ordinal" not in arrays:
                    arrays["ordinal"] = _repeated(0, count)
                self._mend(mapped, arrays)
                yield pa.record_batch([_column(field, arrays, count) for field in schema], schema=schema)

    def _mend(self, mapped: MappedTable, arrays: dict[str, pa.Array]) -> None:
        """Digests that SQL could not give, computed here. Raises: Unsuitable for an unmapped op, an unusable digest."""
        if "op" in arrays and arrays["op"].null_count:
            position, ordinal = _first_null(arrays, "op")
            raise op_unmapped(mapped, position, ordinal)
        if "payload_digest" not in arrays or not arrays["payload_digest"].null_count:
            return
        if self.options.get("digest"):
            place = coordinate_format(Coordinate(*_first_null(arrays, "payload_digest")), mapped.spelling)
            problem = "holds no payload digest of 32 bytes"
            raise Unsuitable(f"column {self.options['digest']!r} at {place}", problem, "Map the content instead.")
        # On a connection of its own: the first one is in the middle of its COPY.
        with snapshot_open(self.address, self.handle["snapshot"]) as connection:
            arrays["payload_digest"] = digests_complete(connection, mapped, arrays)


def lane_check(lane: str) -> None:
    """Nothing, where it is the one lane that a table has. Raises: BadInput."""
    if lane != SINGLE_LANE:
        raise BadInput("lane", f"{lane!r} is not a lane of a table", f"A table has one lane, {SINGLE_LANE!r}.")


def schema_of(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The named columns of an evidence schema, in its own order."""
    return pa.schema([field for field in schema if field.name in names])


def _first_null(arrays: Mapping[str, pa.Array], name: str) -> tuple[int, int]:
    at = int(np.flatnonzero(np.asarray(arrays[name].is_null()))[0])
    return arrays["position"][at].as_py(), arrays["ordinal"][at].as_py()


def _repeated(value: str | int, count: int) -> pa.Array:
    """An array of `count` times the value. Up to REPEATED_ROWS it is a slice of one array that all blocks share."""
    if count > REPEATED_ROWS:
        return pa.repeat(value, count)
    return _much_repeated(value).slice(0, count)


@cache
def _much_repeated(value: str | int) -> pa.Array:
    return pa.repeat(value, REPEATED_ROWS)


def _column(field: pa.Field, arrays: Mapping[str, pa.Array], count: int) -> pa.Array:
    if field.name == "lane":
        return _repeated(SINGLE_LANE, count)
    if field.name not in arrays:
        return pa.nulls(count, field.type)
    return arrays[field.name]
