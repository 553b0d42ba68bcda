"""The design check: declared horizon beside the planned worst case."""

from __future__ import annotations

from datetime import timedelta

from recovery_api.domain.headroom.design import Holds, Step, catch_up, design_check
from tests.unit.headroom.cases import hours, minutes


def _steps(catching_up: timedelta | None) -> list[Step]:
    return [
        Step("max_outage", hours(4)),
        Step("operator_delay", minutes(30)),
        Step("replay_catchup", catching_up, is_measured=True),
        Step("margin", minutes(10)),
    ]


def test_day_outlasts_four_hours_of_outage() -> None:
    found = design_check(hours(24), _steps(minutes(20)))
    assert (found.holds, found.spare, found.missing) == (Holds.HOLDS, hours(19), ())


def test_five_minutes_fail_even_where_something_is_unknown() -> None:
    assert design_check(minutes(5), _steps(None)).holds is Holds.FAILS


def test_equal_is_not_longer() -> None:
    assert design_check(hours(5), _steps(minutes(20))).holds is Holds.FAILS


def test_undeclared_memory_is_unknown_and_named() -> None:
    found = design_check(None, _steps(None))
    assert (found.holds, found.missing, found.spare) == (Holds.UNKNOWN, ("horizon", "replay_catchup"), None)


def test_unknown_step_leaves_at_most_the_rest() -> None:
    found = design_check(hours(24), _steps(None))
    assert (found.holds, found.spare) == (Holds.UNKNOWN, timedelta(hours=19, minutes=20))


def test_catch_up_is_what_came_in_meanwhile_at_the_rate_of_a_re_drive() -> None:
    assert catch_up(25, hours(4), minutes(30), 100, minutes(5)) == timedelta(seconds=4050 + 300)


def test_catch_up_without_a_rate_is_unknown() -> None:
    assert catch_up(25, hours(4), minutes(30), None, minutes(5)) is None
    assert catch_up(None, hours(4), minutes(30), 100, minutes(5)) is None
    assert catch_up(25, hours(4), minutes(30), 0, minutes(5)) is None
