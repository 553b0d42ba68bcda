"""What headroom may not promise: a moment that nothing certifies, an age by clocks that nobody compared, rows that are gone."""

from __future__ import annotations

from tests.guards.guard import Guard

SELECTED = "recovery_api/selectors/headroom.py"
ROWS = "tests/integration/pages/test_headroom.py"
UNIT = "tests/unit/headroom"

GUARDS = (
    Guard(
        "a lost event that nothing dates is taken for a young one",
        SELECTED,
        "owed.remembered >= newest.lost and ",
        "",
        (f"{ROWS}::test_lost_event_that_nothing_dates_leaves_it_unknown",),
    ),
    Guard(
        "an old look is taken for one at a relay that delivers",
        SELECTED,
        "arrivals_of(audits) if is_current else _stopped(arrivals_of(audits))",
        "arrivals_of(audits)",
        (f"{ROWS}::test_old_look_takes_the_relay_for_stopped",),
    ),
    Guard(
        "a frontier below the newest event certifies its own moment",
        "recovery_api/domain/headroom/observed.py",
        " and (lane not in frontier or frontier[lane] < head):",
        " and (lane not in frontier):",
        (f"{ROWS}::test_frontier_below_the_newest_event_certifies_no_moment_of_its_own",),
    ),
    Guard(
        "an age is told by clocks that nobody compared",
        "recovery_api/domain/headroom/terms.py",
        "    if clock is None:\n        return Term(forgets, Reach.UNKNOWN",
        "    if False:\n        return Term(forgets, Reach.UNKNOWN",
        (f"{ROWS}::test_undeclared_clocks_make_every_age_unknown",),
    ),
    Guard(
        "what the archive lacks counts as held",
        SELECTED,
        "owed.gone_count - archived, archived, now)",
        "0, archived, now)",
        (f"{ROWS}::test_rows_gone_that_the_archive_lacks_are_gone_though_it_holds_others",),
    ),
    Guard(
        "what the archive holds promises time to the rest",
        "recovery_api/domain/headroom/declared.py",
        "        return [unknown(Forgets.SOURCE_PURGE, says), _disk(",
        "        return [no_limit(Forgets.SOURCE_PURGE, says), _disk(",
        (f"{ROWS}::test_rows_gone_at_the_source_that_the_archive_holds_are_not_gone_and_promise_nothing_of_the_rest",),
    ),
    Guard(
        "rows that are gone can still be sent",
        "recovery_api/domain/headroom/declared.py",
        "    if gone_count:\n",
        "    if False:\n",
        (f"{ROWS}::test_rows_gone_at_the_source_are_gone_whatever_is_declared",),
    ),
)
