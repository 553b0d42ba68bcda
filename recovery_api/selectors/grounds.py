"""What the control database remembers of the grounds of a source's frontiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from recovery_api.domain.frontiers import coordinate_from_row
from recovery_api.domain.grounds import Standing
from recovery_api.domain.kinds import kind_get
from recovery_api.models import Audit, Event, EventKind, Plan, Source

LOOKED_BACK = 200
"""How many audits and plans of a source are looked through for what was proven."""


def attested_by(source: Source, word: str | None = None) -> str:
    """Who gave the owner's word for this source, and when; "" where nobody did. `word`: the option; None: any by which a
    frontier is attested."""
    words = [word] if word else [option.name for option in kind_get(source.kind).options if option.is_word]
    if not any(source.options.get(one) for one in words):
        return ""
    about = {"end": "source", "end_id": str(source.pk)}
    kinds = (EventKind.END_REGISTERED, EventKind.END_CHANGED)
    told = Event.objects.filter(kind__in=kinds, data__contains=about).order_by("-id")
    for event in told:
        said = event.data.get("options") or event.data.get("after") or {}
        if any(said.get(one) for one in words):
            return f"{event.actor} on {event.at:%Y-%m-%d %H:%M} UTC"
    return f"{source.created_by} on {source.created_at:%Y-%m-%d %H:%M} UTC"


def proven_by_lane(source: Source) -> dict[str, tuple[Mapping[str, Any], datetime]]:
    """The furthest frontier of each lane that an audit or plan of this source found proven, as its row, and when first.

    Of the newest incarnation and catalogue alone: a frontier of another one is safe nowhere.
    """
    found: dict[str, tuple[Mapping[str, Any], datetime]] = {}
    for at, lane, row in _proven(source):
        if lane not in found:
            found[lane] = (row, at)
            continue
        best = found[lane][0]
        is_same = all(row[name] == best[name] for name in ("catalogue", "incarnation"))
        if is_same and coordinate_from_row(best["coordinate"]) <= coordinate_from_row(row["coordinate"]):
            found[lane] = (row, at)
    return found


def _proven(source: Source) -> Iterator[tuple[datetime, str, Mapping[str, Any]]]:
    """Newest first: when, lane and the safe frontier's row. Nothing of before a late row was found."""
    audits = Audit.objects.filter(pipeline__source=source).order_by("-finished_at")
    plans = Plan.objects.filter(pipeline__source=source, computed_at__isnull=False).order_by("-computed_at")
    told: list[tuple[datetime, str, Mapping[str, Any]]] = []
    for at, lanes, void_since in audits.values_list("finished_at", "lanes", "void_since")[:LOOKED_BACK]:
        for lane, row in lanes.items():
            safe = {**(row.get("safe_frontier") or {}), "late": row.get("late"), "is_void": void_since is not None}
            told.append((at, lane, {**safe, "says": safe.get("because", "")}))
    for at, pins in plans.values_list("computed_at", "pins")[:LOOKED_BACK]:
        for lane, safe in (pins.get("safe") or {}).items():
            told.append((at, lane, {**safe, "late": pins.get("late")}))
    for at, lane, found in sorted(told, key=lambda one: one[0], reverse=True):
        if found.get("late"):
            return
        is_proven = found.get("standing") == Standing.PROVEN and not found.get("is_void")
        if is_proven and found.get("coordinate") and found.get("incarnation"):
            yield at, lane, found
