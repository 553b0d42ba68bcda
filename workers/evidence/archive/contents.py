"""The contents that a batch is sent with: from the source, and from the archive where the source holds them no more.

The law: a content of the archive is digested again before it goes anywhere, and must be what was judged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.archives import Unusable, unusable_says
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Unsuitable
from workers.evidence.archive.looking import ORDER, PLACE, Archive, covered
from workers.evidence.archive.parts import ARCHIVED, PartUnusable, is_as_digested, part_check, part_read
from workers.evidence.schemas import BATCH

if TYPE_CHECKING:
    from workers.evidence.ranges import MeetSpec

SENT_AT_ONCE = 2_000
WHERE = ["lane", *PLACE]


def contents_read(spec: MeetSpec, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """schemas.BATCH rows of these rows of a batch (lane, position, ordinal, payload_digest, is_archived), all of one
    lane, in committed order.

    Raises: what reading the source raises; Unsuitable where the archive does not hold what was judged any more.
    """
    archived = rows.filter(pc.fill_null(rows["is_archived"], False))
    kept = rows.filter(pc.invert(pc.fill_null(rows["is_archived"], False))).select(WHERE)
    source = spec.source.source()
    if not archived.num_rows:
        yield from source.read_content(spec.source_reading, kept)
        return
    assert spec.archive is not None
    yield from _merged(source.read_content(spec.source_reading, kept), archived_read(spec.archive, archived))


def archived_read(archive: Archive, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """schemas.BATCH rows of these (lane, position, ordinal, payload_digest), of one lane, by coordinate.

    Raises: Unsuitable naming the first that the archive does not hold as it was judged.
    """
    rows = rows.select([*WHERE, "payload_digest"]).sort_by(ORDER)
    checked: set[str] = set()
    for start in range(0, rows.num_rows, SENT_AT_ONCE):
        yield from _some(archive, rows.slice(start, SENT_AT_ONCE), checked).to_batches()


def archived_at(archive: Archive, lane: str, at: Coordinate) -> pa.Table:
    """What the archive holds at one coordinate and may serve: ARCHIVED rows, each content as its digest says, each once."""
    found = [ARCHIVED.empty_table()]
    place = pa.table({"position": [at.position], "ordinal": [at.ordinal]})
    for part in archive.of(lane, at, at):
        if part.file in archive.unusable or not covered(place, part)[0].as_py():
            continue
        with contextlib.suppress(PartUnusable):
            part_check(part)
            for group in part_read(part, ARCHIVED.names):
                is_here = pc.and_(pc.equal(group["position"], at.position), pc.equal(group["ordinal"], at.ordinal))
                found.append(group.filter(is_here).cast(ARCHIVED))
    rows = {row["payload_digest"]: row for row in pa.concat_tables(found).to_pylist()}
    return pa.Table.from_pylist([row for row in rows.values() if is_as_digested(row)], schema=ARCHIVED)


def _some(archive: Archive, rows: pa.Table, checked: set[str]) -> pa.Table:
    lane, places = rows["lane"][0].as_py(), rows.drop_columns(["lane"])
    found, why = [], Unusable.ABSENT
    for part in archive.of(lane, *_ends(places)):
        wanted = places.filter(covered(places, part))
        if not wanted.num_rows:
            continue
        try:
            if part.file in archive.unusable:
                raise PartUnusable(archive.unusable[part.file])
            if part.file not in checked:
                part_check(part)
                checked.add(part.file)
            for group in part_read(part, [*BATCH.names, "payload_digest"]):
                met = group.join(wanted, [*PLACE, "payload_digest"], join_type="left semi").select(BATCH.names)
                if met.num_rows:
                    found.append(met)
        except PartUnusable as error:
            (why,) = error.args
    held = pa.concat_tables([BATCH.empty_table(), *found]).cast(BATCH)
    if found:
        held = held.take(_first_each(held)).sort_by(ORDER)
    _must_be_judged(rows, held, why)
    return held


def _first_each(held: pa.Table) -> pa.Array:
    """The rows by which each coordinate is there once: parts may overlap after a late row."""
    numbered = held.select(PLACE).append_column("row", pa.array(range(held.num_rows), pa.int64()))
    return numbered.group_by(PLACE).aggregate([("row", "min")])["row_min"].combine_chunks()


def _must_be_judged(rows: pa.Table, held: pa.Table, why: Unusable) -> None:
    """Raises: Unsuitable where one of `rows` is not in `held`, or its content has another digest than was judged."""
    judged = {
        (row["position"], row["ordinal"]): row["payload_digest"] for row in rows.drop_columns(["lane"]).to_pylist()
    }
    for event in held.to_pylist():
        place = event["position"], event["ordinal"]
        if not is_as_digested({**event, "payload_digest": judged[place]}):
            why = Unusable.ALTERED
            break
        del judged[place]
    if judged:
        position, ordinal = next(iter(judged))
        problem = unusable_says({why.value: 1})
        raise Unsuitable(
            f"the content of the event at {position}:{ordinal} (as held) in the archive",
            f"is not there as it was judged. {problem}",
            "Nothing is sent from the archive that is not what was judged.",
        )


def _ends(places: pa.Table) -> tuple[Coordinate, Coordinate]:
    pairs = list(zip(places["position"].to_pylist(), places["ordinal"].to_pylist(), strict=True))
    return Coordinate(*pairs[0]), Coordinate(*pairs[-1])


def _merged(one: Iterator[pa.RecordBatch], other: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Two streams in coordinate order as one; each holds coordinates that the other does not."""
    left, right = _next(one), _next(other)
    while left is not None and right is not None:
        upto = min(_last(left), _last(right))
        halves = [_split(table, upto) for table in (left, right)]
        yield from pa.concat_tables([half for half, _ in halves]).sort_by(ORDER).combine_chunks().to_batches()
        left, right = (rest if rest.num_rows else None for _, rest in halves)
        left, right = left or _next(one), right or _next(other)
    for rest, stream in ((left, one), (right, other)):
        if rest is not None:
            yield from rest.to_batches()
        yield from stream


def _next(stream: Iterator[pa.RecordBatch]) -> pa.Table | None:
    """The next batch that holds any row; None: there is none."""
    for batch in stream:
        if batch.num_rows:
            return pa.Table.from_batches([batch])
    return None


def _last(table: pa.Table) -> tuple[int, int]:
    row = table.slice(table.num_rows - 1).select(PLACE).to_pylist()[0]
    return row["position"], row["ordinal"]


def _split(table: pa.Table, upto: tuple[int, int]) -> tuple[pa.Table, pa.Table]:
    """What lies at or below `upto`, and the rest."""
    is_below = pc.or_(
        pc.less(table["position"], upto[0]),
        pc.and_(pc.equal(table["position"], upto[0]), pc.less_equal(table["ordinal"], upto[1])),
    )
    return table.filter(is_below), table.filter(pc.invert(is_below))
