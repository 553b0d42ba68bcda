"""Evidence as it is kept: one Parquet part for each range in the run's directory, and the files beside them.

A part is written by rename, so that a retried or speculative attempt leaves the same file.
"""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from recovery_api.domain.coordinates import Coordinate
from workers.connectors.readings import CoordinateRange

HELD_BYTES = 16 * 2**20
"""Of a part that is being encoded, in memory."""

GROUP_ROWS = 65_536
"""Rows of a Parquet group: findings stand kind by kind, so that who wants one kind reads a few groups."""


class PartEncoder:
    """One Parquet part, encoded piece by piece: rows take a fraction of their room as soon as they are added, and a large
    part lies in a file without a name."""

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = 0
        self._file = SpooledTemporaryFile(max_size=HELD_BYTES)  # noqa: SIM115 # `close` closes it
        self._writer = pq.ParquetWriter(self._file, schema, compression="zstd")

    def add(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        self._writer.write_table(table, row_group_size=GROUP_ROWS)

    def finish(self) -> IO[bytes]:
        """The whole part, from its beginning. Nothing can be added any more."""
        self._writer.close()
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Lets go what was encoded, if nobody took it."""
        self._writer.close()
        self._file.close()


def part_write(directory: str, name: str, table: pa.Table) -> None:
    """One Parquet part, whole or not there."""
    with closing(PartEncoder(table.schema)) as encoder:
        encoder.add(table)
        part_put(directory, name, encoder.finish())


def part_put(directory: str, name: str, encoded: IO[bytes]) -> None:
    """One encoded part, whole or not there: attempts write their own file and rename it."""
    final = Path(directory) / f"{name}.parquet"
    attempt = Path(directory) / f".{name}.{os.getpid()}.{os.urandom(4).hex()}"
    with attempt.open("wb") as file:
        shutil.copyfileobj(encoded, file)
    attempt.replace(final)


def parts_of(directory: str) -> list[str]:
    """The evidence parts under a directory, in the order of their ranges."""
    return sorted(str(part) for part in Path(directory).glob("part-*.parquet"))


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
