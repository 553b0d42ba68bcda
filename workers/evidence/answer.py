"""A verdict as the conformance cases spell it (`expect`): from counts and findings to lists of coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.verdicts import LaneCounts


def answer_make(
    counts: LaneCounts,
    findings: pa.Table,
    spell: Callable[[Coordinate], Any],
    event_at: Callable[[int], dict[str, Any]],
) -> dict[str, Any]:
    """The keys of `expect`, without the image's. `event_at`: op, key and content of the accepted entry with a number.

    `findings` of one lane: schemas.FINDING with committed order in `entry` (and `journal_entry`) of lost events and the
    place in the record in `entry` of accepted ones. Deltas come in committed order, duplicates by coordinate.
    """
    lost = findings.filter(pc.equal(findings["finding"], "lost"))
    delta = _ordered(lost.filter(lost["is_retained"]), "entry")
    owed = delta.filter(pc.invert(delta["is_acknowledged"]))
    in_journal = _ordered(lost.filter(lost["is_in_journal"]), "journal_entry")
    unjustified = findings.filter(pc.is_in(findings["finding"], pa.array(["premature", "unknown"])))
    acknowledged = lost.filter(lost["is_acknowledged"])
    is_hazard_free = unjustified.num_rows == 0 and counts.duplicate_payloads == 0

    def grade(rows: pa.Table) -> dict[str, Any]:
        complete = rows.num_rows == 0
        return {"lost": _spelled(rows, spell), "complete": complete, "exactly_once": complete and is_hazard_free}

    return {
        "coordinates_ascending": counts.coordinates_ascending,
        "premature": sorted(unjustified["entry"].to_pylist()),
        "duplicates": _duplicates(findings, spell, event_at),
        "hazard_free": is_hazard_free,
        "sink_delta": _spelled(delta, spell),
        "keyed_sink_delta": _spelled(delta.filter(pc.invert(delta["is_keyed_hidden"])), spell),
        "redrive_batch": _spelled(owed, spell),
        "acknowledged": [spell(coordinate) for coordinate in sorted(set(_coordinates(acknowledged)))],
        "retained": grade(delta),
        "journal": grade(in_journal),
        "floor_covered": counts.floor_uncovered == 0,
    }


def _duplicates(
    findings: pa.Table, spell: Callable[[Coordinate], Any], event_at: Callable[[int], dict[str, Any]]
) -> list[dict[str, Any]]:
    repeated = _ordered(findings.filter(pc.equal(findings["finding"], "duplicate")), "entry")
    rows = zip(
        _coordinates(repeated), repeated["entry"].to_pylist(), repeated["accepted_count"].to_pylist(), strict=True
    )
    return [
        {"coordinate": spell(coordinate), **event_at(entry), "count": count}
        for coordinate, entry, count in sorted(rows, key=lambda row: row[0])
    ]


def _ordered(rows: pa.Table, entry: str) -> pa.Table:
    """In committed order: by entry where it is given, else by coordinate."""
    if rows[entry].null_count:
        return rows.sort_by([("position", "ascending"), ("ordinal", "ascending")])
    return rows.take(pa.array(np.argsort(rows[entry].to_numpy(), kind="stable")))


def _coordinates(rows: pa.Table) -> list[Coordinate]:
    pairs = zip(rows["position"].to_pylist(), rows["ordinal"].to_pylist(), strict=True)
    return [Coordinate(position, ordinal) for position, ordinal in pairs]


def _spelled(rows: pa.Table, spell: Callable[[Coordinate], Any]) -> list[Any]:
    return [spell(coordinate) for coordinate in _coordinates(rows)]
