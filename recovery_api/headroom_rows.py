"""Headroom as a JSON object: one spelling for command, REST and page. Spans are whole seconds, rounded down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from recovery_api.domain.headroom.design import DesignCheck
from recovery_api.domain.headroom.live import TermLeft
from recovery_api.domain.headroom.says import end_says, headroom_says, headroom_short, pace_says
from recovery_api.domain.headroom.seen import EndSeen
from recovery_api.freeze_rows import freeze_as_row
from recovery_api.rows import Row, status_as_row
from recovery_api.selectors.fleet import PipelineStatus
from recovery_api.selectors.freezes import freezes_by_pipeline
from recovery_api.selectors.headroom import PipelineHeadroom, fleet_headroom


def headroom_short_as_row(one: PipelineHeadroom) -> Row:
    """The short form, of a status or a table. `left_seconds` None: no limit, or none known; `is_bound`: at most."""
    found = one.found
    return {
        "headroom": found.standing.value,
        "short": headroom_short(found, one.now),
        "left_seconds": _seconds(found.left),
        "decide_by": _time(found.decide_by),
        "is_bound": found.is_bound or found.is_left_bound,
    }


def statuses_as_rows(statuses: Sequence[PipelineStatus], now: datetime) -> list[Row]:
    """Each status with the short form of its pipeline's headroom, and what freezes it. Five queries, whatever their number."""
    pipelines = [one.pipeline for one in statuses]
    found, frozen = fleet_headroom(pipelines, now), freezes_by_pipeline(pipelines)
    return [
        {
            **status_as_row(one),
            "headroom": headroom_short_as_row(found[one.pipeline.pk]),
            "frozen": freeze_as_row(frozen[one.pipeline.pk]) if one.pipeline.pk in frozen else None,
        }
        for one in statuses
    ]


def headroom_as_row(one: PipelineHeadroom) -> Row:
    """Everything that is shown of a pipeline's headroom."""
    found, pace = one.found, one.pace
    return {
        "pipeline": one.name,
        "headroom": found.standing.value,
        "exit_code": found.standing.exit_code,
        "says": headroom_says(found, pace, one.now, is_hypothetical=one.is_hypothetical, is_read=one.as_of is not None),
        "now": one.now.isoformat(),
        "as_of": _time(one.as_of),
        "left_seconds": _seconds(found.left),
        "is_left_bound": found.is_left_bound,
        "last_start": _time(found.last_start),
        "decide_by": _time(found.decide_by),
        "is_bound": found.is_bound,
        "is_expired": found.is_expired,
        "is_hypothetical": one.is_hypothetical,
        "binds": found.binds.value if found.binds else None,
        "anchor": _time(one.anchor),
        "oldest_owed_at": _time(one.oldest_owed_at),
        "certified_to": _time(one.certified_to),
        "terms": [_term_as_row(each) for each in found.terms],
        "pace": {
            "owed": str(pace.owed),
            "growth_per_second": _rate(pace.growth_per_second),
            "arrivals_peak_per_second": _rate(one.arrivals.peak_per_second),
            "arrivals_recent_per_second": _rate(one.arrivals.recent_per_second),
            "is_delivering": one.arrivals.is_delivering,
            "redrive_per_second": _rate(pace.rate_per_second),
            "overhead_seconds": _seconds(pace.overhead),
            "is_overhead_drilled": pace.is_overhead_drilled,
            "says": pace_says(pace, one.arrivals),
            "margin_seconds": _seconds(pace.margin),
            "operator_delay_seconds": _seconds(pace.operator_delay),
            "missing": list(pace.missing),
        },
        "ends": [_end_as_row(name, seen) for name, seen in one.ends.items()],
        "design": {"declared": _design_as_row(one.declared_check), "measured": _design_as_row(one.measured_check)},
    }


def _term_as_row(one: TermLeft) -> Row:
    return {
        "forgets": one.term.forgets.value,
        "headroom": one.standing.value,
        "reach": one.term.reach.value,
        "says": one.term.says,
        "expires_at": _time(one.term.expires_at),
        "left_seconds": _seconds(one.left),
        "last_start": _time(one.last_start),
        "decide_by": _time(one.decide_by),
        "is_bound": one.is_bound,
    }


def _end_as_row(name: str, seen: EndSeen) -> Row:
    return {
        "end": name,
        "read_at": _time(seen.read_at),
        "clock_ahead_seconds": f"{seen.clock.ahead.total_seconds():.6f}" if seen.clock else None,
        "clock_error_seconds": f"{seen.clock.error.total_seconds():.6f}" if seen.clock else None,
        "table_bytes": seen.table_bytes,
        "says": end_says(seen),
    }


def _design_as_row(one: DesignCheck) -> Row:
    return {
        "holds": one.holds.value,
        "horizon_seconds": _seconds(one.horizon),
        "is_whole": one.is_whole,
        "steps": [{"name": step.name, "seconds": _seconds(step.takes)} for step in one.steps],
        "spare_seconds": _seconds(one.spare),
        "missing": list(one.missing),
    }


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else math.floor(span.total_seconds())


def _rate(number: float | None) -> str | None:
    return None if number is None else f"{number:.3f}"


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
