"""Audits by themselves: when they are due, and what they may say."""

from __future__ import annotations

from tests.guards.guard import Guard

DOMAIN = "recovery_api/domain/schedules.py"
SERVICE = "recovery_api/services/schedules.py"
UNIT = "tests/unit/test_schedules.py"
CONTROL = "tests/integration/control/test_schedules.py"
LEFT_ALONE = "tests/integration/recovery/test_schedules.py"

GUARDS = (
    Guard(
        "a scheduled verdict stands at a frontier that had no window yet",
        DOMAIN,
        "    old = [pin for pin in pins if now - pin.at >= window]\n    found:",
        "    old = list(pins)\n    found:",
        (f"{UNIT}::test_a_verdict_stands_at_the_newest_frontier_that_is_a_window_old",),
    ),
    Guard(
        "the head is pinned, and what commits late below it is owed at once",
        "workers/recovery/pinning.py",
        "PinnedLane(min(safe.coordinate, reading.head), safe.incarnation)",
        "PinnedLane(reading.head, safe.incarnation)",
        (f"{LEFT_ALONE}::test_rc02_a_gap_that_is_open_is_neither_owed_nor_passed_over",),
    ),
    Guard(
        "a frontier of another incarnation is judged at",
        "workers/evidence/pinning.py",
        "    if pinned is None or safe.coordinate is None or pinned.incarnation != safe.incarnation:\n",
        "    if pinned is None or safe.coordinate is None:\n",
        (f"{LEFT_ALONE}::test_rc60_a_frontier_of_the_table_before_says_nothing_of_the_one_that_took_its_name",),
    ),
    Guard(
        "two sweeps at once ask for the same audit",
        SERVICE,
        "        if not mine.update(next_due_at=following, last_due_at=due, due_at=unanswered):\n            return False\n",
        "        mine.update(next_due_at=following, last_due_at=due, due_at=unanswered)\n",
        (f"{CONTROL}::test_a_sweep_that_read_the_row_before_another_asked_and_was_answered_asks_for_nothing",),
    ),
    Guard(
        "what is due next is counted from when a worker started",
        SERVICE,
        "        last = (schedule.last_due_at if schedule else None) or pipeline.created_at\n",
        "        last = now\n",
        (
            f"{CONTROL}::test_a_daily_audit_outlives_ten_restarts_a_day_and_never_sleeps_a_day",
            f"{CONTROL}::test_another_period_counts_from_what_was_due_last",
        ),
    ),
    Guard(
        "an overdue pipeline keeps the word of its last audit",
        "recovery_api/domain/statuses.py",
        "    if overdue:\n        return Decision(",
        "    if False:\n        return Decision(",
        ("tests/unit/test_statuses.py::test_overdue_is_unknown_and_says_since_when_whatever_the_last_audit_found",),
    ),
    Guard(
        "schedules come before what people ask for",
        "recovery_api/services/intents.py",
        "        When(arguments__is_scheduled=True, then=Value(int(Urgency.BY_ITSELF))),\n",
        "",
        (f"{CONTROL}::test_recoveries_and_people_come_before_schedules",),
    ),
    Guard(
        "a wait is counted from another incarnation's pin",
        DOMAIN,
        "one.incarnation == event.incarnation and event.coordinate <= one.coordinate",
        "event.coordinate <= one.coordinate",
        (f"{UNIT}::test_a_wait_is_counted_from_the_first_pin_above_and_never_from_another_incarnations",),
    ),
    Guard(
        "a wrong estimate fills the worker's memory",
        "workers/spark/on_demand.py",
        "        if most is not None and rows > most:\n            raise TooManyRows\n",
        "",
        ("tests/unit/test_on_demand.py::test_a_wrong_estimate_is_noticed_before_the_rest_is_read",),
    ),
)
