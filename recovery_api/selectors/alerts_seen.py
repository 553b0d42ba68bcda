"""What is observed now, from what the control database holds. No end is asked.

Few queries, whatever the number of pipelines: a few columns of each, what stands of its audits, the newest of its audits by index.
"""

from __future__ import annotations

import functools
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Exists, Max, OuterRef, Subquery

from recovery_api.domain.alerts.causes import Cause
from recovery_api.domain.alerts.ends import (
    DrillSeen,
    Reached,
    SinkNow,
    installation_observations,
    sink_observations,
)
from recovery_api.domain.alerts.evaluation import Observed
from recovery_api.domain.alerts.pipelines import Look, PipelineNow, ReadingSeen, RunNow, observations
from recovery_api.domain.errors import FencepostError
from recovery_api.domain.grounds import Standing as Ground
from recovery_api.domain.headroom.seen import end_seen_from_row
from recovery_api.domain.kinds import kind_get, points_of
from recovery_api.domain.outcomes import Outcome, Status
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.domain.schedules import Cadence, cadence_of
from recovery_api.domain.statuses import RecordReading
from recovery_api.models import (
    LIVE_STATES,
    Audit,
    Drill,
    DrillState,
    Intent,
    IntentAction,
    Pipeline,
    Recovery,
    RecoveryState,
    Sink,
    Wanted,
)
from recovery_api.selectors.freezes import freezes_standing
from recovery_api.selectors.headroom_figures import Figure
from recovery_api.selectors.lanes import lanes_of
from recovery_api.selectors.schedules import overdue_of
from recovery_api.selectors.workers import worker_presence

logger = logging.getLogger(__name__)

LOOKS = 6
"""So many of the newest audits of each pipeline are compared."""
ENDPOINT = re.compile(r"^.* at (.+?)(?: as .*)?$")
"""Database, host and role, as the connectors name an end: host and port are what several pipelines share."""

RUN = (
    *("id", "created_at", "moved_at", "state", "wanted", "problem__text", "outcome", "finished_at", "says"),
    *("progress__holds_before",),
)
OWN = (
    *("pk", "name", "options", "source__name", "source__kind", "source__options"),
    *("sink__name", "sink__kind", "sink__options", "delivery__name", "delivery__kind", "delivery__options"),
    *("schedule__next_due_at", "schedule__due_at", "schedule__waiting_since"),
)


def alerts_seen(
    now: datetime,
    figures: Mapping[int, Figure],
    reached: Mapping[Cause, Reached],
    newest_kit: int | None,
) -> list[Observed]:
    """Every observation that can be made now. `figures`: headroom by pipeline, of those it is known of. `reached`: what the pager
    could reach; `newest_kit`: the version that this release brings."""
    pipelines = list(_pipelines(now, figures))
    seen = [one for pipeline in pipelines for one in observations(pipeline, now)]
    seen += [one for sink in _sinks() for one in sink_observations(sink, newest_kit, now)]
    presence = worker_presence(now)
    is_waited_for = any(one.is_scheduled for one in pipelines) or Intent.objects.filter(state__in=LIVE_STATES).exists()
    says = presence.says(now) if presence.is_missing else None
    return [*seen, *installation_observations(says, is_waited_for, reached, now)]


def _pipelines(now: datetime, figures: Mapping[int, Figure]) -> Iterator[PipelineNow]:
    newest = Recovery.objects.filter(pipeline=OuterRef("pk")).order_by("-created_at")
    of_run = {f"run_{name}": Subquery(newest.values(name)[:1]) for name in RUN}
    rows = list(Pipeline.objects.filter(retired_at__isnull=True).annotate(**of_run).values(*OWN, *of_run))
    keys = [row["pk"] for row in rows]
    readings, looks = _readings(), _looks(keys)
    frozen = set(freezes_standing().values_list("pipeline_id", flat=True))
    beats = _beats([row["run_id"] for row in rows if row["run_id"] and row["run_finished_at"] is None])
    readable = [row for row in rows if _is_readable(row)]
    overdue = {row["pk"]: _overdue(row, readings.get(row["pk"], []), now) for row in readable}
    failures = _failures([key for key, since in overdue.items() if since is not None])
    for row in readable:
        options, key = _options(row), row["pk"]
        cadence: Cadence = cadence_of(options)
        mine, figure, failure = readings.get(key, []), figures.get(key), failures.get(key, {})
        yield PipelineNow(
            key=key,
            source=end_named(row["source__name"], row["source__kind"], row["source__options"]),
            sink=_sink_named(row),
            period=cadence.period * (1 - cadence.jitter),
            readings=mine,
            run=_run(row, beats, is_frozen=None in frozen or key in frozen),
            sla=cadence.sla,
            waiting_since=row["schedule__waiting_since"],
            last_read_at=max((one.reading.read_at for one in mine), default=None),
            is_scheduled=cadence.is_on,
            overdue_since=overdue[key],
            failure=str(failure.get("text") or ""),
            failed_end=endpoint_named(failure),
            headroom=figure.standing if figure else None,
            decide_by=figure.decide_by if figure else None,
            looks=looks.get(key, []),
            most_table_bytes=options["alert_table_bytes"],
            least_slot_room_bytes=options["alert_slot_room_bytes"],
        )


