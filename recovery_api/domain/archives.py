"""The archive: what audits read of a source, contents included, so that a purge makes nothing unrecoverable.

The law: what is sent from the archive is what was judged. A part serves only the incarnation and the mapping that it was
read under, only while its file is what was written, and never where the source itself holds something else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from recovery_api.domain.coordinates import INT64_MAX, INT64_MIN, Coordinate
from recovery_api.domain.ledger.epochs import CANONICAL_VERSION
from recovery_api.domain.words import row_make


class Unusable(StrEnum):
    """Why what the archive holds of an event, or should hold, is not sent. A row: the word; what it means; what to do.

    In the order in which one is told of several.
    """

    means: str
    remedy: str

    def __new__(cls, word: str, means: str = "", remedy: str = "") -> Unusable:
        return row_make(cls, word, means=means, remedy=remedy)

    ELSEWHERE = (
        "of another incarnation",
        "archived from another server, timeline or table than the source is now. After a fail-over or a restore the "
        "history that survived may never have committed it",
        "Find out whether the surviving history committed it.",
    )
    WENT_BACK = (
        "from before a restore",
        "archived when the source had given out later transaction numbers than it has now: it was put back to an earlier "
        "state since, and may never have committed it there",
        "Find out whether the restored source committed it.",
    )
    OTHERWISE = (
        "under another mapping",
        "archived when the source was mapped or filtered otherwise",
        "Map the source as it was, or compare the contents yourself.",
    )
    OCCUPIED = (
        "coordinate taken",
        "archived, and the source holds another event at its coordinate now: it was put back to an earlier state, or "
        "somebody changed the row",
        "Find out which of the two was committed.",
    )
    ALTERED = (
        "altered",
        "in a file of the archive that is not what was written there: somebody changed it",
        "Put the file back from a backup.",
    )
    AWAY = (
        "file gone",
        "in a file of the archive that cannot be read: it was deleted, or its folder is away, or its bucket is not set any more",
        "Put the file back, mount the folder again, or set the bucket that it lies in.",
    )
    EXPIRED = "expired", "in a file of the archive that was deleted when its time was over", ""
    ABSENT = (
        "not in the archive",
        "not in the archive: it came and went between two audits, came in late, or its file went long ago",
        "",
    )


@dataclass(frozen=True, slots=True)
class Part:
    """One file: every event of the lane from `low` (inclusive; None: from the beginning) to `high` (exclusive) that an
    audit read, or that was imported.

    `file`: where it lies, as it is reached. `digest`: the batch digest of its rows; `file_digest`: SHA-256 of its bytes, hex. `incarnation` and
    `mapping`: what it was read under. `read_to`: the first transaction number of the source that was not given out then;
    None: it has none. `is_gone`: it was deleted when its time was over. `is_elsewhere`: it lies in a bucket that is not the
    one that is set, so nobody knows how it is reached.
    """

    lane: str
    low: Coordinate | None
    high: Coordinate
    rows: int
    bytes: int
    digest: str
    file: str
    file_digest: str
    incarnation: str
    mapping: str
    read_to: int | None = None
    is_gone: bool = False
    is_elsewhere: bool = False


def part_unusable(part: Part, incarnation: str, mapping: str, read_to: int | None) -> Unusable | None:
    """Why the part serves no source of this incarnation and mapping, whatever its file holds; None: it may.

    `read_to`: the first transaction number that the source has not given out now.

    >>> part = Part("0", None, Coordinate(9), 1, 1, "", "f", "", "s1/1", "m", 700)
    >>> part_unusable(part, "s1/1", "m", 700) is None, part_unusable(part, "s1/2", "m", 900).value
    (True, 'of another incarnation')
    >>> part_unusable(part, "s1/1", "n", 900).value, part_unusable(part, "s1/1", "m", 699).value
    ('under another mapping', 'from before a restore')
    """
    if not incarnation or part.incarnation != incarnation:
        return Unusable.ELSEWHERE
    if part.read_to is not None and read_to is not None and read_to < part.read_to:
        return Unusable.WENT_BACK
    if part.mapping != mapping:
        return Unusable.OTHERWISE
    if part.is_gone:
        return Unusable.EXPIRED
    return Unusable.AWAY if part.is_elsewhere else None


def parts_following(parts: Iterable[Part], rows_at_most: int, bytes_at_most: int) -> list[list[Part]]:
    """The parts as they may be joined: each list of one lane, incarnation and mapping, each part beginning where the one before
    it ends, together no larger than this. What fits nowhere is alone in its list.

    >>> def part(low, high, rows=1):
    ...     ends = None if low is None else Coordinate(low), Coordinate(high)
    ...     return Part("0", *ends, rows, 1, "", f"{low}-{high}", "", "s1/1", "m")
    >>> [[one.file for one in run] for run in parts_following([part(5, 7), part(None, 3), part(3, 5), part(4, 6)], 9, 9)]
    [['None-3', '3-5', '5-7'], ['4-6']]
    >>> [len(run) for run in parts_following([part(None, 3, 5), part(3, 5, 5), part(5, 6, 4)], 9, 9)]
    [1, 2]
    """
    found: list[list[Part]] = []
    ending: dict[tuple[str, str, str, Coordinate], list[Part]] = {}
    for part in sorted(parts, key=lambda one: (one.lane, one.high)):
        of = (part.lane, part.incarnation, part.mapping)
        run = ending.pop((*of, part.low), None) if part.low is not None else None
        together = [*(run or ()), part]
        is_small = sum(one.rows for one in together) <= rows_at_most
        if run is not None and is_small and sum(one.bytes for one in together) <= bytes_at_most:
            run.append(part)
        else:
            run = [part]
            found.append(run)
        ending[(*of, part.high)] = run
    return found


def coordinate_before(at: Coordinate) -> Coordinate:
    """The highest coordinate below `at`: how a half-open end is told to a person.

    >>> coordinate_before(Coordinate(7, 1)), coordinate_before(Coordinate(8, INT64_MIN)).position
    (Coordinate(position=7, ordinal=0), 7)
    """
    if at.ordinal > INT64_MIN:
        return Coordinate(at.position, at.ordinal - 1)
    return Coordinate(at.position - 1, INT64_MAX)


def mapping_digest(kind: str, deciding: Mapping[str, Any]) -> str:
    """What a source's rows were read as: its kind, the options that decide, and the canonical form.

    >>> mapping_digest("k", {"filter": "a"}) == mapping_digest("k", {"filter": None})
    False
    """
    bound = {"kind": kind, "options": dict(deciding), "canonical": CANONICAL_VERSION}
    return hashlib.sha256(json.dumps(bound, sort_keys=True, default=str).encode()).hexdigest()


def unusable_says(refused: Mapping[str, int]) -> str:
    """Why the archive does not give what is gone, in sentences; "" where nothing is refused.

    >>> unusable_says({"altered": 2})[:60]
    '2 events are in a file of the archive that is not what was w'
    >>> unusable_says({})
    ''
    """
    said = []
    for one in Unusable:
        if count := refused.get(one.value, 0):
            said.append(f"{count:,} {'event is' if count == 1 else 'events are'} {one.means}.")
            said += [one.remedy] if one.remedy else []
    return " ".join(said)


def not_archived_says(above: str | None, because: str, lane: str = "") -> str:
    """What an audit read and could not bring to the archive. `above` None: all of it; `lane`: "" where there is but one.

    >>> not_archived_says("7", "its folder is full")
    'Not archived above 7, because its folder is full.'
    """
    start = "from the beginning on" if above is None else f"above {above}"
    return f"Not archived {start}{f' in lane {lane}' if lane else ''}, because {because}."


def sent_says(count: int) -> str:
    """How many of what a recovery sent came from the archive.

    >>> sent_says(2)
    'The content of 2 of them came from the archive.'
    """
    return f"The content of {count:,} of them came from the archive." if count else ""


def archived_says(count: int) -> str:
    """How many of what is sent come from the archive; "" where none does.

    >>> archived_says(1), archived_says(0)
    ('The content of 1 comes from the archive: the source does not hold it any more.', '')
    """
    if not count:
        return ""
    return f"The content of {count:,} comes from the archive: the source does not hold {'it' if count == 1 else 'them'} any more."
