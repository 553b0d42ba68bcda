"""The history is written with the audit it tells of, and thinned by the sweep. Nothing else writes it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import F, Value
from django.db.models.functions import Greatest

from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.headroom.observed import LEAST_INTERVAL
from recovery_api.domain.history import Grain, counts_until, thin_before
from recovery_api.domain.outcomes import WORST_FIRST
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.domain.schedules import cadence_of, due_unanswered
from recovery_api.domain.statuses import Decision, status_decide
from recovery_api.models import Audit, AuditStatus, Observation, Pipeline, Schedule, Sink
from recovery_api.selectors.audits import audit_readings
from recovery_api.selectors.headroom import pipeline_headroom


def observation_record(audit: Audit) -> Observation:
    """What `audit` observed, in its transaction, after what it taught the schedule and the ledger.

    The pipeline's row is locked there, so two audits that end at once are told one after the other.
    """
    pipeline, at = audit.pipeline, audit.record_read_at
    headroom = pipeline_headroom(pipeline, at)
    schedule = Schedule.objects.filter(pk=pipeline.pk).first()
    waiting_since = schedule.waiting_since if schedule else None
    is_told = bool(audit.lanes)
    owed = _owed(audit) if is_told else None
    decided = _decided(pipeline, at)
    until = _until(pipeline, schedule, at, getattr(decided.reading, "evidence_until", None))
    mine = Observation.objects.filter(pipeline=pipeline)
    following = mine.filter(at__gt=at).order_by("at").values_list("at", flat=True).first()
    mine.filter(at__lte=at, until__gt=at, grain=Grain.AUDIT).update(until=at)
    oldest = headroom.oldest_owed_at if owed else None
    left = headroom.found.left
    return Observation.objects.create(
        pipeline=pipeline,
        at=at,
        until=until if following is None else min(until, following),
        status=decided.status.value,
        owed=owed,
        oldest_owed_seconds=_age(oldest, at),
        lag_events=None if owed is None else owed + audit.suspected_count,
        lag_seconds=(0 if waiting_since is None else _age(waiting_since, at)) if is_told and schedule else None,
        accepted_per_second=_accepted_per_second(audit) if is_told else None,
        hazards=audit.premature_count + audit.duplicate_count if is_told else None,
        headroom=headroom.found.standing.value,
        headroom_seconds=None if left is None else int(left.total_seconds()),
    )


def observations_end(pipelines: Collection[Pipeline], now: datetime) -> None:
    """What was observed of these pipelines counts no longer: the verdicts are void. What was told before stays told."""
    standing = Observation.objects.filter(pipeline__in=pipelines, until__gt=now)
    standing.update(until=Greatest(F("at"), Value(now)))


def history_thin(now: datetime, kept: timedelta) -> int:
    """How many rows went: audits of past days became hours, old hours days, and days older than `kept` were forgotten.

    Two at once do each interval once: a row is deleted by one of them, and what it deleted is what that one writes.
    """
    gone = 0
    with transaction.atomic():
        gone += _merge(Grain.AUDIT, Grain.HOUR, thin_before(now, Grain.HOUR))
        gone += _merge(Grain.HOUR, Grain.DAY, thin_before(now, Grain.DAY))
        gone += Observation.objects.filter(at__lt=now - kept).delete()[0]
    return gone


MERGE = """
WITH thinned AS (
    DELETE FROM recovery_api_observation WHERE grain = %(fine)s AND at < %(before)s RETURNING *
), merged AS (
    INSERT INTO recovery_api_observation (
        pipeline_id, grain, at, until, audits, observed_seconds, status, owed, oldest_owed_seconds, lag_events, lag_seconds,
        accepted_per_second, hazards, headroom, headroom_seconds
    )
    SELECT pipeline_id, %(grain)s, min(at), max(until), sum(audits),
        sum(coalesce(least(observed_seconds, extract(epoch FROM until - at)), extract(epoch FROM until - at))),
        (%(statuses)s::text[])[min(array_position(%(statuses)s::text[], status::text))],
        max(owed), max(oldest_owed_seconds), max(lag_events), max(lag_seconds), min(accepted_per_second), max(hazards),
        coalesce((%(headrooms)s::text[])[min(array_position(%(headrooms)s::text[], nullif(headroom, '')::text))], ''),
        min(headroom_seconds)
    FROM thinned
    GROUP BY pipeline_id, date_trunc(%(grain)s, at AT TIME ZONE 'UTC')
    RETURNING 1
)
SELECT (SELECT count(*) FROM thinned) - (SELECT count(*) FROM merged)
"""
"""As domain.history.worst_of, for every pipeline at once. A test holds the two together."""


def _merge(fine: Grain, grain: Grain, before: datetime) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            MERGE,
            {
                "fine": fine.value,
                "grain": grain.value,
                "before": before,
                "statuses": [one.value for one in WORST_FIRST],
                "headrooms": [one.value for one in Standing],
            },
        )
        (gone,) = cursor.fetchone()
    return int(gone)


def _owed(audit: Audit) -> int:
    """Lost, and nobody acknowledged it."""
    if audit.status == AuditStatus.ACKNOWLEDGED:
        return 0
    taken_out = sum(int((lane.get("counts") or {}).get("acknowledged") or 0) for lane in audit.lanes.values())
    return max(audit.lost_count - taken_out, 0)


def _decided(pipeline: Pipeline, at: datetime) -> Decision:
    """The word that stands of the readings after this one, as the pipeline's status has it while nothing runs."""
    stale_after = timedelta(seconds=pipeline_options_parse(pipeline.options)["stale_after_seconds"])
    readings = [reading for _, reading in audit_readings([pipeline.pk])]
    is_restored = Sink.objects.filter(pk=pipeline.sink_id, restored_at__isnull=False).exists()
    restored = "" if is_restored else None
    return status_decide(readings, None, now=at, stale_after=stale_after, restored=restored)


def _until(pipeline: Pipeline, schedule: Schedule | None, at: datetime, evidence_until: datetime | None) -> datetime:
    options = pipeline_options_parse(pipeline.options)
    cadence = cadence_of(options)
    due = due_unanswered(schedule.next_due_at, schedule.due_at, at, str(pipeline.pk), cadence) if schedule else None
    stale_after = timedelta(seconds=options["stale_after_seconds"])
    return counts_until(at, stale_after, None if due is None else due + cadence.period, evidence_until)


def _accepted_per_second(audit: Audit) -> float | None:
    """Between this audit and the one of its sort before it. None: there is none, or the record holds fewer than then."""
    before = Audit.objects.filter(
        pipeline=audit.pipeline_id,
        is_scheduled=audit.is_scheduled,
        record_read_at__lt=audit.record_read_at,
        void_since__isnull=True,
    ).exclude(lanes={})
    found = before.order_by("-record_read_at").values_list("record_read_at", "accepted_count").first()
    if found is None:
        return None
    seconds = (audit.record_read_at - found[0]).total_seconds()
    came = audit.accepted_count - found[1]
    return came / seconds if came >= 0 and seconds >= LEAST_INTERVAL.total_seconds() else None


def _age(since: datetime | None, at: datetime) -> int | None:
    return None if since is None else max(int((at - since).total_seconds()), 0)
