"""What a scrape shows, read from the control database when it is asked: a few queries, whatever the number of pipelines.

The law: what is not known is no series. A pipeline that was never audited owes no number, so nothing reads as zero that
nobody looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Avg, Count, F, Max, Min, OuterRef, Subquery

from recovery_api.domain.headroom.evidence import is_expired
from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.outcomes import Status
from recovery_api.domain.work import QUEUES, IntentAction
from recovery_api.models import LIVE_STATES, Audit, Intent, Pipeline, Recovery, Schedule
from recovery_api.selectors.fleet_pages import fleet_entries
from recovery_api.selectors.freezes import freezes_standing
from recovery_api.selectors.headroom_figures import fleet_figures
from recovery_api.selectors.workers import worker_presence

LATELY = timedelta(hours=1)
"""Over how much the figures of finished work are taken."""
STEPS = (
    ("claim", "created_at", "claimed_at"),
    ("deliver", "claimed_at", "fired_at"),
    ("verify", "fired_at", "finished_at"),
)
"""A recovery's steps, as far as its row remembers when each began and ended."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric: its name without the prefix, what it is, its labels' names, and a value for each set of labels."""

    name: str
    says: str
    labels: tuple[str, ...] = ()
    values: Sequence[tuple[tuple[str, ...], float]] = ()


class Counted(NamedTuple):
    """Of one pipeline. None: the check could not tell, and found none; or what it found rests on evidence that expired."""

    read_at: datetime
    owed: int | None
    hazards: int | None


def measures(now: datetime) -> Iterator[Measure]:
    """Every metric, in the order of the page docs/metrics/README.md."""
    fleet = fleet_entries(now)
    names = {entry.pk: entry.name for entry in fleet}
    says = "1 for the status that the pipeline has now, as pages show it. Only exactly_once is green."
    yield Measure("pipeline_status", says, ("pipeline", "status"), [((one.name, one.word), 1.0) for one in fleet])
    yield from _audits(names, now)
    yield from _headroom(names, now)
    yield from _recoveries(names, now)
    yield from _freezes()
    yield from _work(now)
    presence = worker_presence(now)
    workers = [((queue,), float(presence.count if queue in presence.queues else 0)) for queue in QUEUES]
    yield Measure("workers", "Workers heard of in the last 35 s, by the queue that they take.", ("queue",), workers)


def _audits(names: dict[int, str], now: datetime) -> Iterator[Measure]:
    """Of the newest reading of each record. What is in use is asked for by the database's own word: a thousand keys as
    parameters take longer to write than to answer."""
    standing = Audit.objects.filter(is_standing=True, void_since__isnull=True, pipeline__retired_at__isnull=True)
    columns = (
        "pipeline_id",
        "record_read_at",
        "status",
        "lost_count",
        "acknowledged_count",
        "premature_count",
        "duplicate_count",
        "evidence_until",
    )
    newest: dict[int, Counted] = {}
    for key, read_at, status, lost, acknowledged, premature, duplicate, until in standing.values_list(*columns):
        if key in names and (key not in newest or read_at > newest[key].read_at):
            owed, hazards = lost - acknowledged, premature + duplicate
            is_known = status != Status.UNKNOWN  # what such a check found, it found; that nothing is there it did not
            found = (owed if is_known or owed else None, hazards if is_known or hazards else None)
            newest[key] = Counted(read_at, *((None, None) if is_expired(until, now) else found))
    waiting = Schedule.objects.filter(waiting_since__isnull=False).values_list("pipeline_id", "waiting_since")
    waits = {key: since for key, since in waiting if key in names}
    one = ("pipeline",)

    owes = [((names[key],), float(found.owed)) for key, found in newest.items() if found.owed is not None]
    wrong = [((names[key],), float(found.hazards)) for key, found in newest.items() if found.hazards is not None]
    says = "Events lost and not acknowledged, as the newest check found. No series where that check cannot tell."
    yield Measure("owed_events", says, one, owes)
    says = "Premature entries and duplicates, as the newest check found. No series where that check cannot tell."
    yield Measure("hazards", says, one, wrong)
    ages = [((names[key],), (now - found.read_at).total_seconds()) for key, found in newest.items()]
    yield Measure("audit_age_seconds", "Since the record was last read.", one, ages)
    says = "At least so long the oldest event waits that was not accepted; nothing where none waits."
    old = [((names[key],), (now - since).total_seconds()) for key, since in waits.items()]
    yield Measure("oldest_waiting_seconds", says, one, old)


def _headroom(names: dict[int, str], now: datetime) -> Iterator[Measure]:
    found = fleet_figures(list(names), now)
    says = "1 for how the pipeline's headroom stands: ok, low, gone or unknown."
    words = [((names[key], one.standing.value), 1.0) for key, one in found.items()]
    yield Measure("headroom", says, ("pipeline", "headroom"), words)
    says = (
        "Until somebody must have decided on a recovery; below zero: too late. Nothing where no such moment is known."
    )
    left = [
        ((names[key],), (one.decide_by - now).total_seconds())
        for key, one in found.items()
        if one.decide_by is not None and one.standing is not Standing.UNKNOWN
    ]
    yield Measure("headroom_seconds", says, ("pipeline",), left)


def _recoveries(names: dict[int, str], now: datetime) -> Iterator[Measure]:
    newest = Recovery.objects.filter(pipeline=OuterRef("pk")).order_by("-created_at").values("pk")[:1]
    asked = Pipeline.objects.filter(retired_at__isnull=True).values(newest=Subquery(newest))
    columns = ("pipeline_id", "state", "created_at", "claimed_at", "fired_at", "finished_at", "moved_at")
    rows = [row for row in Recovery.objects.filter(pk__in=asked).values_list(*columns) if row[0] in names]
    moments = {
        key: {"created_at": made, "claimed_at": claimed, "fired_at": fired, "finished_at": finished}
        for key, _, made, claimed, fired, finished, _ in rows
    }
    running = [
        ((names[key], state), (now - (moved or made)).total_seconds())
        for key, state, made, _, _, finished, moved in rows
        if finished is None
    ]
    says = "Of a recovery that is unfinished: since its last step."
    yield Measure("recovery_unfinished_seconds", says, ("pipeline", "state"), running)
    steps = [
        ((names[key], step), (at[end] - at[begin]).total_seconds())
        for key, at in moments.items()
        for step, begin, end in STEPS
        if at[begin] is not None and at[end] is not None
    ]
    yield Measure("recovery_step_seconds", "How long a step of its newest recovery took.", ("pipeline", "step"), steps)


def _freezes() -> Iterator[Measure]:
    standing = list(freezes_standing())
    whole = any(one.pipeline is None for one in standing)
    yield Measure("frozen_everything", "1 while nothing is sent for any pipeline.", (), [((), float(whole))])
    own = [((one.pipeline.name,), 1.0) for one in standing if one.pipeline is not None]
    yield Measure("frozen", "1 for a pipeline that is frozen by itself.", ("pipeline",), own)


def _work(now: datetime) -> Iterator[Measure]:
    live = Intent.objects.filter(state__in=LIVE_STATES).values("action", "state")
    counted = list(live.annotate(count=Count("id"), oldest=Min("created_at")).order_by())
    length: dict[tuple[str, str], int] = {(queue, state): 0 for queue in QUEUES for state in LIVE_STATES}
    oldest: dict[str, float] = {}
    for row in counted:
        queue = IntentAction(row["action"]).queue
        length[queue, row["state"]] += row["count"]
        if row["state"] == "queued":
            oldest[queue] = max(oldest.get(queue, 0.0), (now - row["oldest"]).total_seconds())
    values = [((queue, str(state)), float(count)) for (queue, state), count in length.items()]
    yield Measure("work", "Pieces of work that wait or run.", ("queue", "state"), values)
    waits = [((queue,), seconds) for queue, seconds in oldest.items()]
    yield Measure(
        "work_oldest_queued_seconds", "Since the oldest piece of work that waits was asked for.", ("queue",), waits
    )
    ended = Intent.objects.filter(finished_at__gt=now - LATELY, taken_at__isnull=False).values("action", "state")
    took = F("finished_at") - F("taken_at")
    lately = list(ended.annotate(count=Count("id"), mean=Avg(took), most=Max(took)).order_by())
    ends = [((row["action"], row["state"]), float(row["count"])) for row in lately]
    yield Measure("work_ended_last_hour", "Pieces of work that ended in the last hour.", ("action", "state"), ends)
    spans = [
        ((row["action"], row["state"], name), row[column].total_seconds())
        for row in lately
        for name, column in (("mean", "mean"), ("longest", "most"))
    ]
    says = "How long the last attempt of work took that ended in the last hour: mean, and longest."
    yield Measure("work_seconds_last_hour", says, ("action", "state", "of"), spans)
