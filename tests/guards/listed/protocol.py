"""Approval, and the recovery's own steps."""

from __future__ import annotations

from tests.guards.guard import Guard

SERVICES = "recovery_api/services"
CONTROL = "tests/integration/control"

GUARDS = (
    Guard(
        "who was taken over moves a recovery that is in the same state again",
        f"{SERVICES}/recoveries.py",
        "filter(id=recovery.id, revision=recovery.revision, **expected)",
        "filter(id=recovery.id, **expected)",
        (f"{CONTROL}/test_recoveries.py::test_a_row_in_the_same_state_that_another_moved_meanwhile_is_not_ones_own",),
    ),
    Guard(
        "who lost the intent still writes",
        f"{SERVICES}/recoveries.py",
        """    with transaction.atomic():
        if intent is not None:
            intent_hold(intent)
        written = _write(
""",
        """    with transaction.atomic():
        written = _write(
""",
        (f"{CONTROL}/test_recoveries.py::test_zombie_that_reads_the_row_again_is_still_stopped_by_its_intent",),
    ),
    Guard(
        "an attempt that is over writes under the next one",
        f"{SERVICES}/intents.py",
        "        id=intent.id, state=IntentState.TAKEN, taken_by=intent.taken_by, attempts=intent.attempts\n",
        "        id=intent.id, state=IntentState.TAKEN\n",
        (f"{CONTROL}/test_intents.py::test_a_taker_that_lost_its_intent_writes_nothing",),
    ),
    Guard(
        "steps of the protocol are skipped",
        f"{SERVICES}/recoveries.py",
        "    if not plan_strategy(recovery.plan).move_is_allowed(expected, to):\n",
        "    if False:\n",
        (f"{CONTROL}/test_recoveries.py::test_steps_are_not_skipped",),
    ),
    Guard(
        "another digest than the one that was looked at is approved",
        f"{SERVICES}/plans.py",
        "    if plan.digest != digest:\n",
        "    if False:\n",
        (f"{CONTROL}/test_plans.py::test_approval_needs_the_digest_that_is_there",),
    ),
    Guard(
        "an approval holds for ever",
        f"{SERVICES}/plans.py",
        "    return until is not None and now > until\n",
        "    return False\n",
        (
            f"{CONTROL}/test_plans.py::test_approval_lapses_of_age",
            f"{CONTROL}/test_recoveries.py::test_unapproved_and_lapsed_plans_are_not_applied",
        ),
    ),
    Guard(
        "the author of a plan approves it",
        f"{SERVICES}/plans.py",
        "    if actor_name(actor) == actor_name(plan.author):\n",
        "    if False:\n",
        (f"{CONTROL}/test_plans.py::test_author_does_not_approve_unless_the_pipeline_says_so",),
    ),
    Guard(
        "a typed name is a second pair of eyes",
        f"{SERVICES}/plans.py",
        "    if is_by_command(actor) and not is_typed_allowed:\n",
        "    if False:\n",
        (f"{CONTROL}/test_commands.py::test_t25_a_typed_name_is_marked_and_is_no_second_pair_of_eyes",),
    ),
    Guard(
        "a typed name is not marked as one",
        "recovery_api/domain/actors.py",
        '    return f"{BEFORE}{given}{AFTER}"\n',
        "    return given\n",
        (f"{CONTROL}/test_commands.py::test_t25_a_typed_name_is_marked_and_is_no_second_pair_of_eyes",),
    ),
    Guard(
        "another pipeline's name is typed, and the recovery begins",
        f"{SERVICES}/recoveries.py",
        "    if typed_pipeline_name != pipeline.name:\n",
        "    if False:\n",
        (f"{CONTROL}/test_recoveries.py::test_request_needs_a_reason_and_the_typed_name",),
    ),
    Guard(
        "a restored sink is fired at",
        f"{SERVICES}/recoveries.py",
        "    if sink.restored_at is not None:\n",
        "    if False:\n",
        (f"{CONTROL}/test_sinks.py::test_restored_sink_voids_what_was_certified_and_fires_nothing",),
    ),
    Guard(
        "approved events that are gone without an explanation are fired past",
        "workers/recovery/outcomes.py",
        'approval.get("unexplained", 0)',
        "0",
        ("tests/unit/test_lane_verdicts.py::test_a_batch_that_is_not_the_approved_one_is_refused_either_way",),
    ),
    Guard(
        "events that nobody approved are fired",
        "recovery_api/domain/plans.py",
        "    if not_approved:\n",
        "    if False:\n",
        ("tests/unit/test_lane_verdicts.py::test_a_batch_that_is_not_the_approved_one_is_refused_either_way",),
    ),
    Guard(
        "a person's wish to hold is passed over before the fire",
        "workers/recovery/strategies/fenced.py",
        "        unless_asked(self.recovery, self.report)\n        self._move(RecoveryState.FIRING",
        "        self._move(RecoveryState.FIRING",
        (
            "tests/integration/recovery/test_steering.py::"
            "test_t13_a_pause_is_shown_as_asked_until_it_holds_and_holds_before_the_fire",
        ),
    ),
    Guard(
        "what others passed is called refused",
        "workers/recovery/strategies/fenced.py",
        """        if (passed := own_claims.passed_by_another(self.recovery, self.sink, self._wait())) is not None:
            return self._end_fenced(passed.generation, passed.superseded_by, asdict(passed))
""",
        "",
        (
            "tests/integration/recovery/test_passing_faults.py::"
            "test_l9_who_was_passed_by_another_control_plane_says_by_whom_and_when",
        ),
    ),
    Guard(
        "what landed unseen ends as if nothing had",
        "recovery_api/domain/next_steps.py",
        "    return Next.LANDED if has_fired_unrecorded else end\n",
        "    return end\n",
        ("tests/unit/test_next_steps.py::test_recovery_of_which_a_batch_landed_unseen_does_not_end_as_if_nothing_had",),
    ),
    Guard(
        "a recovery ends while its claim can still fire",
        "recovery_api/domain/next_steps.py",
        "        case _:\n            return Next.CLAIM\n",
        "        case _:\n            return Next.STOPPED\n",
        ("tests/unit/test_next_steps.py::test_only_a_claim_that_cannot_fire_ends_a_recovery",),
    ),
    Guard(
        "a plain reading settles a claim whose fire runs",
        "recovery_api/domain/claims.py",
        "    return found if found.is_final or is_locked else Settlement.UNKNOWN\n",
        "    return found\n",
        ("tests/unit/test_claims.py::test_plain_reading_settles_only_what_cannot_change",),
    ),
    Guard(
        "the relay starts above an event that stays owed",
        "recovery_api/domain/hand_over.py",
        "    return frontier if before_left_out is None else min(frontier, before_left_out)\n",
        "    return frontier\n",
        ("tests/unit/test_next_steps.py::test_start_lies_below_the_lowest_event_that_stays_owed",),
    ),
    Guard(
        "a sink that is behind its memory is not taken for restored",
        "recovery_api/domain/restores.py",
        "(now is None or now < before)",
        "now is None",
        ("tests/unit/test_restores.py::test_sink_behind_its_memory_was_restored",),
    ),
)
