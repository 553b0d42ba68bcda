"""The history as REST and commands show it: one spelling of its rows. Spans are whole seconds, rounded down."""

from __future__ import annotations

from datetime import datetime, timedelta

from recovery_api.domain.headroom.says import span_short
from recovery_api.domain.history import Bucket, Observed, Stretch
from recovery_api.domain.looks import look_of
from recovery_api.rows import Row
from recovery_api.selectors.history import PipelineHistory

NOT_OBSERVED = "not observed"


def history_as_row(found: PipelineHistory) -> Row:
    return {
        "pipeline": found.name,
        "span": found.span,
        "since": found.since.isoformat(),
        "until": found.until.isoformat(),
        "point_seconds": int(found.width.total_seconds()),
        "stretches": [_stretch_as_row(one) for one in found.stretches],
        "points": [_bucket_as_row(one) for one in found.buckets],
    }


def _stretch_as_row(one: Stretch) -> Row:
    return {
        "since": one.since.isoformat(),
        "until": one.until.isoformat(),
        "status": one.status.value if one.status else None,
        "seconds": int((one.until - one.since).total_seconds()),
        "unobserved_seconds": int(one.unobserved_seconds),
        "audits": one.audits,
    }


def _bucket_as_row(one: Bucket) -> Row:
    worst = one.worst
    return {
        "since": one.since.isoformat(),
        "until": one.until.isoformat(),
        "unobserved_seconds": int(one.unobserved_seconds),
        **(observed_as_row(worst) if worst else dict.fromkeys(FIGURES)),
    }


FIGURES = (
    *("status", "audits", "owed", "oldest_owed_seconds", "lag_events", "lag_seconds", "accepted_per_second"),
    *("hazards", "headroom", "headroom_seconds"),
)


def observed_as_row(worst: Observed) -> Row:
    """The worst of one point; what nobody knew is null."""
    rate = worst.accepted_per_second
    return {
        "status": worst.status.value,
        "audits": worst.audits,
        "owed": worst.owed,
        "oldest_owed_seconds": worst.oldest_owed_seconds,
        "lag_events": worst.lag_events,
        "lag_seconds": worst.lag_seconds,
        "accepted_per_second": None if rate is None else f"{rate:.3f}",
        "hazards": worst.hazards,
        "headroom": worst.headroom.value if worst.headroom else None,
        "headroom_seconds": worst.headroom_seconds,
    }


def history_lines(row: Row) -> list[str]:
    """The same for a terminal: the strip, then each point at which anything was observed."""
    lines = [f"{row['pipeline']}, {row['span']} up to {_at(row['until'])}", "Which status held when:"]
    for one in row["stretches"]:
        said = look_of(one["status"]).says if one["status"] else NOT_OBSERVED
        gap = ""
        if one["status"] and one["unobserved_seconds"]:
            gap = f"; {_span(one['unobserved_seconds'])} of it {NOT_OBSERVED}"
        lines.append(f"  {_at(one['since'])} to {_at(one['until'])}: {said}{gap}")
    every = _span(row["point_seconds"])
    lines.append(f"The worst of every {every} in which anything was observed:")
    for one in row["points"]:
        if one["status"] is None:
            continue
        lines.append(f"  {_at(one['since'])}: {', '.join(_figures(one))}")
    return lines


def _figures(one: Row) -> list[str]:
    said = [look_of(one["status"]).says]
    if one["owed"] is not None:
        age = f" (the oldest {_span(one['oldest_owed_seconds'])})" if one["oldest_owed_seconds"] is not None else ""
        said.append(f"{one['owed']:,} owed{age}")
    if one["lag_events"] is not None:
        waits = f" for at least {_span(one['lag_seconds'])}" if one["lag_seconds"] else ""
        said.append(f"{one['lag_events']:,} not accepted{waits}")
    if one["accepted_per_second"] is not None:
        said.append(f"{float(one['accepted_per_second']):,.1f} accepted a second")
    if one["hazards"] is not None:
        said.append(f"{one['hazards']:,} hazards")
    if one["headroom"] is not None:
        left = f" (at most {_span(one['headroom_seconds'])})" if one["headroom"] == "unknown" else ""
        if one["headroom"] != "unknown" and one["headroom_seconds"] is not None:
            left = f" ({_span(one['headroom_seconds'])})"
        said.append(f"headroom {one['headroom']}{left if one['headroom_seconds'] is not None else ''}")
    return said


def _span(seconds: int) -> str:
    return span_short(timedelta(seconds=seconds))


def _at(moment: str) -> str:
    return f"{datetime.fromisoformat(moment):%Y-%m-%d %H:%M} UTC"
