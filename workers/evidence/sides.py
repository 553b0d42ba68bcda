"""One lane of one export as arrays, in the form that the kernel takes, and the lane judged block by block.

The law: a block is a range of coordinates, the same on every side, so all that a verdict compares lies in one block.
Only one block is copied at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import INT64_MIN, Coordinate, Spelling
from recovery_api.domain.counts import LaneCounts
from recovery_api.domain.errors import BadInput
from workers.evidence import schemas
from workers.evidence.files import EventFile
from workers.evidence.kernel import LaneQuestion, fold, judge_block
from workers.evidence.kernel.questions import coordinate_max, coordinate_min

BLOCK_ROWS = 400_000
"""Rows of all sides that one block is made for: some 60 MB while it is judged."""


@dataclass
class Side:
    """`ordinal` None: all zero. `words`: payload digests, one row of 32 bytes an event. `extra`: more columns by name."""

    position: np.ndarray
    ordinal: np.ndarray | None
    words: np.ndarray
    entry: np.ndarray
    extra: dict[str, pa.ChunkedArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.position)

    @property
    def lowest(self) -> Coordinate | None:
        return coordinate_min(self.position, self.ordinal)

    @property
    def highest(self) -> Coordinate | None:
        return coordinate_max(self.position, self.ordinal)

    def table(self, keep: np.ndarray | None = None) -> pa.Table:
        """The rows that are kept (all, where None) in the shape of evidence, without columns that hold nothing."""

        def taken(values: np.ndarray) -> np.ndarray:
            return values if keep is None else values[keep]

        words = np.ascontiguousarray(taken(self.words))
        digests = pa.FixedSizeBinaryArray.from_buffers(schemas.DIGEST, len(words), [None, pa.py_buffer(words)])
        columns = {"position": pa.array(taken(self.position)), "entry": pa.array(taken(self.entry))}
        if self.ordinal is not None:
            columns["ordinal"] = pa.array(taken(self.ordinal))
        mask = None if keep is None else pa.array(keep)
        for name, column in self.extra.items():
            columns[name] = column if mask is None else column.filter(mask)
        return pa.table({**columns, "payload_digest": digests})


def side_write(side: Side, path: Path, lane: str, schema: pa.Schema) -> None:
    """The rows as Parquet in the shape of `schema` (HISTORY or ACCEPTED), all of this lane, for an engine to read."""
    import pyarrow.parquet as pq

    table = side.table()
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, len(side), BLOCK_ROWS):
            rows = table.slice(start, BLOCK_ROWS)
            held = {name: rows[name] for name in rows.column_names}
            held["lane"] = pa.repeat(pa.scalar(lane), len(rows))
            held.setdefault("ordinal", pa.array(np.zeros(len(rows), np.int64)))
            writer.write_table(pa.table(schemas.shaped(held, schema, len(rows)), schema=schema))


def side_load(file: EventFile, spelling: Spelling, lane: str | None, extra: tuple[str, ...], is_record: bool) -> Side:
    """The rows of a lane (None: the file holds no other). `extra`: of key, event_id, head.

    Raises: BadCoordinate.
    """
    names = [*("position", "ordinal", "entry", "payload_digest"), *(name for name in extra if name != "head")]
    if is_record:
        names += ["head_position", "head_ordinal"]
    types = {field.name: field.type for field in [*schemas.HISTORY, *schemas.ACCEPTED]}
    schema = pa.schema([(name, types[name]) for name in [*names, *(["lane"] if lane is not None else [])]])
    columns: dict[str, list[pa.Array]] = {name: [] for name in names}
    for whole in file.batches(spelling, schema):
        batch = whole if lane is None else whole.filter(pc.equal(whole["lane"], lane))
        for name in names:
            columns[name].append(batch[name])

    def numbers(name: str) -> np.ndarray:
        parts = [part.to_numpy(zero_copy_only=False) for part in columns.pop(name)]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    words = [_words(part) for part in columns.pop("payload_digest")]
    for name in ("position", "ordinal"):
        if (nulls := sum(part.null_count for part in columns[name])) and "event_id" not in extra:
            raise BadInput(file.notes.name, f"{nulls} rows have no coordinate", "Every event needs one.")
        columns[name] = [part.fill_null(0) for part in columns[name]]
    position, ordinal = numbers("position"), numbers("ordinal")
    side = Side(
        position,
        ordinal if ordinal.any() else None,
        np.concatenate(words) if words else np.empty((0, 32), np.uint8),
        numbers("entry"),
    )
    for name, parts in columns.items():
        column = pa.chunked_array(parts, types[name])
        if not name.startswith("head_") or column.null_count < len(column):
            side.extra[name] = column
    if "head_position" not in side.extra:
        side.extra.pop("head_ordinal", None)
    return side


def _words(part: pa.Array) -> np.ndarray:
    return np.frombuffer(part.buffers()[1], np.uint8, len(part) * 32, part.offset * 32).reshape(len(part), 32)


def lane_judge(question: LaneQuestion, sides: Mapping[str, Side]) -> tuple[LaneCounts, pa.Table]:
    """Counts and findings of a lane. `sides`: history, accepted, and a journal where there is one. Raises: BadInput."""
    counts, findings = [], []
    for block in _blocks(sides):
        verdict = judge_block(question, block["history"], block["accepted"], block.get("journal"))
        counts.append(verdict.counts)
        findings.append(verdict.findings)
    return fold(counts), pa.concat_tables(findings)


def _blocks(sides: Mapping[str, Side]) -> Iterator[dict[str, pa.Table]]:
    rows = sum(map(len, sides.values()))
    if rows <= BLOCK_ROWS:
        yield {end: side.table() for end, side in sides.items()}
        return
    step = max(1, rows // 100_000)
    sample = np.sort(np.concatenate([side.position[::step] for side in sides.values()]))
    count = rows // BLOCK_ROWS + 1
    bounds = np.unique(sample[(np.arange(1, count) * len(sample)) // count])
    for number in range(len(bounds) + 1):
        low = bounds[number - 1] if number else None
        high = bounds[number] if number < len(bounds) else None
        yield {end: side.table(_between(side.position, low, high)) for end, side in sides.items()}


def _between(position: np.ndarray, low: np.int64 | None, high: np.int64 | None) -> np.ndarray:
    keep = np.ones(len(position), bool) if low is None else position >= low
    return keep if high is None else keep & (position < high)


def ids_meet(history: Side, accepted: Side, ids: tuple[pa.Array, pa.Array], has_contents: bool) -> int:
    """Gives each accepted entry the coordinate of the event whose id it has; how many have the id of none.

    Entries without an event get a coordinate below every other. Without contents an event's payload is its id.

    Raises: BadInput where an id is missing in the history, or names two events.
    """
    own, others = (
        pc.dictionary_encode(one).combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in ids
    )
    if own.null_count:
        raise BadInput("event_id", f"{own.null_count} events of the history have none", "Match by coordinate.")
    places = pc.index_in(own, value_set=own)
    numbers = places.to_numpy(zero_copy_only=False)
    again = np.flatnonzero(numbers != np.arange(len(own)))
    if len(again):
        first = own[int(again[0])].as_py()
        raise BadInput("event_id", f"{first!r} names two events of the history", "An id has to be its event's alone.")
    found = pc.index_in(others, value_set=own)
    is_met = found.is_valid().to_numpy(zero_copy_only=False)
    place = np.where(is_met, found.fill_null(0).to_numpy(zero_copy_only=False), 0)
    strangers = np.flatnonzero(~is_met)
    none = len(history) == 0
    accepted.position = np.where(is_met, 0 if none else history.position[place], INT64_MIN)
    ordinal = np.zeros(len(accepted), np.int64) if history.ordinal is None or none else history.ordinal[place].copy()
    ordinal[strangers] = INT64_MIN + np.arange(len(strangers))
    accepted.ordinal = ordinal if ordinal.any() else None
    for name in ("head_position", "head_ordinal"):
        accepted.extra.pop(name, None)  # the sink's own, as its coordinates were
    if not has_contents:
        history.words = _numbered(np.arange(len(history)))
        accepted.words = _numbered(np.where(is_met, place, -1 - np.arange(len(accepted))))
    return len(strangers)


def _numbered(numbers: np.ndarray) -> np.ndarray:
    words = np.zeros((len(numbers), 4), np.int64)
    words[:, 0] = numbers
    return words.view(np.uint8).reshape(len(numbers), 32)


def side_keep(side: Side, keep: np.ndarray) -> Side:
    """The rows that are kept."""
    mask = pa.array(keep)
    return Side(
        side.position[keep],
        None if side.ordinal is None else side.ordinal[keep],
        side.words[keep],
        side.entry[keep],
        {name: column.filter(mask) for name, column in side.extra.items()},
    )
