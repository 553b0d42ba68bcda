"""Which committed payloads the record holds, and which accepted payloads were committed: row by row, in arrays.

Two rows meet when coordinate and payload digest are equal; in a reading narrowed to coordinates, when the coordinate
is. A payload gets one number, an *identity*, whichever side it lies on. Almost every committed coordinate is unique, so
an accepted row finds its committed row by one binary search and one comparison of 32 bytes; the rest (repeated
coordinates, altered and unknown payloads) is sorted by the whole payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workers.evidence.kernel.questions import Rows

CHUNK_ROWS = 1 << 18
DENSE_SLOTS_PER_ROW = 8


@dataclass(frozen=True)
class Met:
    """`history_accepted`, `journal_accepted`: the row's payload is in the record. `accepted_known`: its payload is in
    the journal. `repeated_rows`: accepted rows whose payload the record holds more than once, all of them, with
    `repeated_identity` beside. `repeated_coordinates`: history rows beyond the first at their coordinate.
    """

    history_accepted: np.ndarray
    journal_accepted: np.ndarray
    accepted_known: np.ndarray
    repeated_rows: np.ndarray
    repeated_identity: np.ndarray
    repeated_coordinates: int

    @property
    def unmet_rows(self) -> np.ndarray:
        """Accepted rows whose payload the journal does not hold."""
        return np.flatnonzero(~self.accepted_known)


@dataclass(frozen=True)
class Keys:
    """One whole number a coordinate, in coordinate order, the same number on every side."""

    history: np.ndarray
    journal: np.ndarray
    accepted: np.ndarray


def coordinate_keys(history: Rows, journal: Rows, accepted: Rows) -> Keys:
    """The position where no side has an ordinal; else both packed into 64 bits where they fit, else their rank."""
    sides = [history, accepted] if journal is history else [history, accepted, journal]
    if all(side.ordinal is None for side in sides):
        numbers = [side.position for side in sides]
    else:
        ordinals = [np.zeros(len(side), np.int64) if side.ordinal is None else side.ordinal for side in sides]
        numbers = _packed([side.position for side in sides], ordinals)
    return Keys(numbers[0], numbers[2] if len(numbers) == 3 else numbers[0], numbers[1])


def _packed(positions: list[np.ndarray], ordinals: list[np.ndarray]) -> list[np.ndarray]:
    full = [pair for pair in zip(positions, ordinals, strict=True) if len(pair[0])]
    if not full:
        return positions
    low = min(int(position.min()) for position, _ in full)
    high = max(int(position.max()) for position, _ in full)
    least = min(int(ordinal.min()) for _, ordinal in full)
    width = max(int(ordinal.max()) for _, ordinal in full) - least + 1
    if (high - low + 1) * width < 2**62:
        return [
            (position - low) * width + (ordinal - least) for position, ordinal in zip(positions, ordinals, strict=True)
        ]
    position, ordinal = np.concatenate(positions), np.concatenate(ordinals)
    order = np.lexsort((ordinal, position))
    is_new = np.ones(len(order), bool)
    is_new[1:] = (np.diff(position[order]) != 0) | (np.diff(ordinal[order]) != 0)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.cumsum(is_new)
    return np.split(rank, np.cumsum([len(side) for side in positions])[:-1])


def meet(history: Rows, journal: Rows, accepted: Rows, keys: Keys) -> Met:
    """The two sides met. `journal` may be `history` itself."""
    if history.words is None and journal is history and (met := _meet_dense(keys.history, keys.accepted)):
        return met
    others = [(keys.accepted, accepted.words)] + ([] if journal is history else [(keys.history, history.words)])
    journal_ids, (accepted_ids, *rest), count = _identities(keys.journal, journal.words, others)
    history_ids = rest[0] if rest else journal_ids
    times = np.bincount(accepted_ids, minlength=count)
    is_known = np.zeros(count, bool)
    is_known[journal_ids] = True
    repeated = np.flatnonzero(times[accepted_ids] > 1)
    return Met(
        history_accepted=times[history_ids] > 0,
        journal_accepted=times[journal_ids] > 0,
        accepted_known=is_known[accepted_ids],
        repeated_rows=repeated,
        repeated_identity=accepted_ids[repeated],
        repeated_coordinates=len(keys.history) - _distinct(keys.history),
    )


def _meet_dense(history: np.ndarray, accepted: np.ndarray) -> Met | None:
    """By coordinate alone, with one slot a coordinate; None where the coordinates lie too far apart for that."""
    if len(history) == 0:
        return None
    low, high = int(history.min()), int(history.max())
    span = high - low + 1
    if span > DENSE_SLOTS_PER_ROW * (len(history) + len(accepted)) + CHUNK_ROWS:
        return None
    is_committed, is_accepted = np.zeros(span, bool), np.zeros(span, bool)
    history_slot = history - low
    is_committed[history_slot] = True
    is_inside = None
    if len(accepted) and (int(accepted.min()) < low or int(accepted.max()) > high):
        is_inside = (accepted >= low) & (accepted <= high)
    slot = (accepted if is_inside is None else accepted[is_inside]) - low
    is_accepted[slot] = True
    known = is_committed[slot]
    if is_inside is None:
        accepted_known = known
    else:
        accepted_known = np.zeros(len(accepted), bool)
        accepted_known[is_inside] = known
    repeated = _repeated_slots(slot, is_accepted)
    if is_inside is not None:
        inside_rows = np.flatnonzero(is_inside)
        repeated = np.concatenate([inside_rows[repeated], _repeated_among(accepted, np.flatnonzero(~is_inside))])
        repeated.sort()
    arrived = is_accepted[history_slot]
    return Met(
        history_accepted=arrived,
        journal_accepted=arrived,
        accepted_known=accepted_known,
        repeated_rows=repeated,
        repeated_identity=accepted[repeated],
        repeated_coordinates=len(history) - int(np.count_nonzero(is_committed)),
    )


def _repeated_slots(slot: np.ndarray, is_accepted: np.ndarray) -> np.ndarray:
    """The rows that share their slot: each row writes its number there, and who does not find it back was not alone."""
    if len(slot) == np.count_nonzero(is_accepted):
        return np.empty(0, np.int64)
    last = np.empty(len(is_accepted), np.int32 if len(slot) < 2**31 else np.int64)
    last[slot] = np.arange(len(slot), dtype=last.dtype)
    overwritten = slot[last[slot] != np.arange(len(slot), dtype=last.dtype)]
    is_accepted_often = np.zeros(len(is_accepted), bool)
    is_accepted_often[overwritten] = True
    return np.flatnonzero(is_accepted_often[slot])


def _repeated_among(keys: np.ndarray, rows: np.ndarray) -> np.ndarray:
    _, inverse, times = np.unique(keys[rows], return_inverse=True, return_counts=True)
    return rows[times[inverse] > 1]


def _identities(
    key: np.ndarray, words: np.ndarray | None, others: Sequence[tuple[np.ndarray, np.ndarray | None]]
) -> tuple[np.ndarray, list[np.ndarray], int]:
    """A number for each payload: the reference's rows, the others' rows, and how many numbers there may be.

    1. Reference rows at a coordinate of their own take their row number.
    2. Another side's row at such a coordinate with an equal digest takes the same.
    3. All that is left is sorted by coordinate and digest together; equal neighbours share a number.
    """
    order = None if _is_sorted(key) else np.argsort(key, kind="stable")
    ordered = key if order is None else key[order]
    is_alone = np.ones(len(key), bool)
    if len(key) > 1:
        same = ordered[1:] == ordered[:-1]
        is_alone[1:] &= ~same
        is_alone[:-1] &= ~same
    ids = np.arange(len(key), dtype=np.int64)
    left: list[np.ndarray] = [np.flatnonzero(~is_alone) if order is None else order[~is_alone]]
    found: list[np.ndarray] = []
    for other_key, other_words in others:
        numbers = _find(ordered, order, is_alone, words, other_key, other_words)
        found.append(numbers)
        left.append(np.flatnonzero(numbers < 0))
    sides = [(key, words), *others]
    left_keys = np.concatenate([side[0][rows] for side, rows in zip(sides, left, strict=True)])
    left_words = None
    if words is not None:
        left_words = np.concatenate([side[1][rows] for side, rows in zip(sides, left, strict=True)])  # type: ignore[index]
    numbers = len(key) + _ranked(left_keys, left_words)
    parts = np.split(numbers, np.cumsum([len(rows) for rows in left])[:-1])
    for target, rows, part in zip([ids, *found], left, parts, strict=True):
        target[rows] = part
    return ids, found, len(key) + len(left_keys)


def _find(
    ordered: np.ndarray,
    order: np.ndarray | None,
    is_alone: np.ndarray,
    words: np.ndarray | None,
    key: np.ndarray,
    other_words: np.ndarray | None,
) -> np.ndarray:
    """For each of `key`'s rows the reference row it meets, or -1. Chunked, so that gathers stay small."""
    numbers = np.full(len(key), -1, np.int64)
    if len(ordered) == 0:
        return numbers
    for start in range(0, len(key), CHUNK_ROWS):
        part = key[start : start + CHUNK_ROWS]
        at = _search(ordered, part)
        hit = (ordered[at] == part) & is_alone[at]
        row = at if order is None else order[at]
        if words is not None and other_words is not None:
            hit &= (words[row] == other_words[start : start + CHUNK_ROWS]).all(axis=1)
        numbers[start : start + CHUNK_ROWS][hit] = row[hit]
    return numbers


