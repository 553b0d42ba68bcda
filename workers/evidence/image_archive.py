"""What the archive adds to a history whose oldest events are gone at the source: its parts, read once more by the source's
own SQL, so that their digests are made by the one rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from recovery_api.domain.archives import unusable_says
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.evidence_places import uri_of
from recovery_api.domain.ledger.blocks import coordinate_after
from workers.connectors.readings import CoordinateRange, Reading
from workers.evidence.archive.looking import Archive
from workers.evidence.archive.parts import PartUnusable, part_check, part_read

READ = ["position", "ordinal", "op", "key", "content"]


@dataclass(frozen=True, slots=True)
class ArchivedPieces:
    """`reaches`: the archive holds everything from where it was asked for up to here; None: it holds no such beginning."""

    pieces: tuple[Any, ...] = ()
    reaches: Coordinate | None = None


def archived_pieces(
    archive: Archive | None,
    reading: Reading,
    lane: str,
    low: Coordinate | None,
    high: Coordinate | None,
    f: Coordinate,
) -> ArchivedPieces:
    """The parts that hold the lane's events from `low` (None: from the beginning) up to where the source begins, `high`
    (None: it holds nothing), one after the other without a gap, and what of each is not said by another."""
    from workers.evidence.image_spec import Archived

    if archive is None:
        return ArchivedPieces()
    opened = archive.opened(reading)
    usable = [part for part in opened.parts if part.lane == lane and part.file not in opened.unusable]
    end = coordinate_after(f) if high is None else min(high, coordinate_after(f))
    reached, is_begun, pieces = low, low is not None, list[Any]()
    while reached is None or reached < end:
        following = [
            part
            for part in usable
            if (part.low is None or (is_begun and reached is not None and part.low <= reached))
            and (reached is None or part.high > reached)
        ]
        if not following:
            break
        part = max(following, key=lambda one: one.high)
        is_begun = True
        pieces.append(Archived(part, CoordinateRange(lane, reached, min(part.high, end))))
        reached = part.high
    return ArchivedPieces(tuple(pieces), reached if is_begun else None)


def archived_read(spec: Any, piece: Any) -> Iterator[pa.RecordBatch]:
    """schemas.IMAGE_EVENT of the part's events. Raises: Unsuitable where its file is not what was written."""
    from workers.connectors.rows import inside

    source: Any = spec.source.source()
    try:
        part_check(piece.part)
        for group in part_read(piece.part, READ):
            rows = group.append_column("lane", pa.repeat(pa.scalar(piece.within.lane), group.num_rows))
            rows = rows.filter(inside(rows, piece.within))
            yield from source.image_of_contents(spec.source_reading, rows.select(READ), spec.state.mapping)
    except PartUnusable as error:
        (why,) = error.args
        said = unusable_says({why.value: piece.part.rows})
        raise Unsuitable(f"the archive's file {uri_of(piece.part.file)}", said.rstrip("."), "Audit again.") from error
