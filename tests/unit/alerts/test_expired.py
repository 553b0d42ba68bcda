"""A reading whose evidence expired tells nothing any more: it pages nobody as *owed*, and takes back no alert either."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from recovery_api.domain.alerts.causes import Cause
from recovery_api.domain.alerts.pipelines import PipelineNow, ReadingSeen, observations
from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.outcomes import Status
from recovery_api.domain.statuses import RecordReading

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DEEP, SHALLOW = ({"0": {"position": at, "ordinal": "0"}} for at in ("42", "9"))


def told(now: datetime) -> dict[Cause, bool]:
    """What is shown, and what is taken back: an *owed* that reaches far, and a later clean reading that does not."""
    owed = RecordReading(NOON, Status.OWED, DEEP, "3 events are owed.", NOON + HOUR)
    clean = RecordReading(NOON + HOUR / 2, Status.EXACTLY_ONCE, SHALLOW, "Exactly once at 9.")
    readings = [ReadingSeen("1", owed, 3, 0), ReadingSeen("2", clean, 0, 0)]
    pipeline = PipelineNow(7, "source", "sink", HOUR, readings, headroom=Standing.LOW)
    seen = list(observations(pipeline, now))
    low = next(one for one in seen if one.cause is Cause.HEADROOM_LOW)
    assert (" Events are owed." in low.says) is (now < NOON + HOUR)
    return {one.cause: one.is_shown for one in seen}


def test_what_is_owed_is_shown_until_its_evidence_expired_and_then_neither_shown_nor_taken_back() -> None:
    assert told(NOON + HOUR - timedelta(seconds=1))[Cause.OWED] is True
    expired = told(NOON + HOUR)
    assert Cause.OWED not in expired and expired[Cause.HAZARD] is False, expired
    assert expired[Cause.UNKNOWN] is True