def _search(ordered: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Where each of `part` stands in `ordered`, or would; asked in order, for random look-ups cost ten times as much."""
    if _is_sorted(part):
        at = np.searchsorted(ordered, part)
    else:
        order = np.argsort(part)
        at = np.empty(len(part), np.int64)
        at[order] = np.searchsorted(ordered, part[order])
    return np.minimum(at, len(ordered) - 1, out=at)


def _ranked(key: np.ndarray, words: np.ndarray | None) -> np.ndarray:
    """Dense numbers from 0, equal for equal (key, words)."""
    columns = [key] if words is None else [*words.T, key]
    order = np.lexsort(columns)
    is_new = np.zeros(len(key), bool)
    for column in columns:
        ordered = column[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    rank = np.empty(len(key), np.int64)
    rank[order] = np.cumsum(is_new)
    return rank


def first_at(few: np.ndarray, many: np.ndarray) -> np.ndarray:
    """For each key of `few` the first row of `many` that has it, or -1; sorts the few, not the many."""
    found = np.full(len(few), -1, np.int64)
    if len(few) == 0 or len(many) == 0:
        return found
    if _is_sorted(many):
        at = _search(many, few)
        return np.where(many[at] == few, at, found)
    wanted, inverse = np.unique(few, return_inverse=True)
    first = np.full(len(wanted), -1, np.int64)
    for start in reversed(range(0, len(many), CHUNK_ROWS)):
        part = many[start : start + CHUNK_ROWS]
        at = np.minimum(np.searchsorted(wanted, part), len(wanted) - 1)
        hit = np.flatnonzero(wanted[at] == part)[::-1]
        first[at[hit]] = start + hit
    return first[inverse]


def _distinct(key: np.ndarray) -> int:
    if len(key) < 2:
        return len(key)
    ordered = key if _is_sorted(key) else np.sort(key)
    return 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def _is_sorted(key: np.ndarray) -> bool:
    return len(key) < 2 or bool((key[1:] >= key[:-1]).all())
