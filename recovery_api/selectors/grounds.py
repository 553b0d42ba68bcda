"""What the control database remembers of the grounds of a source's frontiers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connection

from recovery_api.domain.grounds import Standing
from recovery_api.domain.kinds import kind_get
from recovery_api.models import Event, EventKind, Source

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

    Of the newest incarnation and catalogue alone: a frontier of another one is safe nowhere. The database chooses: a
    lane of 200 audits is one row here, and not all that they say of it.
    """
    given = {"source": source.pk, "proven": Standing.PROVEN.value, "most": LOOKED_BACK}
    with connection.cursor() as cursor:
        cursor.execute(FURTHEST, given)
        return {lane: (json.loads(row), at) for lane, row, at in cursor.fetchall()}


FURTHEST = """
WITH audit AS (
    SELECT audit.id, finished_at AS at, lanes, void_since IS NULL AS counts
    FROM recovery_api_audit audit JOIN recovery_api_pipeline pipeline ON pipeline.id = audit.pipeline_id
    WHERE pipeline.source_id = %(source)s ORDER BY finished_at DESC LIMIT %(most)s
), plan AS (
    SELECT plan.id, computed_at AS at, COALESCE(NULLIF(pins -> 'safe', 'null'), '{}') AS lanes, pins -> 'late' AS late
    FROM recovery_api_plan plan JOIN recovery_api_pipeline pipeline ON pipeline.id = plan.pipeline_id
    WHERE pipeline.source_id = %(source)s AND computed_at IS NOT NULL ORDER BY computed_at DESC LIMIT %(most)s
), told AS MATERIALIZED (
    SELECT id, at, lane, counts, row -> 'late' AS late, safe ->> 'standing' AS standing, safe ->> 'incarnation' AS incarnation,
        COALESCE(safe ->> 'catalogue', '') AS catalogue, safe -> 'coordinate' AS reached
    FROM audit CROSS JOIN LATERAL jsonb_each(lanes) AS of_lane (lane, row)
        CROSS JOIN LATERAL (SELECT row -> 'safe_frontier') AS found (safe)
    UNION ALL
    SELECT id, at, lane, true, late, safe ->> 'standing', safe ->> 'incarnation', COALESCE(safe ->> 'catalogue', ''),
        safe -> 'coordinate'
    FROM plan CROSS JOIN LATERAL jsonb_each(lanes) AS of_lane (lane, safe)
), proven AS (
    -- nothing of before a late row was found, nor of that reading itself
    SELECT *, (reached ->> 'position')::bigint AS position, (reached ->> 'ordinal')::bigint AS ordinal FROM told
    WHERE counts AND standing = %(proven)s AND incarnation <> '' AND jsonb_typeof(reached) = 'object'
        AND at > COALESCE((SELECT max(at) FROM told WHERE late NOT IN ('null', '""', '[]')), '-infinity')
), newest AS (
    SELECT DISTINCT ON (lane) lane, incarnation, catalogue FROM proven ORDER BY lane, at DESC
), furthest AS MATERIALIZED (
    SELECT DISTINCT ON (lane) id, lane, at FROM proven JOIN newest USING (lane, incarnation, catalogue)
    ORDER BY lane, position DESC, ordinal DESC, at
)
SELECT lane, safe || jsonb_build_object('says', COALESCE(safe -> 'because', '""')), at
FROM furthest JOIN (
    SELECT id, lane, row -> 'safe_frontier' AS safe
    FROM audit CROSS JOIN LATERAL jsonb_each(lanes) AS of_lane (lane, row) WHERE id IN (SELECT id FROM furthest)
) AS said USING (id, lane)
UNION ALL
SELECT lane, safe, at
FROM furthest JOIN (
    SELECT id, lane, safe
    FROM plan CROSS JOIN LATERAL jsonb_each(lanes) AS of_lane (lane, safe) WHERE id IN (SELECT id FROM furthest)
) AS said USING (id, lane)
"""
