"""Headroom worked out ahead, for lists of many pipelines: after each audit and recovery, and by the sweep."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from recovery_api.models import HeadroomFigure, Pipeline
from recovery_api.selectors.ends import pipeline_list
from recovery_api.selectors.headroom import PipelineHeadroom, fleet_headroom
from recovery_api.selectors.headroom_figures import events_newest, figures_standing

SWEPT_AT_ONCE = 200
"""So many one sweep works out at most: some milliseconds each."""


def headroom_keep(found: Iterable[tuple[Pipeline, PipelineHeadroom]], events: dict[int, int]) -> None:
    """Keeps what was worked out. `events`: the newest event of each, read before the rest was."""
    rows = [
        HeadroomFigure(
            pipeline=pipeline,
            standing=one.found.standing.value,
            decide_by=one.found.decide_by,
            event_id=events.get(pipeline.pk, 0),
            worked_out_at=one.now,
            holds_until=one.holds_until,
        )
        for pipeline, one in found
    ]
    HeadroomFigure.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["pipeline"],
        update_fields=["standing", "decide_by", "event_id", "worked_out_at", "holds_until"],
    )


def headroom_sweep(now: datetime) -> int:
    """Works out those whose figure does not count any more; how many. Two sweeps at once keep the same."""
    keys = list(pipeline_list().values_list("pk", flat=True))
    standing = figures_standing(keys, now)
    lapsed = [key for key in keys if key not in standing][:SWEPT_AT_ONCE]
    if not lapsed:
        return 0
    events = events_newest(lapsed)
    pipelines = list(pipeline_list().filter(pk__in=lapsed))
    found = fleet_headroom(pipelines, now)
    headroom_keep([(one, found[one.pk]) for one in pipelines], events)
    return len(pipelines)
