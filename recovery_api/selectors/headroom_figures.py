"""The fleet by headroom: figures that were worked out before, as far as they still count, and the rest worked out now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Coalesce

from recovery_api.domain.headroom.live import Standing
from recovery_api.models import Event, HeadroomFigure, Pipeline
from recovery_api.selectors.ends import pipeline_list
from recovery_api.selectors.headroom import fleet_headroom

NEWEST = Event.objects.filter(pipeline=OuterRef("pk")).order_by("-id").values("id")[:1]


@dataclass(frozen=True, slots=True)
class Figure:
    """One pipeline's word, and by when to decide; None: no such moment is known."""

    standing: Standing
    decide_by: datetime | None


def fleet_figures(keys: Sequence[int], now: datetime) -> dict[int, Figure]:
    """By primary key: one query, and five for those that nothing was worked out for since they changed."""
    found = figures_standing(keys, now)
    missing = [key for key in keys if key not in found]
    if missing:
        live = fleet_headroom(list(pipeline_list().filter(pk__in=missing)), now)
        found |= {key: Figure(one.found.standing, one.found.decide_by) for key, one in live.items()}
    return found


def figures_standing(keys: Sequence[int], now: datetime) -> dict[int, Figure]:
    """Those that still count: nothing happened to the pipeline since, and no moment passed at which the word may change."""
    newest = Event.objects.filter(pipeline=OuterRef("pipeline_id")).order_by("-id").values("id")[:1]
    rows = (
        HeadroomFigure.objects.filter(worked_out_at__lte=now, holds_until__gt=now)
        .annotate(newest=Coalesce(Subquery(newest), 0))
        .filter(event_id=F("newest"))
        .values_list("pipeline_id", "standing", "decide_by")
    )
    wanted = set(keys)
    return {key: Figure(Standing(word), decide_by) for key, word, decide_by in rows if key in wanted}


def events_newest(keys: Sequence[int]) -> dict[int, int]:
    """The newest event of each; 0 where there is none."""
    asked = Pipeline.objects.filter(pk__in=keys).annotate(newest=Coalesce(Subquery(NEWEST), 0))
    return dict(asked.values_list("pk", "newest"))
