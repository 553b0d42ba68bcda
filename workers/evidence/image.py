"""An image audit's reading: the frontier pinned, target and record in one snapshot, the source's last, and what that shows.

The order is THEORY section 2's, as for a verdict: what the history is said to hold at f was committed before the target was
read. What cannot be compared at all is told in sentences, and then nothing is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from recovery_api.domain.archives import coordinate_before
from recovery_api.domain.coordinates import Coordinate, coordinate_format
from recovery_api.domain.evidence_places import NOTHING, Stored
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.grounds import Standing
from recovery_api.domain.images import KEY_CHARACTERS, ImageCounts, ImageWord, history_gap, order_unknown
from recovery_api.domain.ledger.blocks import coordinate_after
from workers.connectors.protocols.image import StatePart, StateReading, StateRecord
from workers.connectors.protocols.source import Source
from workers.connectors.readings import CoordinateRange, LaneReading, Reading, Width
from workers.evidence.image_archive import archived_pieces
from workers.evidence.image_base import base_check, base_digest
from workers.evidence.image_spec import BasePiece, ImageSpec, Later, Piece
from workers.evidence.kernel.image import ImageQuestion
from workers.evidence.known import epoch_open
from workers.evidence.pinning import BEFORE_EVERYTHING, pin
from workers.evidence.read import AuditRequest
from workers.spark.jobs.image import SET_ROWS, image_meet
from workers.spark.on_demand import OnDemand

PIECE_ROWS = 500_000
"""Rows that one task reads, about."""
SHARES_LEAST = 2

ORDER_GIVEN = "that the events of one key are committed in the order of their coordinates"
KEEPS_GIVEN = "that the source never dropped an event"


@dataclass(frozen=True, slots=True)
class Base:
    """What `Src` gave each key at `at`, as an earlier image audit wrote it. `stored` None: it is not kept any more."""

    at: Coordinate
    stored: Stored | None
    digest: str
    incarnation: str
    mapping: str


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """`audit`: both ends, frontier, scope, ledger and archive, as for a verdict. `order_given`: who gave the word that each
    key's events are committed in order; "" where nobody did. `mapping`: digest of what decides the rows of source and target,
    as an earlier base was written under. `keeps_base`: what `Src` gives each key is written."""

    audit: AuditRequest
    order_given: str = ""
    mapping: str = ""
    base: Base | None = None
    keeps_base: bool = False
    parts: int = 8


@dataclass(frozen=True, slots=True)
class Named:
    """One key that differs or is unknown, as a person is shown it. `at`: its latest event; None: there is none."""

    word: str
    key: str
    at: Coordinate | None


@dataclass(frozen=True, slots=True)
class ImageFound:
    """`unread`: why nothing can be said of any key. `gap`: why the history is not whole. `base_digest`: of the base that was
    written; "" where none was. `stored`: its findings and its base."""

    frontier: Mapping[str, Coordinate]
    frontier_says: str
    source_reading: Reading
    sink_reading: Reading
    target: str = ""
    counts: ImageCounts = field(default_factory=ImageCounts)
    named: tuple[Named, ...] = ()
    unread: tuple[str, ...] = ()
    givens: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()
    gap: str = ""
    is_based: bool = False
    base_digest: str = ""
    incarnation: str = ""
    stored: Stored = NOTHING


def image_read(session: Any, request: ImageRequest, progress: Callable[..., None]) -> ImageFound:
    """Every key of the target beside the committed history at f.

    Raises: FrontierRefused; Unsuitable where target and history cannot be compared, with why; whatever a connector or a task
    raised.
    """
    audit = request.audit
    source, record = audit.source.source(), audit.sink.record()
    assert isinstance(record, StateRecord)
    with ExitStack() as held:
        pinned = pin(audit, source, progress, held)
        sink_reading = held.enter_context(record.hold_snapshot())
        state = held.enter_context(record.hold_state(sink_reading))
        source_reading = held.enter_context(source.hold_snapshot())
        frontier = dict(pinned.frontiers)
        found = ImageFound(
            frontier,
            _spelled(source, frontier),
            source_reading,
            sink_reading,
            target=state.name,
            weaknesses=tuple(dict.fromkeys((*source_reading.weaknesses, *state.weaknesses))),
        )
        if unread := _unread(request, source, source_reading, sink_reading, frontier):
            return replace(found, unread=tuple(unread))
        lane, f = next(iter(frontier.items()))
        safe, reading = pinned.safe[lane], source_reading.lanes[lane]
        givens = [safe.given] if safe.standing is not Standing.PROVEN and safe.given else []
        if request.order_given:
            givens.append(f"{ORDER_GIVEN} ({request.order_given})")
        history = _history(request, source, source_reading, reading, f, safe.incarnation)
        if not history.gap and reading.first_number is None and not history.is_based:
            givens.append(KEEPS_GIVEN)
        progress(step="comparing keys")
        spec = ImageSpec(
            audit.source,
            audit.sink,
            source_reading,
            sink_reading,
            state,
            (),
            ImageQuestion(
                is_whole=not history.gap,
                scope=None if audit.scope is None else record.key_hashes(state, list(audit.scope)),
                has_base=request.keeps_base and not history.gap and audit.scope is None,
            ),
            audit.evidence,
        )
        met = _judged(session, request, spec, source, history, state, reading, f)
        written = ""
        if spec.question.has_base and not met.counts.of(ImageWord.TIED):
            written = base_digest(met.stored)
        return replace(
            found,
            counts=met.counts,
            named=tuple(_named(source, source_reading, record, state, met.sample)),
            givens=tuple(givens),
            gap=history.gap,
            is_based=history.is_based,
            base_digest=written,
            incarnation=safe.incarnation,
            stored=met.stored,
        )


@dataclass(frozen=True, slots=True)
class _History:
    """What is read of the history: the source from `low` on, and `pieces` of archive and base. `gap`: why it is not whole."""

    low: Coordinate | None
    pieces: tuple[Piece, ...]
    gap: str
    is_based: bool = False
    rows: int = 0


def _unread(
    request: ImageRequest, source: Source, committed: Reading, accepted: Reading, frontier: Mapping[str, Coordinate]
) -> Iterator[str] | list[str]:
    said = []
    if why := order_unknown(source.spelling, bool(request.order_given)):
        said.append(why)
    if len(frontier) != 1:
        said.append(
            "An image is compared of a source of one lane: between two lanes nothing says which event is the later."
        )
    if committed.rows_go:
        said.append("The source drops rows once they are delivered: a key's latest event may be gone.")
    if not (committed.is_complete and accepted.is_complete):
        said += ["An end could not be read whole.", *committed.weaknesses, *accepted.weaknesses]
    if len(frontier) == 1 and next(iter(frontier.values())) == BEFORE_EVERYTHING:
        said.append("No frontier is safe yet, so nothing is known to be committed.")
    return said


def _history(
    request: ImageRequest, source: Source, reading: Reading, lane: LaneReading, f: Coordinate, incarnation: str
) -> _History:
    """Base and archive, as far as they may serve the source as it answers now."""
    base = request.base
    if base is not None and base.at <= f and (base.incarnation, base.mapping) == (incarnation, request.mapping):
        objects = base_check(base.stored, base.digest)
        after = coordinate_after(base.at)
        gap = ""
        url = base.stored.url if base.stored else ""
        pieces: tuple[Piece, ...] = tuple(BasePiece(url, one) for one in objects)
        if lane.lowest is not None and (lane.floor or lane.lowest) > after:
            archived = archived_pieces(request.audit.archive, reading, lane.lane, after, lane.lowest, f)
            if archived.reaches is None or archived.reaches < lane.lowest:
                gap = _gap_above(request, reading, lane, after)
            pieces += tuple(archived.pieces)
        return _History(after, pieces, gap, is_based=not gap)
    known = epoch_open(request.audit.ledger, reading)[1].get(lane.lane) if request.audit.ledger else None
    earliest = known.earliest if known else None
    gap = history_gap(lane.lowest, lane.floor, lane.first_number, earliest)
    if not gap:
        return _History(None, (), "")
    archived = archived_pieces(request.audit.archive, reading, lane.lane, None, lane.lowest, f)
    gap = history_gap(lane.lowest, lane.floor, lane.first_number, earliest, archived.reaches)
    return _History(None, tuple(archived.pieces), gap)


def _gap_above(request: ImageRequest, reading: Reading, lane: LaneReading, after: Coordinate) -> str:
    """Why events between a base and the oldest one kept may be gone; "" where none can have been there."""
    known = epoch_open(request.audit.ledger, reading)[1].get(lane.lane) if request.audit.ledger else None
    dropped = history_gap(lane.lowest, lane.floor, lane.first_number, known.earliest if known else None)
    if not dropped:
        return ""
    if (
        lane.numbers_step is not None
        and lane.lowest is not None
        and lane.lowest.position <= after.position + lane.numbers_step
    ):
        return ""
    return "between the base and the oldest event kept some may have been dropped"


def _judged(
    session: Any,
    request: ImageRequest,
    spec: ImageSpec,
    source: Source,
    history: _History,
    state: StateReading,
    lane: LaneReading,
    f: Coordinate,
) -> Any:
    rows = lane.estimated_rows + state.estimated_rows

    def judge(chosen: Any, most: int | None) -> Any:
        count = 1 if most is not None else max(request.parts, math.ceil(lane.estimated_rows / PIECE_ROWS))
        pieces: list[Piece] = list(_ranges(source, spec.source_reading, lane.lane, count, history.low, f))
        shares = 1 if most is not None else max(SHARES_LEAST, math.ceil(state.estimated_rows / PIECE_ROWS))
        pieces += [*_shares(state, shares), *_later(spec.sink_reading, lane, f), *history.pieces]
        sets = max(1, math.ceil(rows / SET_ROWS))
        return image_meet(chosen, replace(spec, pieces=tuple(pieces), sets=sets, most_rows=most))

    if isinstance(session, OnDemand):
        of_state = Reading("", {}, {"": replace(lane, estimated_rows=state.estimated_rows)})
        return session.judged((spec.source_reading, of_state), judge)
    return judge(session, None)


def _ranges(
    source: Source, reading: Reading, lane: str, count: int, low: Coordinate | None, f: Coordinate
) -> Iterator[CoordinateRange]:
    """The lane from `low` on, up to and including `f`, in about `count` ranges."""
    high = coordinate_after(f)
    for one in source.split(reading, lane, count):
        begins = max((at for at in (one.low, low) if at is not None), default=None)
        ends = high if one.high is None else min(one.high, high)
        if begins is None or begins < ends:
            yield CoordinateRange(lane, begins, ends)


def _shares(state: StateReading, count: int) -> list[StatePart]:
    """At most `count` shares of the target, which cover it whole, however it grew since it was looked at."""
    cuts = sorted({state.pages * part // count for part in range(1, count)} - {0})
    return [StatePart(low, high) for low, high in zip([0, *cuts], [*cuts, None], strict=True)]


def _later(reading: Reading, lane: LaneReading, f: Coordinate) -> list[Later]:
    """Every acceptance that no event at or below `f` accounts for: those above it, and those of another lane.

    A source that drops events may have dropped one in the middle, where it goes by a mark. What was accepted since its oldest
    event is read as well then: a key whose latest acceptance is no event any more is not judged by an older one.
    """
    later = [Later(one, f if one == lane.lane else None) for one in reading.lanes if one != lane.lane or not lane.floor]
    if lane.floor is not None and lane.lane in reading.lanes:
        before = None if lane.lowest is None else coordinate_before(lane.lowest)
        later.append(Later(lane.lane, before, f))
    return later


def _named(
    source: Source, reading: Reading, record: StateRecord, state: StateReading, sample: list[dict[str, Any]]
) -> Iterator[Named]:
    """The sampled findings with their keys: as the target spells them, else as the latest event does."""
    placed = [row for row in sample if row["row_position"] is not None]
    spelled = iter(
        record.state_keys(
            state,
            pa.table(
                {"position": [row["row_position"] for row in placed], "ordinal": [row["row_ordinal"] for row in placed]}
            ),
        )
        if placed
        else []
    )
    for row in sample:
        if row["row_position"] is None and row["position"] is None:
            continue  # of a later acceptance alone there is nothing here that could name its key
        at = None if row["position"] is None else Coordinate(row["position"], row["ordinal"])
        key = next(spelled) if row["row_position"] is not None else ""
        if row["row_position"] is None and at is not None:
            key = _key_of_event(source, reading, at)
        yield Named(row["word"], key, at)


def _key_of_event(source: Source, reading: Reading, at: Coordinate) -> str:
    lane = next(iter(reading.lanes), SINGLE_LANE)
    only = CoordinateRange(lane, at, coordinate_after(at))
    for batch in source.read_history(reading, only, Width.FULL, with_key=True):
        for key in batch.column("key").to_pylist()[:1]:
            return "" if key is None else str(key)[:KEY_CHARACTERS]
    return ""


def _spelled(source: Source, frontier: Mapping[str, Coordinate]) -> str:
    several = len(frontier) > 1
    return ", ".join(
        (f"{lane}=" if several else "")
        + ("the beginning" if at == BEFORE_EVERYTHING else coordinate_format(at, source.spelling))
        for lane, at in frontier.items()
    )
