from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.alerts.causes import OF_OUTCOMES, Cause, Severity
from recovery_api.domain.alerts.evaluation import (
    INSTALLATION,
    REOPENS_WITHIN,
    Change,
    Held,
    Observed,
    is_quiet_after_reopening,
    observe,
)
from recovery_api.domain.outcomes import Alert

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def seen(minutes: float, is_shown: bool, cause: Cause = Cause.NO_WORKER, **more: object) -> Observed:
    at = NOON + minutes * MINUTE
    return Observed(cause, INSTALLATION, is_shown, at, evidence=f"look:{minutes}", **more)  # type: ignore[arg-type]


def after(*looks: Observed) -> tuple[Held | None, list[Change]]:
    """Each look evaluated at its own time."""
    held, changes = None, []
    for look in looks:
        step = observe(held, look, look.at)
        held = step.held
        if step.change:
            changes.append(step.change)
    return held, changes


def test_every_alert_of_the_table_of_outcomes_is_a_cause_and_every_row_says_all() -> None:
    assert set(OF_OUTCOMES) == set(Alert)
    for cause in Cause:
        assert cause.label and cause.means.endswith(".") and cause.opens.endswith(".") and cause.resolves.endswith(".")


def test_it_opens_at_once_and_resolves_after_two_newer_looks_a_period_apart() -> None:
    held, changes = after(seen(0, True), seen(1, False), seen(1.5, False), seen(2, False))
    assert changes == [Change.OPENED, Change.CLEARING, Change.RESOLVED]
    assert held is not None and held.resolved_at == NOON + 2 * MINUTE


def test_looks_that_are_no_newer_resolve_nothing() -> None:
    opened, _ = after(seen(5, True))
    for minutes in (4, 5):
        assert observe(opened, seen(minutes, False), NOON + 60 * MINUTE).change is None


def test_the_same_clean_evidence_read_again_and_again_is_one_observation() -> None:
    opened, _ = after(seen(0, True))
    clean = seen(1, False)
    held = observe(opened, clean, clean.at).held
    assert observe(held, clean, NOON + 60 * MINUTE).held == held


def test_a_cause_that_shows_itself_in_between_begins_anew() -> None:
    _, changes = after(seen(0, True), seen(1, False), seen(1.5, True), seen(2, False), seen(2.9, False))
    assert Change.RESOLVED not in changes


def test_a_conclusive_look_resolves_alone_but_only_if_it_is_newer() -> None:
    _, changes = after(seen(0, True, Cause.OWED), seen(1, False, Cause.OWED, is_conclusive=True))
    assert changes == [Change.OPENED, Change.RESOLVED]
    opened, _ = after(seen(5, True, Cause.OWED))
    assert observe(opened, seen(1, False, Cause.OWED, is_conclusive=True), NOON).change is None


def test_opening_again_within_half_an_hour_is_the_same_alert_and_pages_nobody_until_it_lasts() -> None:
    held, changes = after(seen(0, True), seen(1, False), seen(2, False), seen(10, True))
    assert changes[-1] is Change.REOPENED
    assert held is not None and held.reopened_count == 1
    assert is_quiet_after_reopening(held, NOON + 20 * MINUTE)
    assert not is_quiet_after_reopening(held, NOON + 10 * MINUTE + REOPENS_WITHIN)


def test_opening_again_later_is_an_alert_of_its_own() -> None:
    resolved, _ = after(seen(0, True), seen(1, False), seen(2, False))
    step = observe(resolved, seen(40, True), NOON + 40 * MINUTE)
    assert step.is_new and step.change is Change.OPENED


def test_what_resolved_it_does_not_open_it_again_and_neither_does_anything_older() -> None:
    resolved, _ = after(seen(0, True), seen(1, False), seen(2, False))
    assert observe(resolved, seen(1.5, True), NOON + 3 * MINUTE).change is None


def test_it_flaps_each_minute_and_is_one_alert_that_never_resolves() -> None:
    _, changes = after(*(seen(number / 2, number % 2 == 0) for number in range(240)))
    assert changes.count(Change.OPENED) == 1
    assert Change.RESOLVED not in changes and Change.REOPENED not in changes


def test_worse_is_a_greater_severity_or_a_number_that_grew_by_its_causes_factor() -> None:
    opened, _ = after(seen(0, True, Cause.OWED, number=10))
    assert observe(opened, seen(1, True, Cause.OWED, number=19), NOON).change is Change.SEEN
    assert observe(opened, seen(1, True, Cause.OWED, number=20), NOON).change is Change.WORSENED
    low, _ = after(seen(0, True, Cause.HEADROOM_LOW))
    step = observe(low, seen(1, True, Cause.HEADROOM_LOW, severity=Severity.CRITICAL), NOON)
    assert step.change is Change.WORSENED
    assert observe(step.held, seen(2, True, Cause.HEADROOM_LOW, severity=Severity.CRITICAL), NOON).change is Change.SEEN


LOOKS = st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.integers(0, 50)), max_size=30)


@given(LOOKS)
def test_what_is_known_never_goes_back_and_a_resolved_alert_was_last_seen_not_to_be_so(
    looks: list[tuple[int, bool, int]],
) -> None:
    held: Held | None = None
    for evaluated, (minutes, is_shown, number) in enumerate(looks):
        before = held
        step = observe(
            held, seen(minutes, is_shown, Cause.OWED, number=number, period=MINUTE), NOON + evaluated * MINUTE
        )
        held = step.held
        if before is None or held is None or step.is_new:
            continue
        assert held.observed_at >= before.observed_at and held.seen_at >= before.seen_at
        if held.resolved_at is not None:
            assert held.clear_at is not None and held.clear_at > held.seen_at
            assert held.observed_at - held.clear_at >= MINUTE or before.resolved_at is not None
        if step.change is None:
            assert held == before


@given(LOOKS)
def test_one_look_twice_is_as_good_as_once(looks: list[tuple[int, bool, int]]) -> None:
    held: Held | None = None
    for minutes, is_shown, number in looks:
        look = seen(minutes, is_shown, Cause.HAZARD, number=number, period=MINUTE)
        held = observe(held, look, look.at).held
        again = observe(held, look, look.at)
        assert again.held is None or held is None or replace(again.held, severity=held.severity) == held
        assert again.change is None
