"""Evidence as it is kept: rows encoded in memory into Parquet objects of bounded size, each put whole, and read by manifest.

The law: whoever reads goes by what was written (recovery_api.domain.evidence_places), object by object, by size and digest,
and never looks what lies there. An object's name is its attempt's own, so a retried or speculative attempt takes nothing away.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import EvidenceGone, FencepostError
from recovery_api.domain.evidence_places import Stored, Written, uri_of
from workers.connectors.readings import CoordinateRange
from workers.evidence.places import object_get, object_put, object_remove

FINDINGS, ITEMS, ACKNOWLEDGED = "part", "ledger", "acknowledged"
"""Sorts of objects that a judged range leaves. Of one that has nothing of a sort there is no object."""

PUT_BYTES = 8 * 2**20
"""An object is at most so large: below what Arrow sends to a bucket in pieces (10 MiB)."""

GROUP_ROWS, GROUP_BYTES = 16_384, 2**20
"""Of a Parquet group, before it is compressed: an object is closed while the next one still fits."""


FILTERED_GROUPS = 4
"""Read at once where rows are chosen: each choosing costs some milliseconds, and what was read is let go after it."""


class Encoder:
    """The rows of one sort and number of a place, put object by object. Nothing is put where nothing was added."""

    def __init__(self, url: str, sort: str, number: int, schema: pa.Schema) -> None:
        self.rows = 0
        self._url, self._sort, self._number, self._schema = url, sort, number, schema
        self._written: list[Written] = []
        self._open: _Object | None = None

    def add(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        for group in _groups(table):
            if self._open is None:
                self._open = _Object(self._schema)
            self._open.add(group)
            if self._open.size + 2 * GROUP_BYTES > PUT_BYTES:
                self._put()

    def finish(self) -> list[Written]:
        """Everything that was added is put."""
        self._put()
        return self._written

    def close(self) -> None:
        """Lets go what was not put."""
        if self._open is not None:
            self._open.encode()
            self._open = None

    def _put(self) -> None:
        if self._open is None:
            return
        held, self._open = self._open, None
        body = held.encode()
        name = f"{self._sort}-{self._number:05d}-{os.urandom(6).hex()}.parquet"
        object_put(self._url, name, body)
        digest = hashlib.sha256(body).hexdigest()
        self._written.append(
            Written(self._sort, self._number, name, len(body), digest, held.rows, held.lane, held.low, held.high)
        )


class _Object:
    """One Parquet file in memory, and where its rows lie."""

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = 0
        self.lane: str | None = None
        self.low: Coordinate | None = None
        self.high: Coordinate | None = None
        self._is_of_one_lane = "lane" in schema.names
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, schema, compression="zstd")

    @property
    def size(self) -> int:
        return int(self._sink.tell())

    def add(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        self._writer.write_table(table)
        if not {"lane", "position", "ordinal"} <= set(table.column_names) or not table.num_rows:
            return
        lanes = pc.unique(table["lane"]).to_pylist()
        self._is_of_one_lane &= len(lanes) == 1 and self.lane in (None, lanes[0])
        self.lane = lanes[0] if self._is_of_one_lane else None
        ordered = table.select(["position", "ordinal"]).sort_by([("position", "ascending"), ("ordinal", "ascending")])
        for row in (*ordered.slice(0, 1).to_pylist(), *ordered.slice(ordered.num_rows - 1).to_pylist()):
            at = Coordinate(row["position"], row["ordinal"])
            self.low = at if self.low is None else min(self.low, at)
            self.high = at if self.high is None else max(self.high, at)

    def encode(self) -> memoryview:
        self._writer.close()
        return memoryview(self._sink.getvalue())


def _groups(table: pa.Table) -> Iterator[pa.Table]:
    """Slices of `table` that each make a Parquet group of bounded size."""
    if not table.num_rows:
        return
    rows = max(1, min(GROUP_ROWS, GROUP_BYTES * table.num_rows // max(1, table.nbytes)))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def part_write(url: str, sort: str, number: int, table: pa.Table) -> list[Written]:
    """The rows, put; what was written. Raises: EvidenceUnwritable; AccessDenied."""
    encoder = Encoder(url, sort, number, table.schema)
    encoder.add(table)
    return encoder.finish()


def objects_forget(stored: Stored) -> None:
    """Takes away what tasks were handed something by. What cannot be taken away now goes with what no manifest names."""
    for one in stored.objects:
        with contextlib.suppress(FencepostError):
            object_remove(stored.url, one.name)


def object_open(url: str, written: Written) -> pq.ParquetFile:
    """The object, of which every byte is what was written. Raises: EvidenceGone; EvidenceUnwritable; AccessDenied."""
    body = object_get(url, written.name)
    if len(body) != written.size:
        raise EvidenceGone(written.name, uri_of(url), f"it has {len(body):,} bytes, and {written.size:,} were written")
    if hashlib.sha256(body).hexdigest() != written.digest:
        raise EvidenceGone(written.name, uri_of(url), "its bytes were altered")
    return pq.ParquetFile(pa.BufferReader(body))


def rows_read(
    stored: Stored,
    objects: Iterable[Written],
    schema: pa.Schema,
    *,
    columns: Sequence[str] | None = None,
    wanted: Any = None,
    wanted_by: Sequence[str] | None = None,
) -> pa.Table:
    """The rows of these objects, in their order, as `schema` has them. `wanted`: a filter, on the columns `wanted_by` (None:
    any). Raises: as `object_open`."""
    names = list(columns or schema.names)
    looked_at = list(dict.fromkeys([*names, *(schema.names if wanted_by is None else wanted_by)]))
    empty = pa.schema([schema.field(name) for name in names]).empty_table()
    return pa.concat_tables([empty, *_tables(stored, objects, names, looked_at, wanted)])


def _tables(
    stored: Stored, objects: Iterable[Written], names: list[str], looked_at: list[str], wanted: Any
) -> Iterator[pa.Table]:
    for one in objects:
        with object_open(stored.url, one) as file:
            if wanted is None:
                yield file.read(columns=names).select(names)
                continue
            for first in range(0, file.num_row_groups, FILTERED_GROUPS):
                groups = range(first, min(first + FILTERED_GROUPS, file.num_row_groups))
                held = file.read_row_groups(groups, columns=looked_at).filter(wanted)
                if held.num_rows:
                    yield held.select(names)


def parts_read(
    stored: Stored, sort: str, schema: pa.Schema, *, columns: Sequence[str] | None = None, wanted: Any = None
) -> Iterator[tuple[int, pa.Table]]:
    """(number, rows) of each range that has any of the sort, in the order of ranges: one is held at a time."""
    for number in stored.numbers(sort):
        yield number, rows_read(stored, stored.of(sort, number), schema, columns=columns, wanted=wanted)


def rows_head(stored: Stored, sort: str, schema: pa.Schema, most: int, columns: Sequence[str], wanted: Any) -> pa.Table:
    """The first `most` of these rows."""
    found = rows_read(stored, (), schema, columns=columns)
    for one in stored.of(sort):
        if found.num_rows >= most:
            break
        found = pa.concat_tables([found, rows_read(stored, [one], schema, columns=columns, wanted=wanted)])
    return found.slice(0, most)


def objects_in(objects: Iterable[Written], range_: CoordinateRange) -> list[Written]:
    """Those that can hold a row of the range, by what is told of their rows."""
    return [one for one in objects if _may_hold(one, range_)]


def _may_hold(one: Written, range_: CoordinateRange) -> bool:
    if one.lane is not None and one.lane != range_.lane:
        return False
    is_above = range_.high is not None and one.low is not None and one.low >= range_.high
    is_below = range_.low is not None and one.high is not None and one.high < range_.low
    return not (is_above or is_below)


def range_filter(range_: CoordinateRange, frontier: Coordinate | None = None) -> Any:
    """`range_`, and at or below `frontier`, as a filter on evidence parts."""
    held = ds.field("lane") == range_.lane
    if range_.low is not None:
        held &= (ds.field("position") > range_.low.position) | (
            (ds.field("position") == range_.low.position) & (ds.field("ordinal") >= range_.low.ordinal)
        )
    if range_.high is not None:
        held &= (ds.field("position") < range_.high.position) | (
            (ds.field("position") == range_.high.position) & (ds.field("ordinal") < range_.high.ordinal)
        )
    if frontier is not None:
        held &= (ds.field("position") < frontier.position) | (
            (ds.field("position") == frontier.position) & (ds.field("ordinal") <= frontier.ordinal)
        )
    return held
