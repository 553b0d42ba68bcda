"""The sink kit: what its SQL refuses."""

from __future__ import annotations

from tests.guards.guard import Guard

SQL = "workers/connectors/sinks/kit"
TESTS = "tests/integration/kit"

GUARDS = (
    Guard(
        "another login delivers under a generation that is not its own",
        f"{SQL}/admission.sql",
        "                AND (p.fence_asked_by IS NULL OR p.fence_asked_by = session_user)\n",
        "",
        (f"{TESTS}/test_admission.py::test_a_relays_generation_is_its_logins_own_while_the_fence_stands_there",),
    ),
    Guard(
        "a delivery that waited for the lock passes the fence that was raised meanwhile",
        f"{SQL}/admission.sql",
        "            WHERE p.fence = deliver.generation AND p.fence_purpose = 'relay'\n",
        "            WHERE p.fence_purpose = 'relay'\n",
        (f"{TESTS}/test_claim_waits.py::test_delivery_that_waited_for_a_raised_fence_is_fenced_by_it",),
    ),
    Guard(
        "a relay delivers under an open claim",
        f"{SQL}/admission.sql",
        "        RETURN 'paused';\n",
        "        RETURN 'admitted';\n",
        ("tests/contract/fenced/test_fenced.py::test_words_of_a_delivery",),
    ),
    Guard(
        "a generation that nobody allocated raises the fence",
        f"{SQL}/admission.sql",
        "    ELSIF NOT {schema}.is_allocated(generation) THEN\n        RETURN 'unallocated';\n",
        "",
        (f"{TESTS}/test_admission.py::test_generation_never_allocated_is_refused_and_the_fence_stays",),
    ),
    Guard(
        "a delivery in an older snapshot misses the fence",
        f"{SQL}/locks.sql",
        "    IF current_setting('transaction_isolation') <> 'read committed' THEN\n",
        "    IF false THEN\n",
        (f"{TESTS}/test_admission.py::test_relay_that_goes_on_in_an_older_snapshot_is_refused",),
    ),
    Guard(
        "another content at a coordinate passes for the one that was accepted",
        f"{SQL}/admission.sql",
        "    IF held = offered THEN\n",
        "    IF true THEN\n",
        (f"{TESTS}/test_admission.py::test_altered_event_is_absorbed_and_recorded_once_a_digest",),
    ),
    Guard(
        "what the record holds already lands once more with a batch",
        f"{SQL}/fire.sql",
        " AND s.arm = held.arm AND a.is_accepted IS NULL\n",
        " AND s.arm = held.arm\n",
        (f"{TESTS}/test_fire.py::test_obligation_that_the_sink_holds_altered_is_absorbed_told_and_recorded",),
    ),
    Guard(
        "an older event that comes late undoes a newer one in the target",
        f"{SQL}/effect_target.sql",
        "    IF NOT FOUND THEN\n        RETURN;\n    ELSIF effect_of_event.op",
        "    IF effect_of_event.op",
        (f"{TESTS}/test_target.py::test_older_event_that_comes_late_does_not_undo_a_newer_one",),
    ),
    Guard(
        "a step of a claim is taken in an older snapshot",
        f"{SQL}/claim.sql",
        """    was text := current_setting('lock_timeout');
BEGIN
    PERFORM {schema}.transaction_check();
    detail := {schema}.lock_take('shared', wait_seconds);
""",
        """    was text := current_setting('lock_timeout');
BEGIN
    detail := {schema}.lock_take('shared', wait_seconds);
""",
        (f"{TESTS}/test_fire.py::test_no_step_of_a_claim_is_taken_in_an_older_snapshot",),
    ),
    Guard(
        "a claim that was passed fires all the same",
        f"{SQL}/claim.sql",
        "    IF claim_lock.generation < (SELECT p.fence FROM {schema}.standing p) THEN\n",
        "    IF false THEN\n",
        ("tests/contract/fenced/test_fenced.py::test_settlement_of_each_end",),
    ),
    Guard(
        "a claim is granted beside deliveries that are under way",
        f"{SQL}/claim.sql",
        "    detail := coalesce({schema}.lock_take('counter', wait_seconds), {schema}.lock_take('alone', wait_seconds));\n"
        "    IF detail IS NOT NULL THEN\n        answer := 'busy';\n",
        "    detail := {schema}.lock_take('counter', wait_seconds);\n"
        "    IF detail IS NOT NULL THEN\n        answer := 'busy';\n",
        (f"{TESTS}/test_claim_open.py::test_r5_a_claim_is_not_granted_beside_a_delivery_that_is_under_way",),
    ),
    Guard(
        "who slept claims over a newer claim",
        f"{SQL}/claim.sql",
        "        IF EXISTS (SELECT FROM {schema}.claim c WHERE c.generation > newest) THEN\n",
        "        IF false THEN\n",
        (f"{TESTS}/test_claim_open.py::test_r5_who_slept_while_another_claimed_is_refused",),
    ),
    Guard(
        "another login is handed the open claim of a name",
        f"{SQL}/claim.sql",
        " AND g.given_name = claim_open.name AND g.asked_by = session_user\n",
        " AND g.given_name = claim_open.name\n",
        (f"{TESTS}/test_claim_open.py::test_r5_another_logins_claim_of_the_same_name_is_not_handed_out",),
    ),
    Guard(
        "a larger batch than the sink allows is armed",
        f"{SQL}/claim.sql",
        "    ELSIF entry_count > limit_now THEN\n",
        "    ELSIF false THEN\n",
        (f"{TESTS}/test_fire.py::test_batch_above_the_limit_is_refused_when_it_is_armed",),
    ),
    Guard(
        "another batch than the armed one lands",
        f"{SQL}/fire.sql",
        """        WHERE s.generation = held.generation AND s.arm = held.arm
            AND (SELECT f.entries = held.armed_count AND f.digest = held.armed_digest FROM {schema}.staged_figures(held) f)
""",
        "        WHERE s.generation = held.generation AND s.arm = held.arm\n",
        (
            f"{TESTS}/test_fire.py::test_batch_altered_on_its_way_does_not_land",
            f"{TESTS}/test_fire.py::test_zombie_stager_that_commits_between_arm_and_fire_makes_the_batch_another_one",
        ),
    ),
    Guard(
        "the arm that a later one took the place of fires",
        f"{SQL}/fire.sql",
        " OR held.arm IS DISTINCT FROM fire.arm\n",
        "\n",
        (f"{TESTS}/test_fire.py::test_fire_of_an_earlier_arm_lands_nothing",),
    ),
    Guard(
        "a batch is fired a second time",
        f"{SQL}/fire.sql",
        "    ELSIF held.state = 'fired' THEN\n",
        "    ELSIF false THEN\n",
        (f"{TESTS}/test_fire.py::test_two_fires_of_one_claim_land_once_and_tell_the_same_figures",),
    ),
    Guard(
        "rows of an earlier arm are kept, and purged are those of the open one",
        f"{SQL}/fire.sql",
        "                          WHERE c.generation = x.generation AND c.arm = x.arm AND c.state = 'open')\n",
        "                          WHERE c.generation = x.generation AND c.state = 'open')\n",
        (f"{TESTS}/test_fire.py::test_staged_rows_of_an_earlier_arm_are_purged_while_its_claim_is_open",),
    ),
    Guard(
        "the record is changed by its owner",
        f"{SQL}/guards.sql",
        "    RAISE EXCEPTION USING ERRCODE = 'restrict_violation',\n"
        "        MESSAGE = format('%I.%I is append-only: %s is refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP),\n"
        "        HINT = 'An acceptance record that forgets makes every verdict about it wrong.';\n",
        "    RETURN coalesce(NEW, OLD);\n",
        (f"{TESTS}/test_paths.py::test_not_even_owner_or_superuser_changes_what_only_grows",),
    ),
    Guard(
        "the fence sinks",
        f"{SQL}/guards.sql",
        "    IF TG_OP <> 'UPDATE' OR (to_jsonb(NEW) -> TG_ARGV[0])::bigint < (to_jsonb(OLD) -> TG_ARGV[0])::bigint THEN\n",
        "    IF TG_OP <> 'UPDATE' THEN\n",
        (f"{TESTS}/test_paths.py::test_not_even_owner_or_superuser_changes_what_only_grows",),
    ),
    Guard(
        "a commit that was answered is lost in a crash",
        f"{SQL}/locks.sql",
        "        PERFORM set_config('synchronous_commit', 'on', true);\n",
        "        NULL;\n",
        (f"{TESTS}/test_durability.py::test_t9_nothing_that_was_answered_is_taken_back_by_a_crash",),
    ),
    Guard(
        "somebody waits at the sink for as long as they ask",
        f"{SQL}/locks.sql",
        "    SELECT greatest(1, (least(wait_seconds, {most_wait_seconds}) * 1000)::bigint)::text\n",
        "    SELECT greatest(1, (wait_seconds * 1000)::bigint)::text\n",
        (f"{TESTS}/test_bounded_waits.py::test_r4_a_wait_of_weeks_is_cut_to_the_sinks_own_bound",),
    ),
    Guard(
        "a relay starts while a claim is open",
        f"{SQL}/claim.sql",
        "    WHERE c.state = 'open' AND c.claimed_at + make_interval(secs => p.relay_wait_seconds) > clock_timestamp()\n",
        "    WHERE false\n",
        (f"{TESTS}/test_admission.py::test_relay_waits_while_a_claim_is_open_and_starts_where_the_fire_handed_over",),
    ),
    Guard(
        "an event of a lane that the source does not have is accepted",
        f"{SQL}/admission.sql",
        "                AND (p.lanes IS NULL OR deliver.lane = ANY (p.lanes))\n",
        "",
        (f"{TESTS}/test_lanes.py::test_r9_an_older_event_in_a_lane_that_the_source_does_not_have_overwrites_nothing",),
    ),
    Guard(
        "a function outside the kit that writes the record is not named",
        "workers/connectors/sinks/kit/ways.py",
        "    return [*_functions_told(functions), *_views_told(views)",
        "    return [*_views_told(views)",
        (f"{TESTS}/test_inspection.py::test_r6_functions_with_others_rights_outside_the_schema_are_named",),
    ),
    Guard(
        "a view through which the record is written is not named",
        "workers/connectors/sinks/kit/ways.py",
        "    return [*_functions_told(functions), *_views_told(views)",
        "    return [*_functions_told(functions)",
        (f"{TESTS}/test_inspection.py::test_r6_view_through_which_somebody_may_insert_is_named",),
    ),
    Guard(
        "a function meets one of another schema first",
        "workers/connectors/sinks/kit/__init__.py",
        "SET search_path = pg_catalog, pg_temp SET standard",
        "SET standard",
        (f"{TESTS}/test_paths.py::test_function_of_a_schema_that_stands_first_is_not_met",),
    ),
    Guard(
        "a target's index of another collation is told as no index",
        "workers/connectors/sinks/kit/install.py",
        """    if OTHERWISE in (error.diag.message_primary or ""):\n""",
        "    if False:\n",
        (
            "tests/integration/kit/test_keys.py"
            "::test_r1_a_target_whose_unique_index_compares_otherwise_than_its_column_is_refused",
        ),
    ),
)
