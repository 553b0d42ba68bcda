"""What is asked of one lane, and how rows are compared with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import BadInput


@dataclass(frozen=True)
class LaneQuestion:
    """One frontier of one lane.

    `journal_head`: the highest coordinate of the journal (of the history where that is the journal), over the whole
    lane and not over a block; None: it holds nothing. `floor` None: nothing was dropped. `scope` None: every key; an
    empty array owes nothing. `acknowledged`: a table of position and ordinal. `has_journal`: the journal given to
    `judge_block`, or the history itself where that is None, holds everything committed below the floor; False: an
    accepted entry below the floor that it does not hold is *unknown*. `is_history_whole` False (a replica that lags): the
    same holds for an entry anywhere, for what was committed may be missing from the reading. `rows_go`: the same, because
    rows go from the source once they were delivered.

    `admitted_below`: every entry that an older transaction of the record admitted was judged by an earlier audit, and is
    justified, unless it is among `doubted` (position, ordinal, payload_digest). `premature`: those of which an earlier
    audit showed that they are not as committed, and which stay so wherever the floor lies by now.
    """

    lane: str
    frontier: Coordinate
    journal_head: Coordinate | None = None
    floor: Coordinate | None = None
    scope: pa.Array | None = None
    acknowledged: pa.Table | None = None
    has_journal: bool = True
    is_history_whole: bool = True
    rows_go: bool = False
    admitted_below: int | None = None
    doubted: pa.Table | None = None
    premature: pa.Table | None = None


@dataclass(frozen=True)
class Rows:
    """One side of a block as arrays. `words`: payload digests, None where the reading was narrowed to coordinates."""

    table: pa.Table
    position: np.ndarray
    ordinal: np.ndarray | None
    words: np.ndarray | None

    def __len__(self) -> int:
        return len(self.position)

    def at_or_below(self, bound: Coordinate) -> np.ndarray:
        return at_or_below(self.position, self.ordinal, bound)

    def below(self, bound: Coordinate) -> np.ndarray:
        if self.ordinal is None:
            return self.position < bound.position if bound.ordinal <= 0 else self.position <= bound.position
        return (self.position < bound.position) | ((self.position == bound.position) & (self.ordinal < bound.ordinal))

    def integers(self, name: str) -> np.ndarray | None:
        """A whole column of integers; None where it is absent or any of it is null."""
        if name not in self.table.column_names or self.table[name].null_count:
            return None
        return one_array(self.table[name])


def at_or_below(position: np.ndarray, ordinal: np.ndarray | None, bound: Coordinate) -> np.ndarray:
    """Which coordinates lie at or below `bound`. `ordinal` None: all zero."""
    if ordinal is None:
        return position <= bound.position if bound.ordinal >= 0 else position < bound.position
    return (position < bound.position) | ((position == bound.position) & (ordinal <= bound.ordinal))


def in_scope(rows: Rows, scope: pa.Array | None) -> np.ndarray | None:
    """Which rows' keys are in scope; None: all of them."""
    if scope is None:
        return None
    if "key" not in rows.table.column_names:
        raise BadInput("key", "was not read, and a scope is asked for", "Read the history with its keys.")
    inside = pc.is_in(rows.table["key"], value_set=scope.cast(rows.table["key"].type), skip_nulls=True)
    return one_array(inside.cast(pa.uint8())).view(np.bool_)


def one_array(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """A column without nulls as one array; no copy where it is one chunk."""
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            return column.chunk(0).to_numpy()
        if column.num_chunks == 0:
            return np.empty(0, column.type.to_pandas_dtype())
    return column.to_numpy()


def coordinate_max(position: np.ndarray, ordinal: np.ndarray | None) -> Coordinate | None:
    """The highest coordinate, None of none."""
    if len(position) == 0:
        return None
    top = position.max()
    return Coordinate(int(top), 0 if ordinal is None else int(ordinal[position == top].max()))


def coordinate_min(position: np.ndarray, ordinal: np.ndarray | None) -> Coordinate | None:
    """The lowest coordinate, None of none."""
    if len(position) == 0:
        return None
    low = position.min()
    return Coordinate(int(low), 0 if ordinal is None else int(ordinal[position == low].min()))


def rows_of(table: pa.Table, by_payload: bool) -> Rows:
    """The table's coordinates (and payload digests) as arrays. Raises: BadInput for a null coordinate."""
    from workers.evidence.canonical import digest_words

    for name in ("position", "ordinal"):
        if name in table.column_names and table[name].null_count:
            raise BadInput(name, f"{table[name].null_count} rows have no coordinate", "Every event needs one.")
    position = one_array(table["position"].cast(pa.int64()))
    ordinal = one_array(table["ordinal"].cast(pa.int64())) if "ordinal" in table.column_names else None
    if ordinal is not None and not ordinal.any():
        ordinal = None
    words = digest_words(table["payload_digest"]) if by_payload else None
    return Rows(table, position, ordinal, words)
