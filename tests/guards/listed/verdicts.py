"""What may be said, and of what."""

from __future__ import annotations

from tests.guards.guard import Guard

DOMAIN = "recovery_api/domain"
UNIT = "tests/unit"

GUARDS = (
    Guard(
        "exactly once is said on a ground that is not proven",
        f"{DOMAIN}/verdicts.py",
        "    return Status.EXACTLY_ONCE_GIVEN if evidence.given else Status.EXACTLY_ONCE\n",
        "    return Status.EXACTLY_ONCE\n",
        (f"{UNIT}/test_verdicts.py::test_t5_only_a_proven_ground_is_exactly_once_and_what_was_given_is_named",),
    ),
    Guard(
        "exactly once is said of nothing",
        f"{DOMAIN}/verdicts.py",
        "    return (*nothing, *_unknown_because",
        "    return (*_unknown_because",
        (f"{UNIT}/test_verdicts.py::test_t4_nothing_judged_is_unknown_and_says_so",),
    ),
    Guard(
        "exactly once is said of a record that was not read whole",
        f"{DOMAIN}/verdicts.py",
        "    if evidence.unread or not evidence.journal_reaches:\n        return Status.UNKNOWN\n",
        "",
        (f"{UNIT}/test_verdicts.py::test_status_follows_what_is_certain_then_what_is_unknown",),
    ),
    Guard(
        "a frontier beyond the exported history is a success",
        "workers/judgement.py",
        "    if head is None or head >= question.frontier:\n        return ()\n",
        "    return ()\n",
        (f"{UNIT}/test_judge.py::test_t4_a_frontier_beyond_the_history_is_said_and_is_no_success",),
    ),
    Guard(
        "the frontier's weakness does not reach the verdict",
        "workers/recovery/verdicts.py",
        "            weaknesses=(safe.weakness,) if safe.weakness else (),\n",
        "            weaknesses=(),\n",
        (f"{UNIT}/test_lane_verdicts.py::test_the_frontiers_weakness_and_what_was_given_stand_in_the_lanes_verdict",),
    ),
    Guard(
        "what the frontier was given does not reach the verdict",
        "workers/recovery/verdicts.py",
        "            given=_given(safe) + ",
        "            given=",
        (f"{UNIT}/test_lane_verdicts.py::test_the_frontiers_weakness_and_what_was_given_stand_in_the_lanes_verdict",),
    ),
    Guard(
        "what can pass the fence is not named beside the verdict",
        "workers/recovery/verdicts.py",
        ", *undisciplined_weaknesses(paths)]",
        "]",
        (f"{UNIT}/test_lane_verdicts.py::test_what_can_pass_the_fence_is_a_weakness_of_the_verdict",),
    ),
    Guard(
        "an entry that came after an audit counts as certified by it",
        "workers/evidence/kernel/causes.py",
        "    is_seen = admitted[numbers] < question.admitted_below\n",
        "    is_seen = admitted[numbers] >= 0\n",
        (f"{UNIT}/test_kernel.py::test_an_earlier_audit_certifies_only_the_entries_that_it_saw",),
    ),
    Guard(
        "an entry that an audit doubted counts as certified by it",
        "workers/evidence/kernel/causes.py",
        "    return is_seen & ~_listed(question.doubted, record, numbers)\n",
        "    return is_seen\n",
        (f"{UNIT}/test_kernel.py::test_an_entry_that_an_earlier_audit_doubted_is_doubted_still",),
    ),
    Guard(
        "events that retention dropped undelivered are not said before an approval",
        f"{DOMAIN}/conditions.py",
        "    if evidence.lost_below_floor_count:\n",
        "    if False:\n",
        (f"{UNIT}/test_conditions.py::test_events_that_retention_dropped_undelivered_are_said_before_an_approval",),
    ),
    Guard(
        "a plan is ready at a frontier that is not safe",
        f"{DOMAIN}/conditions.py",
        "    if not evidence.frontier_is_safe:\n",
        "    if False:\n",
        (f"{UNIT}/test_conditions.py::test_what_forbids_applying_is_named_by_its_condition",),
    ),
    Guard(
        "a plan is ready though its record was not read whole",
        f"{DOMAIN}/conditions.py",
        "    holds = evidence.record_is_complete and ",
        "    holds = ",
        (f"{UNIT}/test_conditions.py::test_what_forbids_applying_is_named_by_its_condition",),
    ),
    Guard(
        "a later, shallower success takes back a deeper finding",
        f"{DOMAIN}/statuses.py",
        "    return newer.status is not Status.UNKNOWN and _reaches(newer.frontier, older.frontier)\n",
        "    return newer.status is not Status.UNKNOWN\n",
        (f"{UNIT}/test_statuses.py::test_t10_a_shallower_success_takes_nothing_back_from_a_deeper_finding",),
    ),
    Guard(
        "who finished last decides, not who read last",
        f"{DOMAIN}/statuses.py",
        "    if newer.read_at <= older.read_at:\n        return False\n",
        "",
        (f"{UNIT}/test_statuses.py::test_t10_who_finished_last_does_not_matter_but_when_the_record_was_read",),
    ),
    Guard(
        "a known hazard is hidden while a recovery runs",
        f"{DOMAIN}/statuses.py",
        "    if found.status is Status.HAZARD:\n",
        "    if False:\n",
        (f"{UNIT}/test_statuses.py::test_t11_a_known_hazard_is_shown_whatever_a_recovery_does",),
    ),
    Guard(
        "a status that was read long ago stays green",
        f"{DOMAIN}/statuses.py",
        "    if now - worst.read_at > stale_after:\n",
        "    if False:\n",
        (f"{UNIT}/test_statuses.py::test_stale_is_unknown_and_a_fresher_shallower_success_does_not_hide_it",),
    ),
    Guard(
        "a recovery that was never verified has an outcome",
        f"{DOMAIN}/outcomes.py",
        "    if verified is None or not verified.is_known:\n",
        "    if verified is None:\n",
        (f"{UNIT}/test_next_steps.py::test_outcome_is_the_strongest_word_that_is_true",),
    ),
    Guard(
        "an end that was not read whole does not make the verdict unknown",
        "workers/recovery/verdicts.py",
        "        if not end.is_complete:\n",
        "        if False:\n",
        (f"{UNIT}/test_lane_verdicts.py::test_an_end_that_was_not_read_whole_makes_its_lanes_verdict_unknown",),
    ),
    Guard(
        "what a restored table lost counts as accepted, since an earlier audit saw it",
        "workers/recovery/ledger.py",
        " or known.admitted_below is None:\n",
        ":\n",
        (
            f"{UNIT}/test_lane_verdicts.py::"
            "test_an_earlier_audit_stands_for_what_was_dropped_only_where_the_record_would_show_what_it_lost_since",
        ),
    ),
    Guard(
        "a status without a look of its own is drawn as good",
        f"{DOMAIN}/looks.py",
        "    return TONES.get(status, UNSURE)\n",
        "    return TONES.get(status, TONES[Status.EXACTLY_ONCE])\n",
        (f"{UNIT}/test_words.py::test_a_status_that_has_no_row_is_drawn_unsure_and_never_as_good",),
    ),
    Guard(
        "coordinates that repeat are applied all the same",
        f"{DOMAIN}/conditions.py",
        "    if evidence.coordinates_ascending:\n",
        "    if True:\n",
        (f"{UNIT}/test_conditions.py::test_what_forbids_applying_is_named_by_its_condition",),
    ),
)
