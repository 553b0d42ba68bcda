"""Reads of what audits observed over time: one pipeline's for its page, the last day's of many for the overview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Subquery, Value
from django.db.models.functions import Coalesce

from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.history import SPANS, Bucket, Grain, Hour, Observed, Stretch, buckets, hours, strip
from recovery_api.domain.outcomes import WORST_FIRST, Status
from recovery_api.models import Observation, Pipeline

SPARK_SPAN, SPARK_BUCKETS = timedelta(hours=24), 24

COLUMNS = (
    *("at", "until", "status", "owed", "oldest_owed_seconds", "lag_events", "lag_seconds", "accepted_per_second"),
    *("hazards", "headroom", "headroom_seconds", "grain", "audits", "observed_seconds"),
)


@dataclass(frozen=True, slots=True)
class PipelineHistory:
    """One pipeline from `since` until `until`: the strip, and the buckets of the chart. `width`: of one bucket."""

    name: str
    span: str
    since: datetime
    until: datetime
    width: timedelta
    stretches: list[Stretch]
    buckets: list[Bucket]

    @property
    def is_empty(self) -> bool:
        return all(one.worst is None for one in self.buckets)


def history_get(pipeline: Pipeline, span: str, now: datetime) -> PipelineHistory:
    """`span`: one of SPANS. One query."""
    back, width = SPANS[span]
    since = now - back
    mine = Observation.objects.filter(pipeline=pipeline)
    before = mine.filter(at__lt=since).order_by("-at", "-id").values("at")[:1]
    reaching = mine.filter(at__gte=Coalesce(Subquery(before), Value(since)), at__lt=now).order_by("at", "id")
    rows = [_observed(row) for row in reaching.values_list(*COLUMNS)]
    return PipelineHistory(
        pipeline.name, span, since, now, width, strip(rows, since, now), buckets(rows, since, now, width)
    )


SPARKS = """
SELECT pipeline_id, extract(epoch FROM min(at) - %(since)s)::float8, extract(epoch FROM max(until) - %(since)s)::float8,
    sum(coalesce(least(observed_seconds, extract(epoch FROM until - at)), extract(epoch FROM until - at)))::float8,
    min(array_position(%(statuses)s::text[], status::text)), max(lag_events)
FROM (
    SELECT pipeline_id, at, until, observed_seconds, status, lag_events FROM recovery_api_observation
    WHERE pipeline_id = ANY(%(keys)s::bigint[]) AND at >= %(since)s AND at < %(now)s
    UNION ALL
    SELECT before.* FROM unnest(%(keys)s::bigint[]) AS key CROSS JOIN LATERAL (
        SELECT pipeline_id, at, until, observed_seconds, status, lag_events FROM recovery_api_observation
        WHERE pipeline_id = key AND at < %(since)s ORDER BY at DESC, id DESC LIMIT 1
    ) before
    WHERE before.until > %(since)s
) reaching
GROUP BY pipeline_id, date_bin(%(width)s, at, %(since)s)
"""
"""The worst of each hour, as domain.history.worst_of, and the observation that reaches into the first one."""


def fleet_sparks(pipeline_ids: Sequence[int], now: datetime) -> dict[int, list[Hour]]:
    """The last day of each, by the hour. One query, whatever their number; those of which nothing is known are left out."""
    width = SPARK_SPAN / SPARK_BUCKETS
    given = {"keys": list(pipeline_ids), "since": now - SPARK_SPAN, "now": now, "width": width}
    rows: dict[int, list[tuple[float, float, float, Status, int | None]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(SPARKS, {**given, "statuses": [one.value for one in WORST_FIRST]})
        for key, at, until, covered, rank, lag in cursor.fetchall():
            rows.setdefault(key, []).append((at, until, covered, WORST_FIRST[rank - 1], lag))
    return {key: hours(found, width.total_seconds(), SPARK_BUCKETS) for key, found in rows.items()}


def _observed(row: Sequence[Any]) -> Observed:
    given = dict(zip(COLUMNS, row, strict=True))
    headroom = Standing(given["headroom"]) if given["headroom"] else None
    return Observed(
        **{**given, "status": Status(given["status"]), "grain": Grain(given["grain"]), "headroom": headroom}
    )
