"""What a person looks at of an evidence: its findings in order, and their groups by cause and contiguous coordinates.

One law: the evidence is read once more, part by part, never whole. The groups count everything; the listing may end.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.frontiers import coordinate_as_row
from recovery_api.domain.plans import EvidenceClass
from recovery_api.services.findings import ListedFinding
from workers.spark.jobs.audit import Evidence
from workers.spark.ranges import parts_of

RUNS_KEPT = 200
"""Runs of one cause that are kept for the screen; all are counted."""

Place = tuple[str, int, int]


@dataclass(slots=True)
class Group:
    """All findings of one kind, cause and lane. A run ends where the next coordinate is not the next number."""

    finding: str
    cause: str
    lane: str
    is_acknowledged: bool
    count: int = 0
    runs_count: int = 0
    runs: list[dict[str, Any]] = field(default_factory=list)
    _last: tuple[int, int] | None = None
    _run: dict[str, Any] | None = None

    def add(self, positions: np.ndarray, ordinals: np.ndarray) -> None:
        """More of it, in coordinate order, after everything added before."""
        if not len(positions):
            return
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

    def as_row(self, found: Evidence) -> dict[str, Any]:
        """For the audit's row: counts as text, coordinates as held and as the source spells them."""
        return {
            "finding": self.finding,
            "cause": self.cause,
            "lane": self.lane,
            "is_acknowledged": self.is_acknowledged,
            "count": str(self.count),
            "runs_count": str(self.runs_count),
            "runs": [
                {
                    "first": coordinate_as_row(Coordinate(*run["first"])),
                    "last": coordinate_as_row(Coordinate(*run["last"])),
                    "first_says": found.spell(Coordinate(*run["first"])),
                    "last_says": found.spell(Coordinate(*run["last"])),
                    "count": str(run["count"]),
                }
                for run in self.runs
            ],
        }


def groups_make(found: Evidence) -> list[dict[str, Any]]:
    """Every finding of the evidence, counted by cause and lane, with the contiguous runs of its coordinates."""
    groups: dict[tuple[str, str, str, bool], Group] = {}
    for table in _parts(found):
        cause = pc.fill_null(table["cause"], "")
        keyed = table.append_column("group_cause", cause).select(
            ["finding", "group_cause", "lane", "is_acknowledged", "position", "ordinal"]
        )
        distinct = keyed.group_by(["finding", "group_cause", "lane", "is_acknowledged"]).aggregate([]).to_pylist()
        for row in distinct:
            key = (row["finding"], row["group_cause"], row["lane"], bool(row["is_acknowledged"]))
            group = groups.setdefault(key, Group(*key))
            mine = keyed.filter(_matches(keyed, row))
            group.add(mine["position"].to_numpy(), mine["ordinal"].to_numpy())
    order = {"premature": 0, "duplicate": 1, "lost": 2, "unknown": 3}
    listed = sorted(groups.values(), key=lambda one: (order.get(one.finding, 9), one.is_acknowledged, one.lane))
    return [group.as_row(found) for group in listed]


def listing_rows(found: Evidence) -> Iterator[ListedFinding]:
    """The findings in the order of lane and coordinate, each with its evidence class."""
    excluded = found.spec.excluded
    unsent: set[Place] = set()
    if excluded is not None:
        unsent = {(row["lane"], row["position"], row["ordinal"]) for row in excluded.to_pylist()}
    for table in _parts(found):
        for batch in table.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                yield ListedFinding(
                    finding=row["finding"],
                    cause=row["cause"] or "",
                    evidence_class=_class_of(row, unsent),
                    lane=row["lane"],
                    position=row["position"],
                    ordinal=row["ordinal"],
                    entry=row["entry"],
                    accepted_count=row["accepted_count"],
                    is_acknowledged=bool(row["is_acknowledged"]),
                    history_digest=row["history_digest"],
                    accepted_digest=row["accepted_digest"],
                )


def _class_of(row: dict[str, Any], unsent: set[Place]) -> str:
    """Why a lost event is, or is not, sent. Empty for what is not lost. The order is `batch_rows`'s."""
    if row["finding"] != "lost":
        return ""
    if row["is_acknowledged"]:
        return EvidenceClass.ACKNOWLEDGED
    if not row["is_retained"]:
        return EvidenceClass.UNKNOWABLE
    if row["is_keyed_hidden"]:
        return EvidenceClass.ALTERED_AT_THE_SINK
    if (row["lane"], row["position"], row["ordinal"]) in unsent:
        return EvidenceClass.NOT_REPRESENTABLE
    return EvidenceClass.PROVABLY_MISSING


def _parts(found: Evidence) -> Iterator[pa.Table]:
    """The evidence part by part, in the order of its ranges, each in the order of its coordinates."""
    for part in parts_of(found.directory):
        table = pq.read_table(part)
        if table.num_rows:
            yield table.sort_by([("position", "ascending"), ("ordinal", "ascending"), ("finding", "ascending")])


def _matches(table: pa.Table, row: dict[str, Any]) -> pa.Array:
    matched = pc.fill_null(pc.equal(table["is_acknowledged"], row["is_acknowledged"]), row["is_acknowledged"] is None)
    for name in ("finding", "group_cause", "lane"):
        matched = pc.and_(matched, pc.equal(table[name], row[name]))
    return matched


def _follows(positions: np.ndarray, ordinals: np.ndarray) -> np.ndarray:
    """For each but the first: whether it is the next number after the one before it."""
    step = np.diff(ordinals)
    return (step == 1) | ((step == 0) & (positions[1:] - 1 == positions[:-1]))


def _is_next(before: tuple[int, int], after: tuple[int, int]) -> bool:
    step = after[1] - before[1]
    return step == 1 or (step == 0 and after[0] - 1 == before[0])
