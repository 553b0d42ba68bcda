"""What keeps work from standing still, and from being taken from the living."""

from __future__ import annotations

from tests.guards.guard import Guard

CONTROL = "tests/integration/control"
FAULTS = "tests/integration/recovery/test_passing_faults.py"
STEERING = "tests/integration/recovery/test_steering.py"
HEART = "workers/heart.py"
DEADLINES = "workers/connectors/deadlines.py"
UNIT = "tests/unit/test_deadlines.py"
JOINED = "tests/integration/postgresql/test_joined.py"

GUARDS = (
    Guard(
        "a backend that waits for somebody counts as progress",
        DEADLINES,
        '        return self.wait_event_type not in ("Lock", "Client", "BufferPin") and self.wait_event != "SyncRep"\n',
        "        return True\n",
        (f"{UNIT}::test_l1_a_backend_that_waits_for_somebody_is_no_progress",),
    ),
    Guard(
        "a silent end is waited for without end",
        DEADLINES,
        "        return now - self._since >= self.deadline_seconds\n",
        "        return False\n",
        (f"{UNIT}::test_l1_a_silent_end_is_over_at_its_deadline_whatever_was_not_seen",),
    ),
    Guard(
        "an end that was seen at work is given up all the same",
        DEADLINES,
        "            return False\n        self._since = now\n        return True\n",
        "            return False\n        return True\n",
        (f"{UNIT}::test_l1_an_end_seen_at_work_or_heard_has_its_whole_time_again",),
    ),
    Guard(
        "what was read can be taken back by a crash",
        "workers/connectors/postgresql/flushing.py",
        '        if now >= ends_at:\n            raise NotFlushed(connection.info.dbname, f"{longest_seconds:g}")\n',
        "        return\n",
        (
            "tests/integration/kit/test_durability.py::test_t9_a_server_that_does_not_flush_is_named_and_the_wait_has_an_end",
        ),
    ),
    Guard(
        "the record is read before what it shows is on disk",
        "workers/connectors/sinks/postgresql_kit.py",
        "        assert row is not None\n        flush_wait(connection, self.address)\n        identity,",
        "        assert row is not None\n        identity,",
        (
            "tests/integration/kit/test_durability.py::test_t9_what_a_relay_commits_lowered_again_is_read_only_once_it_is_flushed",
        ),
    ),
    Guard(
        "work whose worker died stays taken",
        "recovery_api/services/intents.py",
        "            ~Q(heartbeat_at__range=(now - heartbeat_limit, now + heartbeat_limit)), state=IntentState.TAKEN\n",
        "            heartbeat_at__isnull=True, state=IntentState.TAKEN\n",
        (f"{CONTROL}/test_intents.py::test_sweep_leaves_a_beating_intent_and_offers_a_silent_one_again",),
    ),
    Guard(
        "work that is done is taken again",
        "recovery_api/services/intents.py",
        "        Intent.objects.filter(id=intent_id, state=IntentState.QUEUED)\n",
        "        Intent.objects.filter(id=intent_id)\n",
        (f"{CONTROL}/test_intents.py::test_one_of_two_takers_gets_the_intent",),
    ),
    Guard(
        "work that its takers die of is offered for ever",
        "recovery_api/services/intents.py",
        "            if intent.attempts < IntentAction(intent.action).attempts:\n",
        "            if True:\n",
        (f"{CONTROL}/test_intents.py::test_sweep_gives_up_what_its_takers_keep_dying_of",),
    ),
    Guard(
        "a recovery waits behind audits",
        "recovery_api/services/intents.py",
        '.order_by(urgency, "created_at")',
        '.order_by("created_at")',
        (f"{CONTROL}/test_urgency.py::test_l7_a_recovery_asked_for_last_is_taken_before_the_audits_that_wait",),
    ),
    Guard(
        "the broker is filled with wake-ups that it has",
        "recovery_api/services/intents.py",
        "[: max(0, count - waiting)]",
        "[:count]",
        (f"{CONTROL}/test_wakeups.py::test_l7_the_sweep_sends_no_second_wake_up_while_the_first_lies_at_the_broker",),
    ),
    Guard(
        "a machine that slept takes the living for dead",
        "workers/presence.py",
        "    if has_slept:\n",
        "    if False:\n",
        (f"{CONTROL}/test_sweeper.py::test_l1_a_machine_that_slept_offers_nothing_before_the_living_could_beat",),
    ),
    Guard(
        "a transient failure ends the work",
        "workers/passing.py",
        "            if state is not None and state.startswith(PASSING_STATES):\n",
        "            if False:\n",
        (
            "tests/integration/recovery/test_passing_faults.py::"
            "test_l3_one_cancelled_statement_in_the_control_database_is_tried_again",
        ),
    ),
    Guard(
        "a defect leaves its claim open",
        "workers/runners.py",
        "    if not IntentAction(intent.action).is_of_a_recovery or intent.recovery is None:\n",
        "    if True:\n",
        (
            "tests/integration/recovery/test_passing_faults.py::"
            "test_l3_a_defect_under_an_open_claim_releases_it_and_says_so",
        ),
    ),
    Guard(
        "a claim that could not be given up at once stays open",
        "workers/recovery/settling.py",
        'intent.arguments.get("gives_up") and ',
        "False and ",
        (f"{FAULTS}::test_l3_a_claim_that_cannot_be_released_now_is_settled_by_the_sweep_later",),
    ),
    Guard(
        "work that stands still keeps its place",
        HEART,
        "            if silent > (limit",
        "            if False and silent > (limit",
        (f"{STEERING}::test_l1_work_that_stands_still_is_given_back_and_interrupted_while_its_process_lives",),
    ),
    Guard(
        "work that moves is taken for dead",
        HEART,
        "silent = 0.0 if self._report.beats != beats else silent + passed",
        "silent = silent + passed",
        (f"{STEERING}::test_l1_work_that_beats_is_not_taken_for_dead",),
    ),
    Guard(
        "a worker that is told to end goes on",
        HEART,
        "        if is_stop_asked():\n            raise WorkStopped\n",
        "",
        (f"{STEERING}::test_l10_a_worker_told_to_end_stops_before_the_second_part_and_gives_the_intent_back",),
    ),
    Guard(
        "SIGTERM does not reach what a worker does",
        "workers/celery.py",
        "worker_shutting_down.connect(stop_ask)\n",
        "",
        (
            "tests/integration/recovery/test_worker_process.py::"
            "test_l10_sigterm_ends_a_worker_in_the_middle_of_a_recovery_and_others_may_take_it_at_once",
        ),
        needs_spark=True,
    ),
    Guard(
        "equal audits that nobody has begun wait side by side",
        "recovery_api/services/audits.py",
        "        if queued is not None:\n",
        "        if False:\n",
        (f"{CONTROL}/test_urgency.py::test_l7_equal_queued_audits_become_one_and_who_asked_is_told",),
    ),
    Guard(
        "what a plan found owed is forgotten with it",
        "workers/recovery/planning.py",
        '        fields["audit"] = audit_write(\n',
        '        fields["audit"] = (lambda *given, **more: None)(\n',
        (
            "tests/integration/recovery/test_status.py::test_t10_what_a_plan_found_owed_stays_owed_when_its_recovery_stops",
        ),
    ),
    Guard(
        "a connection that a reading left in the middle serves the next range",
        "workers/connectors/postgresql/connection.py",
        "        if is_well:\n            kept.give",
        "        if True:\n            kept.give",
        (f"{JOINED}::test_what_did_not_end_well_or_was_left_in_the_middle_is_not_kept",),
    ),
    Guard(
        "what a task opened stays open when it ended",
        "workers/connectors/kept.py",
        "        _here.kept.close()\n",
        "",
        (f"{JOINED}::test_ranges_of_one_snapshot_share_a_connection_and_the_end_of_the_task_closes_it",),
    ),
)
