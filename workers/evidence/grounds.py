"""The safe frontier that a reading is judged by: pinned now or proven before, for as long as its ground stands.

A ground ends where the catalogue shows something else than it did, and where a row came in at or below the frontier.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format
from recovery_api.domain.errors import FrontierRefused
from recovery_api.domain.evidence_places import Stored
from recovery_api.domain.grounds import Standing, came_late, late_says
from workers.connectors.readings import CoordinateRange, LaneReading, LateRows, Reading, SafeFrontier, Width
from workers.evidence.schemas import FINDING
from workers.evidence.store import FINDINGS, rows_read

CHANGED = "what the catalogue showed when it was pinned, who may write the table and how, has changed since"

ELSEWHERE = "it was pinned at another server, timeline or table than answers now"


@dataclass(frozen=True, slots=True)
class Remembered:
    """A safe frontier of one lane that was proven earlier. `at`: when, for people."""

    safe: SafeFrontier
    at: str


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an earlier reading found of a lane's history at or below `frontier`. `since`: that reading, for people.

    `xmin`: its source snapshot's, by which rows written since are told; None: not known.
    """

    frontier: Coordinate
    fingerprint: Mapping[str, int]
    incarnation: str
    since: str
    xmin: str | None = None


@dataclass(frozen=True, slots=True)
class Late:
    """Rows of one lane that came in at or below a frontier. `says`: the sentence; `first`: those that are known."""

    count: int
    first: tuple[Coordinate, ...]
    says: str


def pinned_choose(
    reading: LaneReading, remembered: Remembered | None, asked: Coordinate | None, attested_by: str
) -> LaneReading:
    """The lane with the frontier to go by: what was pinned, or one that was proven before and reaches further.

    Once proven a frontier stays so, for that incarnation of the source and while its catalogue shows the same.
    """
    safe = reading.safe
    if safe.standing is Standing.ATTESTED and attested_by:
        weakness = f"{safe.weakness} The word was given by {attested_by}."
        safe = replace(safe, weakness=weakness, given=f"{safe.given} ({attested_by})")
    if remembered is not None and _is_same_ground(safe, remembered.safe):
        known = remembered.safe.coordinate
        is_further = known is not None and (safe.coordinate is None or safe.coordinate < known)
        is_enough = asked is not None and known is not None and asked <= known and safe.standing is not Standing.PROVEN
        if is_further or is_enough:
            newer = f" Newer is not safe yet: {safe.says}" if is_further else ""
            says = f"Proven before ({remembered.at}), and what was safe stays safe: {remembered.safe.says}{newer}"
            safe = replace(remembered.safe, says=says, waits_for=safe.waits_for if is_further else ())
    return replace(reading, safe=safe)


def pinned_apply(
    reading: Reading,
    chosen: Mapping[str, SafeFrontier],
    is_just_pinned: bool,
    pinned: Mapping[str, SafeFrontier] | None = None,
) -> Reading:
    """The last reading with the frontiers it is judged by, each as far as its ground still stands. `pinned`: what the
    pinning reading itself said, where a frontier that was proven before was chosen instead: its rows may be gone since.

    Raises: FrontierRefused where another server answered than the one that was just pinned.
    """
    lanes = {}
    said = list(reading.weaknesses)
    for lane, found in reading.lanes.items():
        safe = chosen.get(lane, found.safe)
        now, then = found.safe, safe
        own = (pinned or chosen).get(lane, then)
        is_behind = now.coordinate is not None and own.coordinate is not None and now.coordinate < own.coordinate
        is_elsewhere = bool(now.incarnation and then.incarnation and now.incarnation != then.incarnation)
        if is_just_pinned and (is_elsewhere or (is_behind and now.ground == own.ground)):
            moved = "it moved back between two readings: another server or table answered"
            raise FrontierRefused(f"of lane {lane}", "behind it", "safe frontier", moved)
        if is_elsewhere:
            safe = safe.unproven(ELSEWHERE)
        elif safe.standing is not Standing.ASSUMED and safe.catalogue != found.safe.catalogue:
            safe = safe.unproven(CHANGED)
        said = [one for one in said if one != found.safe.weakness]
        said += [safe.weakness] if safe.weakness else []
        lanes[lane] = replace(found, safe=safe)
    return replace(reading, lanes=lanes, weaknesses=tuple(dict.fromkeys(said)))


