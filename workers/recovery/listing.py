"""What a person looks at of an evidence: its findings in order, and their groups by cause and contiguous coordinates.

One law: the evidence is read once more, part by part, never whole. The groups count everything; the listing may end.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.evidence_classes import ORDER, EvidenceClass
from recovery_api.domain.findings import ABSENCES, FindingWord
from recovery_api.domain.frontiers import coordinate_as_row
from recovery_api.domain.words import words
from recovery_api.services.findings import ListedFinding
from workers.evidence.read import Evidence
from workers.evidence.schemas import FINDING
from workers.evidence.store import FINDINGS, parts_read

RUNS_KEPT = 200
"""Runs of one cause that are kept for the screen; all are counted."""
BINS = 60
"""Into how many equal parts of its range a group is counted where it has more runs than are kept: none is left out."""

GROUPED = ["finding", "cause", "lane", "is_acknowledged", "is_altered"]

Place = tuple[str, int, int]


@dataclass(slots=True)
class Group:
    """All findings of one kind, cause and lane. A run ends where the next coordinate is not the next number.

    `is_altered`: lost, and the sink holds their coordinates with other content, so that nothing can be sent there.
    """

    finding: str
    cause: str
    lane: str
    is_acknowledged: bool
    is_altered: bool
    count: int = 0
    runs_count: int = 0
    runs: list[dict[str, Any]] = field(default_factory=list)
    bins: dict[int, dict[str, Any]] = field(default_factory=dict)
    _first: tuple[int, int] | None = None
    _last: tuple[int, int] | None = None
    _run: dict[str, Any] | None = None

    def add(self, positions: np.ndarray, ordinals: np.ndarray) -> None:
        """More of it, in coordinate order, after everything added before."""
        if not len(positions):
            return
        if self._first is None:
            self._first = (int(positions[0]), int(ordinals[0]))
        starts = np.flatnonzero(~_follows(positions, ordinals)) + 1
        cuts = [0, *starts.tolist(), len(positions)]
        for low, high in itertools.pairwise(cuts):
            first = (int(positions[low]), int(ordinals[low]))
            last = (int(positions[high - 1]), int(ordinals[high - 1]))
            self._extend(first, last, high - low)
        self.count += len(positions)

    def _extend(self, first: tuple[int, int], last: tuple[int, int], count: int) -> None:
        if self._last is not None and _is_next(self._last, first):
            if self._run is not None:
                self._run["last"], self._run["count"] = last, self._run["count"] + count
        else:
            self.runs_count += 1
            self._run = None
            if len(self.runs) < RUNS_KEPT:
                self._run = {"first": first, "last": last, "count": count}
                self.runs.append(self._run)
        self._last = last

    @property
    def is_cut(self) -> bool:
        """Whether it has more runs than are kept, so that it is counted by parts of its range as well."""
        return self.runs_count > len(self.runs)

    def add_binned(self, positions: np.ndarray, ordinals: np.ndarray) -> None:
        """The same rows again, in the same order, counted in equal parts of the range that the first time showed."""
        assert self._first is not None and self._last is not None
        low = self._first[0]
        width = (self._last[0] - low) // BINS + 1
        numbers = (positions.astype(np.uint64) - np.uint64(low % 2**64)) // np.uint64(width)  # a span may take 64 bits
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(positions)]
        for start, stop in itertools.pairwise(cuts):
            first = (int(positions[start]), int(ordinals[start]))
            kept = self.bins.setdefault(int(numbers[start]), {"first": first, "last": first, "count": 0})
            kept["last"] = (int(positions[stop - 1]), int(ordinals[stop - 1]))
            kept["count"] += stop - start

    def as_row(self, found: Evidence) -> dict[str, Any]:
        """For the audit's row: counts as text, coordinates as held and as the source spells them."""
        return {
            "finding": self.finding,
            "cause": self.cause,
            "lane": self.lane,
            "is_acknowledged": self.is_acknowledged,
            "is_altered": self.is_altered,
            "count": str(self.count),
            "runs_count": str(self.runs_count),
            "runs": [_run_as_row(found, run) for run in self.runs],
            "bins": [_run_as_row(found, self.bins[number]) for number in sorted(self.bins)],
        }


def _run_as_row(found: Evidence, run: dict[str, Any]) -> dict[str, Any]:
    return {
        "first": coordinate_as_row(Coordinate(*run["first"])),
        "last": coordinate_as_row(Coordinate(*run["last"])),
        "first_says": found.spell(Coordinate(*run["first"])),
        "last_says": found.spell(Coordinate(*run["last"])),
        "count": str(run["count"]),
    }


def groups_make(found: Evidence) -> list[dict[str, Any]]:
    """Every finding of the evidence, counted by cause and lane, with the contiguous runs of its coordinates."""
    groups: dict[tuple[Any, ...], Group] = {}
    for key, positions, ordinals in _grouped(found):
        groups.setdefault(key, Group(*key)).add(positions, ordinals)
    if any(group.is_cut for group in groups.values()):
        for key, positions, ordinals in _grouped(found):
            if groups[key].is_cut:
                groups[key].add_binned(positions, ordinals)
    order = {word: place for place, word in enumerate(words(FindingWord))}
    listed = sorted(
        groups.values(),
        key=lambda one: (order.get(one.finding, len(order)), one.is_acknowledged, one.is_altered, one.lane),
    )
    return [group.as_row(found) for group in listed]


