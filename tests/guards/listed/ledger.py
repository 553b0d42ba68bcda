"""What an audit once saw decides what later ones say."""

from __future__ import annotations

from tests.guards.guard import Guard

DOMAIN = "recovery_api/domain/ledger"
UNIT = "tests/unit/ledger/test_lanes.py"
ENDS = "tests/integration/recovery/test_ledger.py"
CONTROL = "tests/integration/control/test_ledger.py"
REMEMBERED = "workers/evidence/remembered.py"

GUARDS = (
    Guard(
        "an event that was owed is forgotten with its row",
        REMEMBERED,
        "    if not gone.num_rows:\n",
        "    if True:\n",
        (f"{ENDS}::test_t1_an_event_once_found_owed_stays_owed_when_its_row_is_purged",),
    ),
    Guard(
        "a relay that delivers and deletes while an audit reads looks like a loss",
        REMEMBERED,
        "        since = _asked_again(spec, range_, missing)\n",
        "        since = schemas.ACCEPTED.empty_table()\n",
        (f"{ENDS}::test_t1_a_relay_that_delivers_and_deletes_while_an_audit_reads_is_no_loss",),
    ),
    Guard(
        "the frontier goes back with the newest row, and what was owed above it is not judged",
        "workers/evidence/known.py",
        "    return chosen if known is None or known.frontier is None else max(chosen, known.frontier)\n",
        "    return chosen\n",
        (f"{ENDS}::test_t1_the_newest_row_purged_takes_nothing_back",),
    ),
    Guard(
        "what went before anybody saw it is forgotten by the next audit",
        f"{DOMAIN}/lanes.py",
        "    unseen = new.with_(earlier) if new else earlier\n",
        "    unseen = new\n",
        (f"{UNIT}::test_what_was_seen_may_go_and_what_came_and_went_between_two_audits_may_not",),
    ),
    Guard(
        "rows that came and went between two audits are taken to be rolled back",
        f"{DOMAIN}/lanes.py",
        "    return None if is_next or known.lowest == lowest else Unseen(known.frontier, lowest)\n",
        "    return None\n",
        (f"{UNIT}::test_what_was_seen_may_go_and_what_came_and_went_between_two_audits_may_not",),
    ),
    Guard(
        "another scope takes what went before it to have been seen",
        f"{DOMAIN}/lanes.py",
        "    return LaneKnown(earliest=known.earliest, unseen=known.unseen)\n",
        "    return LaneKnown(unseen=known.unseen)\n",
        (f"{UNIT}::test_another_epoch_forgets_what_was_seen_and_keeps_what_was_not",),
    ),
    Guard(
        "acceptances that were seen and are others now are not noticed",
        f"{DOMAIN}/lanes.py",
        "    if dict(known.prefix) == dict(found.prefix_then):\n",
        "    if now == then:\n",
        (f"{UNIT}::test_a_base_that_is_lost_stays_lost_until_an_audit_in_full_by_name",),
    ),
    Guard(
        "an audit that finds its base gone takes what is left as the new one",
        f"{DOMAIN}/lanes.py",
        "    elif base_lost(known, found) is not None and not is_rebased:\n",
        "    elif False:\n",
        (
            f"{UNIT}::test_a_base_that_is_lost_stays_lost_until_an_audit_in_full_by_name",
            f"{ENDS}::test_t20_an_acceptance_taken_away_and_accepted_again_is_unknown_until_an_audit_in_full",
        ),
    ),
    Guard(
        "an item kept with an evidence that is gone is forgotten",
        f"{DOMAIN}/lanes.py",
        "    if not known.is_whole and not found.has_evidence:\n",
        "    if False:\n",
        (f"{UNIT}::test_items_kept_with_an_evidence_that_is_gone_may_not_be_concluded_from",),
    ),
    Guard(
        "two readings at once both add to the ledger",
        "recovery_api/services/ledger.py",
        "    if ledger_token(pipeline) != learnt.token:\n",
        "    if False:\n",
        (f"{CONTROL}::test_a_reading_that_finds_the_ledger_moved_on_records_nothing",),
    ),
    Guard(
        "items beyond what is kept as rows are left out silently",
        "recovery_api/services/ledger.py",
        "    if is_cut:\n",
        "    if False:\n",
        (f"{CONTROL}::test_what_does_not_fit_into_rows_lies_with_the_evidence_and_that_is_said",),
    ),
    Guard(
        "a restore leaves what was seen before it standing",
        "recovery_api/services/sinks.py",
        "        ledger_void(pipeline, RESTORED, now)\n",
        "",
        (f"{CONTROL}::test_a_sink_found_restored_voids_the_ledger_of_its_pipeline",),
    ),
)