def late_find(
    reading: LaneReading,
    frontier: Coordinate,
    summaries: Sequence[Mapping[str, Any]],
    earlier: Earlier | None,
    at_earlier: Mapping[str, int],
    spelling: Spelling,
    written: Callable[[str, Earlier], tuple[LateRows, Collection[Coordinate]]],
) -> Late | None:
    """What the ranges of one lane show of late rows: those absent from the pinning snapshot, and those that an earlier
    reading of the history did not find. None: none is shown.

    `written` reads what was written since the earlier reading, and which of it the sink lacks; it is asked only where
    rows came in.
    """
    seen = [summary["late"] for summary in summaries if "late" in summary]
    first = [Coordinate(*pair) for one in seen for pair in one["first"]]
    missing = [coordinate_format(Coordinate(*pair), spelling) for one in seen for pair in one["missing"]]
    count = sum(one["count"] for one in seen)
    if count:
        named = [coordinate_format(one, spelling) for one in first]
        since = "the frontier was pinned"
        return Late(count, tuple(first), late_says(count, named, coordinate_format(frontier, spelling), since, missing))
    if earlier is None or earlier.incarnation != reading.safe.incarnation or not earlier.incarnation:
        return None
    came = came_late(earlier.fingerprint, at_earlier)
    if not came:
        return None
    young, lacking = written(reading.lane, earlier)
    known = young.first if young.written_since == came else []
    named, missing = (
        [coordinate_format(one, spelling) for one in some] for some in (known, [one for one in known if one in lacking])
    )
    f = coordinate_format(earlier.frontier, spelling)
    return Late(came, tuple(known), late_says(came, named, f, earlier.since, missing))


def written_since(source: Any, reading: Reading, stored: Stored, lane: str, earlier: Earlier) -> tuple[LateRows, Any]:
    """The rows written, or written again, since the earlier reading, and those of the named ones that `stored` says
    are lost. Reads the lane's coordinates once more."""
    late = LateRows(earlier.frontier)
    if earlier.xmin is None:
        return late, ()
    again = replace(reading, handle={**reading.handle, "pinned": {"snapshot": None, "xmin": earlier.xmin}})
    for _ in source.read_history(again, CoordinateRange(lane, None, None), Width.COORDINATE, late=late):
        pass
    wanted = (ds.field("finding") == "lost") & (ds.field("lane") == lane)
    wanted &= ds.field("position").isin([one.position for one in late.first])
    rows = rows_read(stored, stored.of(FINDINGS), FINDING, columns=["position", "ordinal"], wanted=wanted)
    return late, {Coordinate(row["position"], row["ordinal"]) for row in rows.to_pylist()}


def _is_same_ground(now: SafeFrontier, then: SafeFrontier) -> bool:
    return bool(now.incarnation) and (now.catalogue, now.incarnation) == (then.catalogue, then.incarnation)


def late_missing(late: LateRows, findings: pa.Table) -> list[tuple[int, int]]:
    """Those of the named late rows that the sink lacks, of what these findings are about."""
    if not late.first:
        return []
    lost = findings.filter(pc.equal(findings["finding"], "lost")).select(["position", "ordinal"])
    first = [(one.position, one.ordinal) for one in late.first]
    named = pa.table({"position": [one for one, _ in first], "ordinal": [one for _, one in first]})
    lacking = lost.join(named, ["position", "ordinal"], join_type="left semi").to_pylist()
    missing = {(row["position"], row["ordinal"]) for row in lacking}
    return [pair for pair in first if pair in missing]


def late_summary(late: LateRows, findings: pa.Table) -> dict[str, Any]:
    """What was seen of late rows in this range, and which of the named ones the sink lacks."""
    return {
        "count": late.count,
        "written_since": late.written_since,
        "first": [(one.position, one.ordinal) for one in late.first],
        "missing": late_missing(late, findings),
    }


def history_fingerprint(history: pa.Table, frontier: Coordinate) -> dict[str, int]:
    """An order-free fingerprint of the history at or below `frontier`: a count and sums that bind content to position."""
    position = history["position"].to_numpy().view(np.uint64)
    below = None if is_all_below(history, frontier) else at_or_below(history, frontier)
    position = position if below is None else position[below]
    weights = 2 * int(position.sum(dtype=np.uint64)) + len(position)  # each position's is twice it and one more
    total = {"count": len(position), "positions": weights % 2**64}
    if "payload_digest" in history.column_names and history.num_rows:
        digests = history["payload_digest"].combine_chunks()
        limbs = np.frombuffer(digests.buffers()[1], dtype=">u8")[digests.offset * 4 :][: len(digests) * 4]
        limbs = limbs.reshape(-1, 4) if below is None else limbs.reshape(-1, 4)[below]
        weight = position * np.uint64(2) + np.uint64(1)
        total["contents"] = int((limbs.astype(np.uint64) * weight[:, None]).sum(dtype=np.uint64))
    return total


def is_all_below(rows: pa.Table, frontier: Coordinate) -> bool:
    """Whether every row lies below the frontier by its position alone, so that rows need not be looked at one by one."""
    position = rows["position"].to_numpy()
    return len(position) == 0 or bool(position.max() < frontier.position)


def at_or_below(rows: pa.Table, frontier: Coordinate) -> np.ndarray:
    """A boolean a row of position and ordinal."""
    position, ordinal = rows["position"].to_numpy(), rows["ordinal"].to_numpy()
    if frontier.ordinal >= 0 and not ordinal.any():
        return position <= frontier.position
    return (position < frontier.position) | ((position == frontier.position) & (ordinal <= frontier.ordinal))
