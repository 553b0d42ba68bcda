"""Evidence as it is kept: one Parquet part for each range in the run's directory, and the files beside them.

A part is written by rename, so that a retried or speculative attempt leaves the same file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from recovery_api.domain.coordinates import Coordinate
from workers.connectors.readings import CoordinateRange

GROUP_ROWS = 65_536
"""Rows of a Parquet group: findings stand kind by kind, so that who wants one kind reads a few groups."""


def part_write(directory: str, name: str, table: pa.Table) -> None:
    """One Parquet part, whole or not there: attempts write their own file and rename it."""
    final = Path(directory) / f"{name}.parquet"
    attempt = Path(directory) / f".{name}.{os.getpid()}.{os.urandom(4).hex()}"
    pq.write_table(table, attempt, compression="zstd", row_group_size=GROUP_ROWS)
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
