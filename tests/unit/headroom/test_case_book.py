"""Cases of the case book that headroom answers: a window of minutes, a slot, keys that are forgotten, a table that only
grows. Now is 12:00; margin 10 min, operator delay 30, overhead 5, 100/s."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.headroom.live import headroom
from recovery_api.domain.headroom.seen import EndSeen, SlotSeen, slot_terms
from recovery_api.domain.headroom.terms import Forgets, by_room, slot_lost
from recovery_api.domain.purging import Answer, Open, Owing, purge_said
from tests.unit.headroom.cases import GIB, NOW, hours, memory, minutes, pace
from tests.unit.test_purging import NOW as AT
from tests.unit.test_purging import look
from workers.evidence.kernel import LaneQuestion, judge_block

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("since_sent", "left", "is_expired"),
    [
        (minutes(5) - SECOND, SECOND, False),
        (minutes(5), timedelta(0), True),
        (minutes(5) + SECOND, -SECOND, True),
        (minutes(1), minutes(4), False),
    ],
    ids=["4:59", "5:00", "5:01", "requeued after a minute"],
)
def test_rc_50_a_window_of_five_minutes_is_over_when_it_is_over(
    since_sent: timedelta, left: timedelta, is_expired: bool
) -> None:
    """Nobody can decide and recover within five minutes: the standing is *gone* while the window still stands, and it
    counts from the first send, whether or not that was answered."""
    found = headroom([memory(minutes(5), NOW - since_sent)], pace(1), NOW)
    assert (found.standing, found.left, found.is_expired) == ("gone", left, is_expired)


def test_rc_50_a_retry_that_was_accepted_again_is_a_duplicate_and_one_that_was_absorbed_is_not() -> None:
    digest = pa.array([bytes(32)], pa.binary(32))
    history = pa.table({"position": [1], "payload_digest": digest})
    question = LaneQuestion("0", Coordinate(1), journal_head=Coordinate(1))
    absorbed = judge_block(question, history, pa.table({"position": [1], "entry": [100], "payload_digest": digest}))
    twice = pa.table({"position": [1, 1], "entry": [100, 140], "payload_digest": pa.concat_arrays([digest, digest])})
    again = judge_block(question, history, twice)
    assert (absorbed.counts["duplicate_payloads"], again.counts["duplicate_payloads"]) == (0, 1)
    assert again.findings["entry"].to_pylist() == [100]


def test_rc_63_a_bounded_slot_has_minutes_an_unbounded_one_the_disk_and_a_lost_one_nothing() -> None:
    bounded = by_room(Forgets.SLOT, 2 * GIB, 6 * GIB, NOW, "18 of 20 GiB are kept.")
    inactive = by_room(Forgets.SOURCE_DISK, 12 * GIB, 6 * GIB, NOW, "The slot is inactive and keeps everything.")
    left = [headroom([term], pace(12_000), NOW).left for term in (bounded, inactive)]
    assert left == [minutes(20), hours(2)]
    together = headroom([bounded, inactive, slot_lost("wal_status is lost.")], pace(12_000), NOW)
    assert together.standing == "gone"


def test_rc_63_a_slot_that_does_not_grow_is_no_division_by_zero() -> None:
    with pytest.raises(ValueError, match="highest growth"):
        by_room(Forgets.SLOT, 2 * GIB, 0, NOW, "Nothing is written.")
    (still,) = slot_terms("s4", EndSeen(NOW, slot=SlotSeen("s4", room_bytes=2 * GIB)), False, 0.0, None, NOW)
    assert (still.reach, "at that rate it lasts without limit" in still.says) == ("unknown", True)


def test_rc_68_a_key_that_lasts_a_day_says_for_each_event_whether_a_re_drive_still_meets_it() -> None:
    """A run of 25 min at 100/s (150,000 events less its overhead and margin). Sent 30 h ago: the key protects nothing.
    Sent 2 h ago: it does. Sent 23 h 50 min ago: the run would end after the key."""
    run = pace(60_000)
    first, second, fourth = (
        headroom([memory(hours(24), NOW - sent)], run, NOW)
        for sent in (hours(30), hours(2), timedelta(hours=23, minutes=50))
    )
    assert (first.standing, first.is_expired) == ("gone", True)
    assert (second.standing, second.left) == ("ok", hours(22))
    assert (fourth.standing, fourth.left, fourth.is_expired) == ("gone", minutes(10), False)


def test_rc_68_at_least_a_day_is_no_more_than_a_day() -> None:
    assert headroom([memory(hours(24), NOW - hours(24))], pace(1), NOW).is_expired


def test_rc_76_an_outbox_that_only_grows_has_the_time_until_its_disk_is_full() -> None:
    full = by_room(Forgets.SOURCE_DISK, 60 * GIB, GIB, NOW, "60 GiB are free, and 1 GiB an hour comes.")
    assert headroom([full], pace(2_000), NOW).left == hours(60)


def test_rc_76_what_is_verified_may_be_purged_and_what_the_relay_merely_claims_may_not() -> None:
    """Verified up to 39,000,000; the relay says 39,998,000; the sink remembers, and may be restored over, a day."""
    lost = Open(Coordinate(39_500_000), "Event 39,500,000 is lost.", "Recover it.")
    looks = [look(1, 39_998_000, lowest=lost), look(25 * 60, 39_000_000, standing=False)]
    owing = Owing("mail", "letters", minutes(15), looks, restore_window=hours(24))
    may = purge_said(owing, Coordinate(39_000_000), "39000000", AT)
    claimed = purge_said(owing, Coordinate(39_998_000), "39998000", AT)
    assert (may.answer, claimed.answer) == (Answer.YES, Answer.NO)
    assert "39,500,000" in claimed.says