def _grouped(found: Evidence) -> Iterator[tuple[tuple[Any, ...], np.ndarray, np.ndarray]]:
    """(group, positions, ordinals) of each part of the evidence, in coordinate order."""
    for table in _parts(found):
        is_hidden = pc.fill_null(table["is_keyed_hidden"], False)
        keyed = pa.table(
            {
                "finding": table["finding"],
                "cause": pc.fill_null(table["cause"], ""),
                "lane": table["lane"],
                "is_acknowledged": pc.fill_null(table["is_acknowledged"], False),
                "is_altered": pc.and_(pc.equal(table["finding"], FindingWord.LOST.value), is_hidden),
                "position": table["position"],
                "ordinal": table["ordinal"],
            }
        )
        for row in keyed.group_by(GROUPED).aggregate([]).to_pylist():
            mine = keyed.filter(_matches(keyed, row))
            yield tuple(row[name] for name in GROUPED), mine["position"].to_numpy(), mine["ordinal"].to_numpy()


def listing_rows(found: Evidence) -> Iterator[ListedFinding]:
    """The findings in the order of lane and coordinate, each with its evidence class."""
    unsent = _unsent(found)
    for table in _parts(found):
        classes = _classes(table, unsent)
        first = 0
        for batch in table.to_batches(max_chunksize=10_000):
            for row, evidence_class in zip(batch.to_pylist(), classes[first : first + len(batch)], strict=True):
                yield ListedFinding(
                    finding=row["finding"],
                    cause=row["cause"] or "",
                    evidence_class=evidence_class,
                    lane=row["lane"],
                    position=row["position"],
                    ordinal=row["ordinal"],
                    entry=row["entry"],
                    accepted_count=row["accepted_count"],
                    is_acknowledged=bool(row["is_acknowledged"]),
                    history_digest=row["history_digest"],
                    accepted_digest=row["accepted_digest"],
                )
            first += len(batch)


def classes_count(found: Evidence) -> dict[str, int]:
    """How many owed events of the evidence are of each class. Each is of exactly one, so they add up to what is lost."""
    unsent, counted = _unsent(found), collections.Counter[str]()
    for table in _parts(found):
        counted.update(one for one in _classes(table, unsent) if one)
    return dict(counted)


def _unsent(found: Evidence) -> set[Place]:
    """The coordinates that are left out of the batch because the sink cannot hold their content. Few."""
    excluded = found.spec.excluded
    if excluded is None:
        return set()
    return {(row["lane"], row["position"], row["ordinal"]) for row in excluded.to_pylist()}


def _classes(table: pa.Table, unsent: set[Place]) -> list[str]:
    """Why each event without an entry is, or is not, sent; empty for what was accepted. `batch_rows` sends the same.

    The order is that of domain.evidence_classes.ORDER: of several that fit, the first.
    """
    is_lost = _known(pc.equal(table["finding"], FindingWord.LOST.value))
    is_absent = _known(
        pc.and_(
            pc.equal(table["finding"], FindingWord.UNKNOWN.value),
            pc.is_in(table["cause"], value_set=pa.array(sorted(ABSENCES), table["cause"].type)),
        )
    )
    fits = {
        EvidenceClass.ACKNOWLEDGED: table["is_acknowledged"],
        EvidenceClass.TRIMMED: pa.array(is_absent),
        EvidenceClass.UNKNOWABLE: pc.invert(pc.or_(table["is_retained"], pc.fill_null(table["is_archived"], False))),
        EvidenceClass.ALTERED_AT_THE_SINK: table["is_keyed_hidden"],
        EvidenceClass.NOT_REPRESENTABLE: _among(table, unsent),
    }
    ordered = [one for one in ORDER if one in fits]
    conditions = [~(is_lost | is_absent), *(_known(fits[one]) for one in ordered)]
    words = ["", *(one.value for one in ordered)]
    chosen: list[str] = np.select(conditions, words, EvidenceClass.PROVABLY_MISSING.value).tolist()
    return chosen


def _among(table: pa.Table, places: set[Place]) -> pa.Array:
    if not places:
        return pa.array(np.zeros(table.num_rows, dtype=bool))
    columns = (table[name].to_pylist() for name in ("lane", "position", "ordinal"))
    return pa.array([place in places for place in zip(*columns, strict=True)], pa.bool_())


def _known(flags: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """The flags, with what is not known as no."""
    return np.asarray(pc.fill_null(flags, False).to_numpy(zero_copy_only=False), dtype=bool)


def _parts(found: Evidence) -> Iterator[pa.Table]:
    """The evidence part by part, in the order of its ranges, each in the order of its coordinates."""
    for _, table in parts_read(found.stored, FINDINGS, FINDING):
        if table.num_rows:
            yield table.sort_by([("position", "ascending"), ("ordinal", "ascending"), ("finding", "ascending")])


def _matches(table: pa.Table, row: dict[str, Any]) -> pa.Array:
    matched = pc.equal(table["finding"], row["finding"])
    for name in GROUPED[1:]:
        matched = pc.and_(matched, pc.equal(table[name], row[name]))
    return matched


def _follows(positions: np.ndarray, ordinals: np.ndarray) -> np.ndarray:
    """For each but the first: whether it is the next number after the one before it."""
    step = np.diff(ordinals)
    return (step == 1) | ((step == 0) & (positions[1:] - 1 == positions[:-1]))


def _is_next(before: tuple[int, int], after: tuple[int, int]) -> bool:
    step = after[1] - before[1]
    return step == 1 or (step == 0 and after[0] - 1 == before[0])
