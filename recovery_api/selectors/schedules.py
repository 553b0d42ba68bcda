"""How a pipeline stands with its schedule: when it is audited next, whether that is overdue, how long an event waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.domain.schedules import (
    Cadence,
    Pin,
    PinnedLane,
    cadence_of,
    overdue_since,
    pins_aged,
    span_at_least,
    span_says,
)
from recovery_api.domain.statuses import RecordReading
from recovery_api.models import Pipeline, Schedule


@dataclass(frozen=True, slots=True)
class ScheduleStanding:
    """`next_due_at` None: its schedule is off, or no worker has seen it yet. `last_read_at`: when the record was last read,
    by whomever. `waits` None: as of its last audit nothing
    waits; else for how long the oldest event that was not accepted has been known to wait."""

    cadence: Cadence
    next_due_at: datetime | None
    last_due_at: datetime | None
    overdue_since: datetime | None
    last_read_at: datetime | None
    waiting_since: datetime | None
    waits: timedelta | None

    @property
    def is_past_sla(self) -> bool:
        return self.cadence.sla is not None and self.waits is not None and self.waits > self.cadence.sla

    @property
    def says(self) -> str:
        """Whether and how often it is audited by itself, in a sentence."""
        cadence = self.cadence
        if not cadence.is_on:
            return "Nothing audits it by itself: its schedule is turned off."
        often = f"It is audited every {span_says(cadence.period)}"
        if self.overdue_since is not None:
            return f"{often}, and the audit due at {self.overdue_since:%Y-%m-%d %H:%M} UTC was not made."
        if self.next_due_at is None:
            return f"{often}; the first time is set as soon as a worker runs."
        return f"{often}; next at {self.next_due_at:%Y-%m-%d %H:%M:%S} UTC."

    @property
    def waiting_says(self) -> str:
        """How long the oldest event that was not accepted waits, and whether that is too long; "" where nothing waits."""
        if self.waits is None:
            return ""
        says = f"The oldest event that was not accepted has been waiting for at least {span_at_least(self.waits)}"
        if self.cadence.sla is None:
            return f"{says}."
        limit = span_says(self.cadence.sla)
        owner = f" Owner: {self.cadence.owner}." if self.cadence.owner else ""
        return (
            f"{says}: longer than the {limit} promised.{owner}" if self.is_past_sla else f"{says}; {limit} is promised."
        )

    def as_row(self) -> dict[str, Any]:
        """For commands and REST. `waits_seconds`: at least so long; None: nothing waits."""
        return {
            "is_scheduled": self.cadence.is_on,
            "period_seconds": int(self.cadence.period.total_seconds()),
            "last_due_at": _time(self.last_due_at),
            "next_due_at": _time(self.next_due_at),
            "overdue_since": _time(self.overdue_since),
            "last_read_at": _time(self.last_read_at),
            "says": self.says,
            "waits_seconds": None if self.waits is None else int(self.waits.total_seconds()),
            "is_past_sla": self.is_past_sla,
            "waiting_says": self.waiting_says,
            "owner": self.cadence.owner or None,
        }


def schedule_standing(
    seed: str, row: Schedule | None, options: Mapping[str, Any], readings: Sequence[RecordReading], now: datetime
) -> ScheduleStanding:
    """`options` parsed; `row` None: no worker has seen the pipeline yet."""
    cadence = cadence_of(options)
    last_read_at = max((one.read_at for one in readings), default=None)
    if row is None:
        return ScheduleStanding(cadence, None, None, None, last_read_at, None, None)
    due = (row.next_due_at, row.due_at)
    return ScheduleStanding(
        cadence=cadence,
        next_due_at=row.next_due_at if cadence.is_on else None,
        last_due_at=row.last_due_at,
        overdue_since=overdue_of(seed, *due, options, readings, now),
        last_read_at=last_read_at,
        waiting_since=row.waiting_since,
        waits=None if row.waiting_since is None else max(now - row.waiting_since, timedelta(0)),
    )


def aged_of(pipeline: Pipeline, now: datetime) -> dict[str, PinnedLane] | None:
    """Of each lane the newest frontier that was pinned a window ago. None: no pin is so old yet."""
    row = Schedule.objects.filter(pipeline=pipeline).first()
    window = cadence_of(pipeline_options_parse(pipeline.options)).window
    return pins_aged([Pin.from_row(one) for one in row.pins], now, window) if row else None


def overdue_of(
    seed: str,
    next_due_at: datetime | None,
    due_at: datetime | None,
    options: Mapping[str, Any],
    readings: Sequence[RecordReading],
    now: datetime,
) -> datetime | None:
    """Since when an audit is overdue, from a few columns. `options` parsed. None: none is."""
    read_at = max((one.read_at for one in readings), default=None)
    return overdue_since(next_due_at, due_at, read_at, now, seed, cadence_of(options))


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
