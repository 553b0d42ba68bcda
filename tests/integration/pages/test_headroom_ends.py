"""Headroom from what audits saw of the ends: slots, clocks, growth, drills, parts. A hundredth of the acceptance figures."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from recovery_api.domain.headroom.seen import ClockSeen, EndSeen, SlotSeen, end_seen_as_row
from recovery_api.models import Drill, DrillState, Intent, IntentAction, IntentState, Pipeline
from recovery_api.selectors.headroom import pipeline_headroom
from tests.integration.pages.headroom_world import (
    DAY,
    GIB,
    NOW,
    ROOM,
    at,
    audited,
    make,
    moments,
    noon,
    owed,
    redriven,
    told,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]
__all__ = ["noon"]

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
EXACT = ClockSeen(timedelta(0), timedelta(0))
SLOT = {"slot": "relay"}


def ends(at: Any, clock: ClockSeen | None = None, record: ClockSeen | None = EXACT, **source: Any) -> dict[str, Any]:
    """Of one audit, as its row keeps it."""
    looked = {"source": EndSeen(at, clock or EXACT, **source), "record": EndSeen(at, record)}
    return {"ends_seen": {name: end_seen_as_row(one) for name, one in looked.items()}}


def slot(**more: Any) -> SlotSeen:
    return SlotSeen("relay", **{"wal_status": "extended", **more})


def delivering(pipeline: Pipeline, count: int, oldest: Any, then: dict[str, Any], now: dict[str, Any]) -> None:
    """`count` owed since `oldest`, a relay that delivers, and what was seen of the ends an hour ago and now."""
    redriven(pipeline, 1_000)
    audited(pipeline, NOW - HOUR, 9_100, 9_100, count, then)
    owed(pipeline, audited(pipeline, NOW, 10_000, 10_000, count, now), count, oldest)


WAL = {"wal_position": 0}, {"wal_position": 6 * GIB}
CASES: dict[str, Any] = {
    # number -> sink, source and pipeline options; oldest owed, how many; seen then, seen now; word, L, last start, decide by
    "7": (
        {},
        SLOT,
        {},
        (NOW - 4 * HOUR, 120),
        (ends(NOW - HOUR, **WAL[0]), ends(NOW, **WAL[1], slot=slot(room_bytes=2 * GIB))),
        ("low", 1_200, (12, 3), (11, 33)),
    ),
    "8": (
        {},
        {**SLOT, "disk_free_bytes": 12 * GIB, "disk_growth_bytes_per_hour": 2**20},
        {},
        (NOW - 4 * HOUR, 120),
        (ends(NOW - HOUR, **WAL[0]), ends(NOW, **WAL[1], slot=slot(wal_status="reserved", idle=4 * HOUR))),
        ("ok", 7_200, (13, 43), (13, 13)),
    ),
    "9, slot lost": (
        {"memory_seconds": DAY},
        SLOT,
        {},
        (NOW - 14 * HOUR, 900),
        (ends(NOW - HOUR), ends(NOW, slot=slot(wal_status="lost", lost_because="wal_removed"))),
        ("gone", None, None, None),
    ),
    "10": (
        {"memory_seconds": 3600},
        {},
        {"clock_error_seconds": None},
        (NOW - 30 * MINUTE, 240),
        (ends(NOW - HOUR), ends(NOW, ClockSeen(4 * MINUTE, MINUTE))),
        ("low", 1_500, (12, 6), (11, 36)),
    ),
}


@pytest.mark.parametrize("number", CASES)
def test_acceptance_case_by_what_was_seen_of_the_ends_is_the_same_everywhere(
    sign_in: Callable[..., Client], number: str
) -> None:
    sink, source, options, (oldest, count), seen, (word, left, start, decide) = CASES[number]
    delivering(make(sink, source, **options), count, oldest, *seen)
    by_rest, by_command, page, code = told(sign_in("viewer"))
    moment = (word, left, start and at(*start), decide and at(*decide))
    assert moments(by_rest) == moments(by_command) == moment
    assert code == (0 if word == "ok" else 1)
    says = f"must start by {start[0]}:{start[1]:02} UTC" if start else "The slot relay is lost (wal_removed)"
    assert says in page


def test_case_9_slot_that_was_not_read_leaves_at_most_what_the_rest_leaves(sign_in: Callable[..., Client]) -> None:
    pipeline = make({"memory_seconds": DAY}, SLOT)
    redriven(pipeline, 1_000)
    audited(pipeline, NOW - HOUR, 9_100, 10_000, 0)
    audit = audited(pipeline, NOW, 10_000, 10_000, 900, ends(NOW, problem="It could not be looked at: gone away."))
    owed(pipeline, audit, 900, NOW - 14 * HOUR)
    by_rest, by_command, page, code = told(sign_in("viewer"))
    assert moments(by_rest) == moments(by_command) == ("unknown", 36_000, at(19, 36), at(19, 6))
    assert (by_rest["is_bound"], by_rest["is_left_bound"], code) == (True, True, 3)
    assert "is not known: at most 10 h; start by 19:36 UTC at the latest." in page
    assert "The slot relay was not read at the last audit. It could not be looked at: gone away." in page
    assert (
        "at most 10 h left; decide by at most 19:06 UTC" in sign_in("viewer").get("/?headroom=unknown").content.decode()
    )


def test_case_11_each_part_has_an_end_of_its_own_and_the_second_binds(sign_in: Callable[..., Client]) -> None:
    pipeline = make({"memory_seconds": DAY}, batch_limit=600)
    redriven(pipeline, 1_000)
    audited(pipeline, NOW - HOUR, 9_100, 9_100, 1_200)
    audit = audited(pipeline, NOW, 10_000, 10_000, 1_200)
    owed(pipeline, audit, 600, NOW - 23 * HOUR, apart=0)
    owed(pipeline, audit, 600, NOW - 23 * HOUR + 5 * MINUTE, position=10_000, apart=0)
    by_rest, by_command, page, code = told(sign_in("viewer"))
    assert moments(by_rest) == moments(by_command) == ("low", 3_600, at(12, 25), at(11, 55))
    assert code == 1 and "Part 2 of 2 binds." in page
    assert pipeline_headroom(pipeline, NOW).found.part == 2


@pytest.mark.parametrize(
    ("seen", "word", "reach"),
    [
        (slot(wal_status="unreserved", room_bytes=2**50), "gone", "known"),
        (slot(lost_because="idle_timeout"), "gone", "gone"),
        (slot(room_bytes=2**50, idle=HOUR, idle_limit=HOUR + MINUTE), "gone", "known"),
        (slot(problem="The slot relay is of the database b, not of a: it is somebody else's."), "unknown", "unknown"),
    ],
)
def test_slot_that_goes_or_is_not_ours(seen: SlotSeen, word: str, reach: str) -> None:
    pipeline = make({"memory_seconds": DAY}, SLOT)
    delivering(pipeline, 10, NOW - HOUR, ends(NOW - HOUR, **WAL[0]), ends(NOW, **WAL[1], slot=seen))
    found = pipeline_headroom(pipeline, NOW).found
    assert found.standing == word
    assert reach in {one.term.reach for one in found.terms if one.term.forgets.startswith("slot")}


def test_slot_of_an_old_look_is_counted_from_that_look() -> None:
    pipeline = make({"memory_seconds": DAY}, SLOT, stale_after_seconds=10 * DAY)
    seen = ends(NOW, **WAL[1], slot=slot(room_bytes=12 * GIB))
    delivering(pipeline, 10, NOW - HOUR, ends(NOW - HOUR, **WAL[0]), seen)
    assert pipeline_headroom(pipeline, NOW + HOUR).found.left == HOUR


def test_clock_that_nobody_measured_or_declared_is_unknown_and_a_declared_bound_stands_in() -> None:
    pipeline = make({"memory_seconds": DAY}, clock_error_seconds=None)
    delivering(pipeline, 10, NOW - HOUR, ends(NOW - HOUR), ends(NOW, record=None))
    assert pipeline_headroom(pipeline, NOW).found.standing == "unknown"
    pipeline.options = {**pipeline.options, "clock_error_seconds": 60}
    assert pipeline_headroom(pipeline, NOW).found.left == 23 * HOUR - MINUTE


def test_table_that_grows_faster_than_declared_counts_as_it_grows(sign_in: Callable[..., Client]) -> None:
    pipeline = make({"memory_seconds": 30 * DAY}, {"disk_free_bytes": 12 * GIB, "disk_growth_bytes_per_hour": GIB})
    sizes = {"table_bytes": GIB}, {"table_bytes": 7 * GIB}
    delivering(pipeline, 10, NOW - HOUR, ends(NOW - HOUR, **sizes[0]), ends(NOW, **sizes[1]))
    by_rest, _, page, _ = told(sign_in("viewer"))
    assert by_rest["left_seconds"] == str(2 * 3600)
    assert "The table alone was seen to grow by 6,442,450,944 an hour, and that counts." in page
    assert "Its table takes 7,516,192,768 bytes." in page
    assert by_rest["ends"][0]["table_bytes"] == str(7 * GIB)


def test_drill_stands_in_for_the_overhead_and_is_said_and_shows_no_rate(sign_in: Callable[..., Client]) -> None:
    pipeline = make({"memory_seconds": DAY})
    audited(pipeline, NOW - HOUR, 9_100, 9_100, 0)
    audited(pipeline, NOW, 10_000, 10_000, 0)
    assert pipeline_headroom(pipeline, NOW).pace.overhead is None
    intent = Intent.objects.create(
        id=uuid4(),
        action=IntentAction.DRILL,
        state=IntentState.DONE,
        sink=pipeline.sink,
        created_at=NOW,
        created_by="ada",
        finished_at=NOW,
    )
    Drill.objects.create(
        sink=pipeline.sink,
        intent=intent,
        state=DrillState.PASSED,
        requested_by="ada",
        requested_at=NOW - HOUR,
        finished_at=NOW - HOUR + 3 * MINUTE,
    )
    by_rest, _, page, code = told(sign_in("viewer"))
    pace = by_rest["pace"]
    assert (pace["overhead_seconds"], pace["is_overhead_drilled"], pace["missing"], code) == (
        "180",
        True,
        ["rate_per_second"],
        3,
    )
    assert "a whole run of drills counts, which audits less" in page
    redriven(pipeline, 1_000)
    assert not pipeline_headroom(pipeline, NOW).pace.is_overhead_drilled, "a recovery showed it"


def test_rate_of_nothing_for_a_month_is_no_growth_and_no_promise() -> None:
    """Nothing came in: B does not grow, the countdown stays; and what was re-driven four months ago tells no rate."""
    pipeline = make({"memory_seconds": 90 * DAY, **ROOM}, stale_after_seconds=40 * DAY)
    redriven(pipeline, 1_000)
    audited(pipeline, NOW - timedelta(days=30), 10, 10, 0)
    audited(pipeline, NOW, 10, 10, 0)
    found = pipeline_headroom(pipeline, NOW)
    assert (found.arrivals.peak_per_second, found.pace.growth_per_second, found.pace.owed) == (0.0, 0.0, 0)
    assert found.found.standing == "ok"
    late = pipeline_headroom(pipeline, NOW + timedelta(days=89))
    assert (late.pace.rate_per_second, late.found.standing) == (None, "unknown")
