"""What a report says of single events: the files are read a second time, for the few events that are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format, coordinate_parse
from recovery_api.domain.counts import LaneCounts
from workers.evidence.differences import difference_says
from workers.evidence.files import EventFile, ReadOptions, event_at
from workers.evidence.kernel import LaneQuestion
from workers.evidence.kernel.block import ALTERED
from workers.evidence.sides import Side, side_load

REPEATS_SHOWN = 20
ALTERED_SHOWN = 5


@dataclass(frozen=True)
class Shown:
    """`files`: by end, each with how it is read."""

    files: Mapping[str, tuple[EventFile, ReadOptions]]
    spelling: Spelling
    is_only_lane: bool

    def shared(self, question: LaneQuestion, counts: LaneCounts) -> tuple[str, ...]:
        """Where several events share the frontier's coordinate, a position there says little."""
        if not counts.coordinates_repeated:
            return ()
        history = side_load(
            self.files["history"][0], self.spelling, None if self.is_only_lane else question.lane, (), False
        )
        at = history.position == question.frontier.position
        if history.ordinal is not None:
            at &= history.ordinal == question.frontier.ordinal
        count = int(at.sum())
        if count < 2:
            return ()
        spelled = coordinate_format(question.frontier, self.spelling)
        return (
            f"{count} events have the coordinate {spelled}: a relay's position there does not say which of them were "
            f"delivered, and the verdict tells them apart by their contents.",
        )

    def doubled(self, findings: pa.Table) -> Any:
        repeated = findings.filter(pc.equal(findings["finding"], "duplicate"))
        return self._at("accepted", set(repeated["entry"].to_pylist())).__getitem__

    def published(self, duplicates: list[dict[str, Any]], lane: str, spell: Callable[[Coordinate], Any]) -> None:
        """Says of doubled events how often their connector published them, where that was more than once."""
        again = {
            spell(coordinate_parse(str(written), self.spelling)): count
            for (of, written), count in self.files["history"][0].published_again.items()
            if written is not None and (self.is_only_lane or of == lane)
        }
        for event in duplicates:
            if event["coordinate"] in again:
                event["published"] = 1 + again[event["coordinate"]]

    def named(self, findings: pa.Table, spell: Callable[[Coordinate], Any]) -> tuple[str, ...]:
        """Lost events by coordinate and key, for coordinates alone do not tell them apart."""
        lost = findings.filter(pc.equal(findings["finding"], "lost")).slice(0, REPEATS_SHOWN)
        if lost["entry"].null_count or self.files["history"][0].has_entries:
            return ()
        rows = list(
            zip(lost["position"].to_pylist(), lost["ordinal"].to_pylist(), lost["entry"].to_pylist(), strict=True)
        )
        events = self._at("history", {row[2] for row in rows})
        return tuple(
            f"{spell(Coordinate(position, ordinal))} (key {events[entry].get('key')})"
            for position, ordinal, entry in rows
            if entry in events
        )

    def altered(self, findings: pa.Table, committed: Side, end: str) -> dict[int, str]:
        """In what the first altered entries differ from the event at their coordinate."""
        rows = findings.filter(pc.equal(findings["cause"], ALTERED)).slice(0, ALTERED_SHOWN).to_pylist()
        if self.files[end][0].has_entries:
            return {}
        places = {}
        for row in rows:
            at = committed.position == row["position"]
            if committed.ordinal is not None:
                at &= committed.ordinal == row["ordinal"]
            if len(found := np.flatnonzero(at)) == 1:
                places[row["entry"]] = int(committed.entry[found[0]])
        events, entries = self._at(end, set(places.values())), self._at("accepted", set(places))
        return {
            entry: difference_says(events[place], entries[entry])
            for entry, place in places.items()
            if place in events and entry in entries
        }

    def _at(self, end: str, places: set[int]) -> dict[int, dict[str, Any]]:
        file, options = self.files[end]
        return event_at(file.path, places, options, file.is_plain, file.header_lines)
