"""Headroom over rows as workers leave them, by an injected clock: the same on the page, by REST and by command."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from recovery_api.domain.headroom.terms import Forgets
from recovery_api.models import Plan, PlanState
from recovery_api.selectors.headroom import pipeline_headroom
from tests.integration.pages.headroom_world import (
    DAY,
    GIB,
    NOW,
    ROOM,
    at,
    audited,
    clock_stand,
    make,
    moments,
    noon,
    owed,
    redriven,
    told,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]
__all__ = ["noon"]


def test_case_1_stopped_relay_counts_down_the_same_everywhere(sign_in: Callable[..., Client]) -> None:
    pipeline = make({"memory_seconds": DAY})
    redriven(pipeline)
    audited(pipeline, NOW - timedelta(hours=1), 910_000, 1_000_000, 0)
    audit = audited(pipeline, NOW, 1_000_000, 1_000_000, 90_000)
    owed(pipeline, audit, 90_000, NOW - timedelta(hours=14))
    by_rest, by_command, page, code = told(sign_in("viewer"))
    assert moments(by_rest) == moments(by_command) == ("ok", 36_000, at(19, 36), at(19, 6))
    assert code == 0
    short = {"headroom": "ok", "short": "10 h left; decide by 19:06 UTC", "left_seconds": "36000"}
    for status in (
        sign_in("viewer").get("/api/v1/pipelines/mail/status").json(),
        sign_in("viewer").get("/api/v1/statuses").json()["items"][0],
    ):
        assert {name: status["headroom"][name] for name in short} == short
    assert "must start by 19:36 UTC; decide by 19:06 UTC, in 7 h 6 min." in page
    assert by_rest["design"]["measured"]["holds"] == "holds"
    assert "10 h left; decide by 19:06 UTC" in sign_in("viewer").get("/?headroom=ok").content.decode()


def test_pipeline_left_alone_with_its_relay_stopped_goes_to_low_and_gone(sign_in: Callable[..., Client]) -> None:
    pipeline = make({"memory_seconds": DAY})
    redriven(pipeline)
    audited(pipeline, NOW - timedelta(hours=1), 910_000, 1_000_000, 0)
    owed(pipeline, audited(pipeline, NOW, 1_000_000, 1_000_000, 90_000), 90_000, NOW - timedelta(hours=14))
    seen = []
    for hour, minute in ((12, 0), (19, 6), (19, 7), (19, 36), (19, 37), (22, 0)):
        clock_stand(datetime(2026, 3, 1, hour, minute, tzinfo=UTC))
        row, _, page, code = told(sign_in("viewer"))
        seen.append((f"{hour}:{minute:02}", row["headroom"], row["is_expired"], row["last_start"], code))
        assert ("Start it now" in page) == (row["headroom"] == "low")
    start = at(19, 36)
    assert seen == [
        ("12:00", "ok", False, start, 0),
        ("19:06", "ok", False, start, 0),
        ("19:07", "low", False, start, 1),
        ("19:36", "low", False, start, 1),
        ("19:37", "gone", False, None, 1),
        ("22:00", "gone", True, None, 1),
    ]


def test_case_2_delivering_relay_lets_nothing_grow(sign_in: Callable[..., Client]) -> None:
    pipeline = make({"memory_seconds": DAY})
    redriven(pipeline)
    audited(pipeline, NOW - timedelta(hours=1), 910_000, 910_000, 90_000)
    audit = audited(pipeline, NOW, 1_000_000, 1_000_000, 90_000)
    owed(pipeline, audit, 90_000, NOW - timedelta(hours=14))
    by_rest, by_command, page, code = told(sign_in("viewer"))
    assert moments(by_rest) == moments(by_command) == ("ok", 36_000, at(21, 30), at(21, 0))
    assert "must start by 21:30 UTC; decide by 21:00 UTC" in page
    assert (by_rest["pace"]["is_delivering"], code) == (True, 0)


def test_case_3_nothing_owed_says_what_a_stop_now_would_leave(sign_in: Callable[..., Client]) -> None:
    pipeline = make({"memory_seconds": DAY})
    redriven(pipeline)
    audited(pipeline, NOW - timedelta(minutes=80), 910_000, 910_000, 0)
    audited(pipeline, NOW - timedelta(minutes=20), 1_000_000, 1_000_000, 0)
    by_rest, by_command, page, code = told(sign_in("viewer"))
    left = 23 * 3600 + 40 * 60
    assert moments(by_rest) == moments(by_command) == ("ok", left, at(6, 40, 2), at(6, 10, 2))
    assert (by_rest["is_hypothetical"], by_rest["pace"]["owed"], code) == (True, "30000", 0)
    assert "Nothing is owed. If the relay stopped now, a recovery would have to start by 2026-03-02 06:40 UTC" in page


def test_case_4_window_of_five_minutes_is_gone_and_was_never_designed(sign_in: Callable[..., Client]) -> None:
    pipeline = make({"memory_seconds": 300})
    audit = audited(pipeline, NOW, 10, 9, 1)
    owed(pipeline, audit, 1, NOW - timedelta(minutes=2))
    by_rest, by_command, page, code = told(sign_in("viewer"))
    assert moments(by_rest) == moments(by_command) == ("gone", 180, None, None)
    assert code == 1
    assert by_rest["design"]["measured"]["holds"] == by_rest["design"]["declared"]["holds"] == "fails"
    assert "A recovery that starts now may end too late." in page
    assert "too late to be safe" in sign_in("viewer").get("/?headroom=gone").content.decode()


LIVE: dict[str, Any] = {
    # number -> sink, source, pipeline; the oldest owed event, how many are owed; what comes out
    "5": (
        {"memory_entries": 1_000_000, "memory_peak_per_second": 50},
        {},
        {},
        (NOW - timedelta(seconds=8000), 60_000),
        ("ok", 12_000, (14, 35), (14, 5)),
    ),
    "6": (
        {},
        {
            **dict.fromkeys(ROOM),
            "retention": "purges",
            "purges_after_seconds": 6 * 3600,
            "purges_from": "mark",
        },
        {},
        (NOW - timedelta(hours=4), 6_000),
        ("ok", 7_200, (13, 44), (13, 14)),
    ),
    "8": (
        {},
        {"disk_free_bytes": 12 * GIB, "disk_growth_bytes_per_hour": 6 * GIB},
        {},
        (NOW - timedelta(hours=4), 12_000),
        ("ok", 7_200, (13, 43), (13, 13)),
    ),
    "10": (
        {"memory_seconds": 3600},
        {},
        {"clock_error_seconds": 300},
        (NOW - timedelta(minutes=30), 24_000),
        ("low", 1_500, (12, 6), (11, 36)),
    ),
}


@pytest.mark.parametrize("number", LIVE)
def test_acceptance_case_from_rows_is_the_same_everywhere(sign_in: Callable[..., Client], number: str) -> None:
    sink, source, options, (oldest, count), (word, left, start, decide) = LIVE[number]
    pipeline = make(sink, source, **options)
    redriven(pipeline)
    audited(pipeline, NOW - timedelta(hours=1), 910_000, 910_000, count)
    owed(pipeline, audited(pipeline, NOW, 1_000_000, 1_000_000, count), count, oldest)
    by_rest, by_command, page, code = told(sign_in("viewer"))
    assert moments(by_rest) == moments(by_command) == (word, left, at(*start), at(*decide))
    assert code == (0 if word == "ok" else 1)
    assert f"must start by {start[0]}:{start[1]:02} UTC" in page


def test_nothing_declared_is_unknown_everywhere_and_never_for_ever(sign_in: Callable[..., Client]) -> None:
    pipeline = make(dict.fromkeys(ROOM), dict.fromkeys(ROOM))
    redriven(pipeline)
    audited(pipeline, NOW, 10, 10, 0)
    by_rest, _, page, code = told(sign_in("viewer"))
    assert moments(by_rest) == ("unknown", None, None, None)
    assert code == 3
    assert {term["reach"] for term in by_rest["terms"]} == {"unknown"}
    assert "How long a recovery may still wait is not known" in page
    assert "nothing is known" in sign_in("viewer").get("/?headroom=unknown").content.decode()


def test_without_any_audit_it_is_unknown(sign_in: Callable[..., Client]) -> None:
    make({"memory_seconds": DAY})
    by_rest, _, page, code = told(sign_in("viewer"))
    assert (by_rest["headroom"], by_rest["as_of"], code) == ("unknown", None, 3)
    assert "no audit has told what is owed" in page


def test_lost_event_that_nothing_dates_leaves_it_unknown() -> None:
    pipeline = make({"memory_seconds": DAY})
    redriven(pipeline)
    audited(pipeline, NOW - timedelta(hours=1), 1, 1, 0)
    audit = audited(pipeline, NOW, 10, 9, 1)
    assert pipeline_headroom(pipeline, NOW).anchor is None, "the ledger remembers none of it"
    owed(pipeline, audit, 1, None)
    found = pipeline_headroom(pipeline, NOW)
    assert (found.anchor, found.found.standing) == (None, "unknown")


def test_frontier_below_the_newest_event_certifies_no_moment_of_its_own() -> None:
    pipeline = make({"memory_seconds": DAY})
    audited(pipeline, NOW - timedelta(hours=2), 5, 5, 0)
    audited(pipeline, NOW, 10, 10, 0, head_says="43")
    assert pipeline_headroom(pipeline, NOW).certified_to == NOW - timedelta(hours=2)


def test_undeclared_clocks_make_every_age_unknown() -> None:
    pipeline = make({"memory_seconds": DAY}, clock_error_seconds=None)
    redriven(pipeline)
    audited(pipeline, NOW - timedelta(hours=1), 9, 9, 0)
    audited(pipeline, NOW, 10, 10, 0)
    found = pipeline_headroom(pipeline, NOW).found
    assert (found.standing, found.is_left_bound) == ("unknown", True)


def test_rows_gone_at_the_source_are_gone_whatever_is_declared() -> None:
    pipeline = make({"memory_seconds": DAY})
    audit = audited(pipeline, NOW, 10, 9, 1)
    owed(pipeline, audit, 1, NOW, is_content_gone=True)
    found = pipeline_headroom(pipeline, NOW).found
    assert (found.standing, found.is_expired) == ("gone", True)


def test_rows_gone_at_the_source_that_the_archive_holds_are_not_gone_and_promise_nothing_of_the_rest() -> None:
    """The source drops rows that are owed: how long the others stay is not known, whatever it declares."""
    pipeline = make({"memory_seconds": DAY})
    redriven(pipeline)
    audited(pipeline, NOW - timedelta(hours=1), 9, 9, 0)
    audit = audited(pipeline, NOW, 10, 9, 1, lost_archived="1")
    owed(pipeline, audit, 1, NOW, is_content_gone=True)
    found = pipeline_headroom(pipeline, NOW).found
    assert (found.standing, found.is_expired) == ("unknown", False)
    assert "The archive holds 1 of the owed events" in found.terms[0].term.says
    own = next(one for one in found.terms if one.term.forgets is Forgets.ARCHIVE)
    assert (own.standing, own.left) == ("ok", None) and "until each of them is settled" in own.term.says


def test_approval_that_waits_is_shown_with_its_end_and_takes_nothing_away(sign_in: Callable[..., Client]) -> None:
    pipeline = make({"memory_seconds": DAY}, approval_seconds=3600)
    redriven(pipeline)
    audited(pipeline, NOW - timedelta(hours=1), 910_000, 1_000_000, 0)
    owed(pipeline, audited(pipeline, NOW, 1_000_000, 1_000_000, 90_000), 90_000, NOW - timedelta(hours=14))
    without = pipeline_headroom(pipeline, NOW).found
    written = {
        "author": "ada",
        "created_at": NOW,
        "digest": "d",
        "batch_count": 1,
        "frontier": {"0": {"position": "42", "ordinal": "0"}},
        "computed_at": NOW,
    }
    approved = {"approved_by": "grace", "approved_at": NOW, "approved_digest": "d"}
    plan = Plan.objects.create(pipeline=pipeline, state=PlanState.APPROVED, **written, **approved)
    by_rest, by_command, page, code = told(sign_in("viewer"))
    assert moments(by_rest) == moments(by_command) == ("ok", 36_000, at(19, 36), at(19, 6))
    assert "holds until 2026-03-01 13:00 UTC" in page and code == 0
    about_to_send = sign_in("viewer").get(f"/plans/{plan.pk}/").content.decode()
    assert "10 h left; decide by 19:06 UTC" in about_to_send, "RC-50: the time left stands where somebody sends"
    with_it = pipeline_headroom(pipeline, NOW)
    assert (with_it.found.left, with_it.found.last_start) == (without.left, without.last_start)
    assert with_it.holds_until <= NOW + timedelta(hours=1)
    clock_stand(NOW + timedelta(hours=1, seconds=1))
    assert "The approval that waits" not in told(sign_in("viewer"))[2], "it lapsed"


def test_rows_gone_that_the_archive_lacks_are_gone_though_it_holds_others() -> None:
    pipeline = make({"memory_seconds": DAY})
    audit = audited(pipeline, NOW, 10, 8, 2, lost_archived="1")
    owed(pipeline, audit, 2, NOW, is_content_gone=True)
    found = pipeline_headroom(pipeline, NOW).found
    assert (found.standing, found.is_expired) == ("gone", True)


def test_old_look_takes_the_relay_for_stopped() -> None:
    pipeline = make({"memory_seconds": DAY})
    redriven(pipeline)
    audited(pipeline, NOW - timedelta(hours=4), 910_000, 910_000, 10)
    audit = audited(pipeline, NOW - timedelta(hours=3), 1_000_000, 1_000_000, 10)
    owed(pipeline, audit, 10, NOW - timedelta(hours=5))
    found = pipeline_headroom(pipeline, NOW)
    assert found.pace.growth_per_second == 25
    assert found.pace.owed == 10 + 25 * 3 * 3600


def test_each_part_of_a_recovery_has_an_overhead_of_its_own() -> None:
    pipeline = make({"memory_seconds": DAY}, batch_limit=2)
    redriven(pipeline)
    audited(pipeline, NOW - timedelta(hours=1), 9, 9, 5)
    audit = audited(pipeline, NOW, 20, 20, 5)
    owed(pipeline, audit, 5, NOW - timedelta(hours=14))
    found = pipeline_headroom(pipeline, NOW)
    assert found.pace.overhead == timedelta(minutes=15)
    assert found.found.part == 3, "the last part has all the others before it, and events that are four seconds younger"
    assert found.found.last_start == NOW + timedelta(hours=10, minutes=-25, seconds=4) - timedelta(seconds=0.05)


def test_commands_name_every_pipeline_and_exit_as_the_worst() -> None:
    make()
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("headroom", stdout=out)
    assert ended.value.code == 3
    assert out.getvalue().startswith("mail: headroom unknown")


def test_pipeline_that_is_not_there_is_said(sign_in: Callable[..., Client]) -> None:
    assert sign_in("viewer").get("/api/v1/pipelines/nobody/headroom").status_code == 404
    with pytest.raises(SystemExit) as ended:
        call_command("headroom", "nobody", stderr=io.StringIO())
    assert ended.value.code == 2