def _is_readable(row: Mapping[str, Any]) -> bool:
    """Whether this release understands how it is configured. One that it does not keeps no other from being looked at."""
    try:
        _options(row)
    except FencepostError as error:
        logger.warning("pipeline %s is not looked at for alerts: %s", row["name"], error)
        return False
    return True


def end_named(name: str, kind: str, options: Mapping[str, Any]) -> str:
    """How an end is named in a group: by the reference of its connection, which those in one place share; else by its name."""
    reference = next((options.get(one) for one in _references(kind) if options.get(one)), None)
    return str(reference or name)


def endpoint_named(error: Mapping[str, Any]) -> str:
    """Host and port of the end that an error names; "" where it names none."""
    told = str((error.get("data") or {}).get("endpoint") or "")
    found = ENDPOINT.match(told)
    return (found[1] if found else told)[:300]


@functools.lru_cache(maxsize=256)
def _references(kind: str) -> tuple[str, ...]:
    return tuple(option.name for option in kind_get(kind).options if option.type == "reference")


def _sink_named(row: Mapping[str, Any]) -> str:
    what = "sink" if row["delivery__name"] is None else "delivery"
    return end_named(row[f"{what}__name"], row[f"{what}__kind"], row[f"{what}__options"])


def _options(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return pipeline_options_parse(row["options"])


def _readings() -> dict[int, list[ReadingSeen]]:
    """What stands of every pipeline in use."""
    found: dict[int, list[ReadingSeen]] = {}
    standing = Audit.objects.filter(is_standing=True, void_since__isnull=True, pipeline__retired_at__isnull=True)
    columns = ("pipeline_id", "pk", "record_read_at", "status", "frontier", "says", "evidence_until", "recovery_id")
    counts = ("lost_count", "premature_count", "duplicate_count")
    for key, pk, read_at, status, frontier, says, until, recovery, lost, premature, doubled in standing.values_list(
        *columns, *counts
    ):
        reading = RecordReading(read_at, Status(status), frontier, says, until)
        owed = 0 if status == Status.ACKNOWLEDGED else lost
        found.setdefault(key, []).append(ReadingSeen(str(pk), reading, owed, premature + doubled, recovery is not None))
    return found


def _overdue(row: Mapping[str, Any], readings: Sequence[ReadingSeen], now: datetime) -> datetime | None:
    due = (row["schedule__next_due_at"], row["schedule__due_at"])
    return overdue_of(str(row["pk"]), *due, _options(row), [one.reading for one in readings], now)


NEWEST = f"""
SELECT key, audit.id, record_read_at, is_scheduled, obligation_count, accepted_count, lost_count, status,
    {lanes_of("lanes", "late", "safe_frontier", "above_frontier_owed")}, ends_seen -> 'source'
FROM unnest(%s::bigint[]) AS key CROSS JOIN LATERAL (
    SELECT * FROM recovery_api_audit WHERE pipeline_id = key ORDER BY finished_at DESC LIMIT %s
) audit
WHERE void_since IS NULL AND status <> 'unknown' AND lanes <> '{{}}'
ORDER BY key, record_read_at DESC
"""  # nosec B608 # names of our own columns, values are parameters


def _looks(keys: Sequence[int]) -> dict[int, list[Look]]:
    found: dict[int, list[Look]] = {}
    with connection.cursor() as cursor:
        cursor.execute(NEWEST, [list(keys), LOOKS])
        for key, pk, read_at, is_scheduled, obligations, accepted, lost, status, lanes, source in cursor.fetchall():
            lanes = _loaded(lanes)
            owed = 0 if status == Status.ACKNOWLEDGED else lost
            proven, unproven = _grounds(lanes)
            look = Look(
                audit=str(pk),
                read_at=read_at,
                is_scheduled=is_scheduled,
                obligations=obligations,
                accepted=accepted,
                waiting=owed + sum(int(one.get("above_frontier_owed") or 0) for one in lanes.values()),
                proven=proven,
                unproven=unproven,
                source=end_seen_from_row(_loaded(source) if source else None),
            )
            found.setdefault(key, []).append(look)
    return found


def _loaded(value: Any) -> Any:
    """A cursor of Django's leaves jsonb as text."""
    return json.loads(value) if isinstance(value, str) else value


def _grounds(lanes: Mapping[str, Mapping[str, Any]]) -> tuple[frozenset[str], dict[str, str]]:
    """The lanes whose frontier was proven, and of the others why theirs is not."""
    proven, unproven = set(), {}
    for lane, row in lanes.items():
        safe = row.get("safe_frontier") or {}
        if row.get("late"):
            unproven[lane] = f"a row came in at or below a frontier that was taken to be safe ({row['late']})."
        elif safe.get("standing") == Ground.PROVEN:
            proven.add(lane)
        elif safe.get("standing"):
            unproven[lane] = f"{safe.get('because') or 'its frontier'} ({safe['standing']}, not proven)."
    return frozenset(proven), unproven


def _run(row: Mapping[str, Any], beats: Mapping[Any, datetime], is_frozen: bool) -> RunNow | None:
    """`is_frozen`: people stopped its sending, so that it waits where it holds."""
    if row["run_id"] is None:
        return None
    signs = [row["run_created_at"], row["run_moved_at"], beats.get(row["run_id"])]
    return RunNow(
        id=str(row["run_id"]),
        created_at=row["run_created_at"],
        moved_at=max(sign for sign in signs if sign is not None),
        step=RecoveryState(row["run_state"]).label.lower(),
        is_paused=row["run_progress__holds_before"] is not None and (is_frozen or row["run_wanted"] == Wanted.PAUSE),
        problem=str(row["run_problem__text"] or ""),
        outcome=Outcome(row["run_outcome"]) if row["run_outcome"] else None,
        finished_at=row["run_finished_at"],
        says=row["run_says"],
    )


def _beats(recoveries: Sequence[Any]) -> dict[Any, datetime]:
    """When work on these recoveries was last seen to make progress: a heartbeat beats only while it does."""
    live = Intent.objects.filter(recovery_id__in=recoveries, state__in=LIVE_STATES, heartbeat_at__isnull=False)
    return dict(live.values_list("recovery_id").annotate(at=Max("heartbeat_at")).order_by())


def _failures(keys: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    """The error of the newest audit that was asked for, of each pipeline where it has one."""
    if not keys:
        return {}
    asked = Intent.objects.filter(pipeline_id__in=keys, action=IntentAction.AUDIT.value)
    rows = asked.order_by("pipeline_id", "-created_at").distinct("pipeline_id").values_list("pipeline_id", "error")
    return {key: error for key, error in rows if error}


def _sinks() -> Iterator[SinkNow]:
    """Those that serve a pipeline in use, as its record or its delivery."""
    used = Pipeline.objects.filter(retired_at__isnull=True)
    serves = Exists(used.filter(sink=OuterRef("pk"))) | Exists(used.filter(delivery=OuterRef("pk")))
    drills = {
        one.sink_id: one
        for one in Drill.objects.exclude(state__in=[DrillState.REQUESTED, DrillState.NOT_APPLICABLE])
        .order_by("sink_id", "-finished_at")
        .distinct("sink_id")
        .only("id", "sink_id", "state", "says", "finished_at")
    }
    for sink in Sink.objects.filter(serves, retired_at__isnull=True):
        drill = drills.get(sink.pk)
        facts = (sink.report or {}).get("facts") or {}
        version = facts.get("kit_version")
        hours = sink.drill_every_hours
        yield SinkNow(
            key=sink.pk,
            end=end_named(sink.name, sink.kind, sink.options),
            restored_at=sink.restored_at,
            restored_says=sink.restored_says,
            tested_at=sink.tested_at,
            weaker=_weaker(sink),
            kit=version if isinstance(version, int) else None,
            drill=DrillSeen(str(drill.id), drill.state, drill.says, drill.finished_at) if drill else None,
            drill_period=None if hours is None else timedelta(hours=hours),
            drilled_since=_drilled_since(sink),
        )


def _drilled_since(sink: Sink) -> datetime:
    """A pass of before its options changed proves nothing of it now."""
    since: datetime = sink.updated_at or sink.created_at
    return max(since, sink.drill_passed_at) if sink.drill_passed_at else since


def _weaker(sink: Sink) -> list[str] | None:
    """What its test found less than declared; None: it says nothing, because it reached nothing."""
    if sink.tested_at is None or sink.capability is None:
        return None
    try:
        found = points_of(sink.kind, sink.options, sink.capability)
    except FencepostError as error:
        logger.warning("sink %s is not compared with what was declared of it: %s", sink.name, error)
        return None
    return [_weaker_says(one.as_row(None)) for one in found if one.is_weaker]


def _weaker_says(row: Mapping[str, Any]) -> str:
    because = f" {row['because']}" if row["because"] else ""
    return f"{row['point'].capitalize()}: declared {row['declared']}, tested {row['tested']}.{because}"
