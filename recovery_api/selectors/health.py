"""What was last seen of workers, engine and broker, for the bar of every page: two queries, and no more said than was seen.

Workers say themselves that they are there. Engine and broker are looked at by the pager, which writes down when it last
reached each; the web process asks neither. What nobody looked at is not known, and never shown as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models.functions import Now

from recovery_api.domain.alerts.causes import Cause
from recovery_api.domain.work import QUEUES
from recovery_api.models import Upkeep, Worker
from recovery_api.selectors.alerts import EVALUATED, EVALUATED_WITHIN
from recovery_api.selectors.workers import START_A_WORKER, presence_of, since_says

START_A_PAGER = "Start one: manage.py pager."
WATCHED = {"Spark": Cause.NO_ENGINE, "broker": Cause.NO_BROKER}
"""What a person calls it, and by which cause it is told to be away."""


def reached_name(cause: Cause) -> str:
    """Under which name it is kept when the pager last reached what `cause` tells the absence of."""
    return f"reached {cause}"


@dataclass(frozen=True, slots=True)
class PartSeen:
    """`is_there` None: nobody looked. `says`: what was seen and when, in a sentence; `remedy` where something is wrong."""

    name: str
    is_there: bool | None
    says: str
    remedy: str = ""


def parts_seen() -> list[PartSeen]:
    """Workers, Spark and broker, by the control database's clock."""
    return [_workers(), *_watched()]


def _workers() -> PartSeen:
    newest = Worker.objects.order_by("-seen_at").annotate(now=Now())
    rows = list(newest.values_list("queues", "seen_at", "stopping_at", "now")[:200])
    if not rows:
        return PartSeen("worker", False, "Not seen in the last day.", START_A_WORKER)
    now = rows[0][3]
    presence = presence_of([row[:3] for row in rows], now)
    if presence.is_missing:
        return PartSeen("worker", False, f"Not seen since {_clock(rows[0][1])}.", START_A_WORKER)
    for queue in QUEUES:
        if lacks := presence.says(now, queue):
            return PartSeen("worker", False, lacks, START_A_WORKER)
    many = "1 worker" if presence.count == 1 else f"{presence.count} workers"
    return PartSeen("worker", True, f"{many}, last heard of {since_says(now - rows[0][1])} ago.")


def _watched() -> list[PartSeen]:
    names = [EVALUATED, *(reached_name(cause) for cause in WATCHED.values())]
    rows = list(Upkeep.objects.filter(name__in=names).annotate(now=Now()).values_list("name", "done_at", "now"))
    at = {name: moment for name, moment, _ in rows}
    now = rows[0][2] if rows else None
    return [_of_pager(name, at.get(reached_name(cause)), at, now) for name, cause in WATCHED.items()]


def _of_pager(name: str, reached_at: datetime | None, at: Mapping[str, datetime], now: datetime | None) -> PartSeen:
    if now is not None and reached_at is not None and abs(now - reached_at) <= EVALUATED_WITHIN:
        return PartSeen(name, True, f"Reached by the pager {since_says(now - reached_at)} ago.")
    seen = "Never seen" if reached_at is None else f"Not seen since {_clock(reached_at)}"
    is_looked_at = now is not None and EVALUATED in at and abs(now - at[EVALUATED]) <= EVALUATED_WITHIN
    if not is_looked_at:
        return PartSeen(name, None, f"{seen}: nobody looks, because no pager runs.", START_A_PAGER)
    if reached_at is None:
        return PartSeen(name, None, "Never seen by the pager.", "See that the pager is told where it is.")
    return PartSeen(name, False, f"{seen}, by the pager.", "See that it is up.")


def _clock(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
