"""What an audit need not read again, and when it must."""

from __future__ import annotations

from tests.guards.guard import Guard

FOLLOWED = "tests/contract/record/test_followed.py"
BLOCKS = "tests/integration/control/test_blocks.py"
KIT = "tests/integration/kit/test_following.py"
AUDITS = "tests/integration/recovery/test_following.py"

GUARDS = (
    Guard(
        "what an earlier snapshot showed is told as new while an older transaction is open",
        "workers/connectors/sinks/kit/following.py",
        " AND NOT pg_visible_in_snapshot(a.admitted_in, {since}::pg_snapshot)",
        "",
        (f"{FOLLOWED}::test_of_two_that_were_open_the_one_that_is_still_open_is_new_once",),
    ),
    Guard(
        "an acceptance below what was judged does not open its block",
        "workers/evidence/increment.py",
        "            open_ = opened_find(held, spec.block_rows // 2) | entered.keys()\n",
        "            open_ = opened_find(held, spec.block_rows // 2)\n",
        (f"{BLOCKS}::test_audits_that_go_on_from_rows_tell_the_ledger_what_ones_in_full_tell_it",),
    ),
    Guard(
        "what was changed in a block beside a late arrival is believed",
        "workers/evidence/segments.py",
        "        is_as_accepted = is_same(read.accepted, fingerprint_join(held.accepted, segment.entered))\n",
        "        is_as_accepted = bool(segment.entered) or is_same(read.accepted, held.accepted)\n",
        (f"{BLOCKS}::test_what_was_changed_in_a_block_that_something_came_into_is_found",),
    ),
    Guard(
        "what was changed above the newest block is believed",
        "workers/evidence/segments.py",
        "    for lane, expected in reach.above.items():\n",
        "    for lane, expected in ():\n",
        (
            "tests/histories/test_histories.py::test_an_acceptance_that_is_changed_above_the_newest_block_is_told_as_a_change",
        ),
    ),
    Guard(
        "a purge opens no block",
        "workers/evidence/increment.py",
        "            open_ |= purged | omitted_find(held, spec.questions[lane])\n",
        "            open_ |= omitted_find(held, spec.questions[lane])\n",
        (f"{BLOCKS}::test_an_audit_goes_on_where_the_source_purged_and_where_omissions_changed",),
    ),
    Guard(
        "a missing index of the record takes the fence away",
        "workers/connectors/sinks/kit/expected.py",
        "        if self.is_of_speed:\n            return False\n",
        "",
        (f"{KIT}::test_an_upgrade_in_a_callers_transaction_leaves_the_index_to_be_made",),
    ),
    Guard(
        "entries that came in last are gone and nobody looks",
        "workers/evidence/newly.py",
        "    if increment is not None and not is_same(fingerprint_join(*again), increment.entries):\n",
        "    if False:\n",
        (f"{AUDITS}::test_entries_of_the_last_increment_that_are_gone_make_the_audit_read_everything",),
        needs_spark=True,
    ),
    Guard(
        "an audit goes on from one that found seen acceptances gone",
        "workers/recovery/following.py",
        "        if lane.found is not None and base_lost(lane.known, lane.found) is not None and not is_rebased:\n",
        "        if False:\n",
        (
            "tests/integration/recovery/test_ledger.py"
            "::test_t20_an_acceptance_taken_away_and_accepted_again_is_unknown_until_an_audit_in_full",
        ),
    ),
    Guard(
        "numbers of a wide range are sent in too few bytes",
        "workers/connectors/postgresql/packed.py",
        "high.position - low.position < 2**31\n",
        "high.position - low.position < 2**40\n",
        (
            "tests/integration/postgresql/test_names_and_coordinates.py"
            "::test_numbers_are_themselves_whatever_range_they_are_asked_for_in",
        ),
    ),
    Guard(
        "a stretch of a pair of columns is read by scanning the whole table",
        "workers/connectors/postgresql/packed.py",
        "    if is_indexed:\n",
        "    if False:\n",
        (
            "tests/integration/postgresql/test_ranges_by_index.py"
            "::test_a_stretch_inside_big_transactions_is_read_by_index_alone",
        ),
    ),
)
