"""What somebody reads first: what is so, and by when to do what."""

from __future__ import annotations

from datetime import timedelta

from recovery_api.domain.headroom.live import Headroom, Pace, headroom
from recovery_api.domain.headroom.observed import Arrivals
from recovery_api.domain.headroom.says import end_says, headroom_says, headroom_short, pace_says
from recovery_api.domain.headroom.seen import ClockSeen, EndSeen
from recovery_api.domain.headroom.terms import Forgets, by_room, no_limit, unknown
from tests.unit.headroom.cases import CASES, NOW, hours, memory, minutes, pace


def case(number: str) -> tuple[Headroom, Pace]:
    found = next(one for one in CASES if one.number == number)
    return found.judged(), found.pace


def says(found: Headroom, of: Pace, *, is_hypothetical: bool = False) -> str:
    return headroom_says(found, of, NOW, is_hypothetical=is_hypothetical, is_read=True)


def test_time_to_decide_names_both_moments_and_what_comes_after() -> None:
    assert says(*case("1")) == (
        "A recovery of about 90,000 events must start by 19:36 UTC; decide by 19:06 UTC, in 7 h 6 min. If it starts"
        " later, it may still be sending when the sink no longer knows what it accepted."
    )


def test_low_says_start_now() -> None:
    assert says(*case("7")) == (
        "A recovery of about 12,000 events must start by 12:03 UTC. Start it now: since 11:33 UTC there is no time left"
        " to decide."
    )


def test_gone_says_may_and_sends_nobody_to_send_again() -> None:
    said = says(*case("4"))
    assert said.startswith("A recovery that starts now may end too late.")
    assert said.endswith("Look at both ends before you send anything again.")


def test_gone_slot_says_that_it_may_be_gone_already() -> None:
    said = says(*case("9, slot lost"))
    assert said.startswith("Some of what a recovery needs may be gone already. The slot was invalidated.")


def test_unknown_says_at_most() -> None:
    found, of = case("9")
    assert says(found, of).startswith(
        "How long a recovery may still wait is not known: at most 10 h; start by 19:36 UTC at the latest."
    )
    assert headroom_short(found, NOW) == "at most 10 h left; decide by at most 19:06 UTC"


def test_unknown_rate_is_named() -> None:
    of = pace(90_000, rate=None)
    assert "how fast a recovery sends" in says(headroom([memory(hours(24), NOW)], of, NOW), of)


def test_nothing_owed_asks_nobody_to_start_anything() -> None:
    for keeps, begins in (
        (hours(24), "a recovery would have to start by"),
        (minutes(20), "sooner than a person may take"),
    ):
        said = says(headroom([memory(keeps, NOW)], pace(0), NOW), pace(0), is_hypothetical=True)
        assert said.startswith("Nothing is owed.") and begins in said and "Start it now" not in said
    said = says(headroom([memory(minutes(5), NOW)], pace(0), NOW), pace(0), is_hypothetical=True)
    assert said.startswith("Nothing is owed. If the relay stopped now, even a recovery at once might end too late.")


def test_no_limit_and_nothing_known_are_two_things() -> None:
    limitless = headroom([no_limit(Forgets.SOURCE_PURGE, "It keeps them.")], pace(0), NOW)
    blind = headroom([unknown(Forgets.SLOT, "Not read.")], pace(0), NOW)
    assert (headroom_short(limitless, NOW), headroom_short(blind, NOW)) == ("no limit", "nothing is known")
    assert says(limitless, pace(0)) == "Nothing limits how long a recovery may wait."


def test_part_that_binds_is_said_as_low() -> None:
    assert headroom_short(case("11")[0], NOW) == "1 h left; decide by 11:55 UTC"


def test_never_read_says_so() -> None:
    found = headroom([memory(hours(24), NOW)], pace(0), NOW)
    assert "no audit has told" in headroom_says(found, pace(0), NOW, is_hypothetical=False, is_read=False)
    assert found.left == timedelta(days=1)


def test_what_is_too_far_away_is_no_number_of_days() -> None:
    limitless = by_room(Forgets.SOURCE_DISK, 2**60, 1, NOW, "A large disk.")
    found = headroom([limitless], pace(0), NOW)
    assert headroom_short(found, NOW) == "more than 50 years left; decide by in more than 50 years"


def test_peak_is_told_with_what_is_so_lately_beside_it() -> None:
    assert pace_says(pace(10), Arrivals(25.0, 3.25, False)) == [
        "Up to 25.0 events a second come in, lately 3.2.",
        "The slowest recent recovery sent 100.0 events a second.",
        "A recovery takes 5 min besides sending.",
    ]
    assert pace_says(Pace(0, None, None, None, None, None), Arrivals(None, None, False)) == []


def test_clock_is_never_told_more_exactly_than_it_was_measured() -> None:
    seen = EndSeen(NOW, ClockSeen(timedelta(microseconds=-200), timedelta(microseconds=400)), table_bytes=32_768)
    assert end_says(seen) == "Its clock is 0.000 s behind, give or take 0.001 s. Its table takes 32,768 bytes."
    assert end_says(EndSeen(NOW, problem="It could not be looked at: no.")) == "It could not be looked at: no."
    assert end_says(EndSeen(NOW)) == "Its clock was not measured."
