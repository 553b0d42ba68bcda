"""What makes a frontier safe, and what ends that."""

from __future__ import annotations

from tests.guards.guard import Guard

ENDS = "workers/connectors/postgresql"
TESTS = "tests/integration/postgresql"
FACTS = f"{ENDS}/ground_facts.py"
WHOEVER = f"{TESTS}/test_grounds.py::test_t6_whoever_could_supply_a_number_ends_the_proof"

GUARDS = (
    Guard(
        "a ground with doubts is proven",
        "recovery_api/domain/grounds.py",
        "    if not doubts:\n        return Standing.PROVEN\n    return Standing.ATTESTED if is_attested else Standing.ASSUMED\n",
        "    return Standing.PROVEN\n",
        ("tests/unit/test_grounds.py::test_t5_an_owners_word_lifts_doubts_to_attested_and_no_further",),
    ),
    Guard(
        "a sequence that hands out several numbers at a time is a ground",
        "recovery_api/domain/grounds.py",
        "        if column.sequence.cache != 1:\n",
        "        if False:\n",
        (f"{TESTS}/test_grounds.py::test_t5_numbers_drawn_several_at_a_time_are_never_proven",),
    ),
    Guard(
        "a lock that keeps no writer out is a ground",
        f"{ENDS}/share_lock.py",
        "l.mode IN ('ShareLock', ",
        "l.mode IN ('ShareUpdateExclusiveLock', 'ShareLock', ",
        (f"{TESTS}/test_grounds.py::test_t8_a_function_that_takes_no_share_lock_is_no_ground",),
    ),
    Guard(
        "the lock of one partition is taken for the whole table's",
        f"{ENDS}/share_lock.py",
        "    SELECT i.inhrelid FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid\n",
        "    SELECT i.inhrelid FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid WHERE false\n",
        (f"{TESTS}/test_grounds.py::test_t8_a_function_that_takes_the_lock_of_one_leaf_is_no_ground",),
    ),
    Guard(
        "rights by membership are not seen",
        FACTS,
        "    SELECT acting.oid, acting.rolname, membership.roleid FROM acting JOIN membership ON membership.member = acting.acts\n",
        "    SELECT acting.oid, acting.rolname, membership.roleid FROM acting JOIN membership ON false\n",
        (WHOEVER,),
    ),
    Guard(
        "a function with the rights of somebody else is not seen",
        FACTS,
        "WHERE p.prosecdef AND p.proowner",
        "WHERE false AND p.prosecdef AND p.proowner",
        (WHOEVER,),
    ),
    Guard(
        "a view that writes with its owner's rights is not seen",
        FACTS,
        "WHERE c.oid::bigint <> ALL(%(tables)s::bigint[]) AND c.relowner IN",
        "WHERE false AND c.relowner IN",
        (WHOEVER,),
    ),
    Guard(
        "a session of the owner that is still open is not seen",
        FACTS,
        "        OR EXISTS (SELECT FROM pg_stat_activity a WHERE a.usesysid = r.oid AND a.datname = current_database())\n",
        "",
        (f"{TESTS}/test_grounds.py::test_t6_a_session_of_the_owner_that_is_still_open_ends_the_proof",),
    ),
    Guard(
        "rights on partitions below the first level are not seen",
        FACTS,
        "    SELECT i.inhrelid FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid\n",
        "    SELECT i.inhrelid FROM tree JOIN pg_inherits i ON false\n",
        (f"{TESTS}/test_grounds.py::test_t24_a_right_on_a_partition_between_root_and_leaf_is_found",),
    ),
    Guard(
        "a function that only has the name is taken for the server's own",
        FACTS,
        '    connection.execute("BEGIN READ ONLY; SET LOCAL search_path = pg_catalog")\n',
        '    connection.execute("BEGIN READ ONLY")\n',
        (f"{TESTS}/test_grounds.py::test_t7_a_function_that_only_has_the_name_is_no_transaction_id",),
    ),
    Guard(
        "what was numbered above the sequence is safe",
        f"{ENDS}/safe_frontier.py",
        "    if drawn.is_seen and head is not None and (drawn.last is None or drawn.last < head.position):\n",
        "    if False:\n",
        (f"{TESTS}/test_grounds.py::test_t6_a_sequence_that_stands_below_the_head_makes_only_what_it_gave_out_safe",),
    ),
    Guard(
        "the head is safe while a transaction that writes the table is open",
        f"{ENDS}/safe_frontier.py",
        "    if any(one.is_writing_table for one in waited.remaining):\n",
        "    if False:\n",
        (f"{TESTS}/test_safe_frontier.py::test_a_prepared_transaction_holds_back_the_grace_too",),
    ),
    Guard(
        "a row that the pinning snapshot did not hold is not late",
        f"{ENDS}/late_rows.py",
        "        self.late.count += pc.sum(more.filter(is_late)).as_py() or 0\n",
        "",
        (f"{TESTS}/test_late_rows.py::test_t6_a_row_that_the_pinning_snapshot_does_not_hold_was_late",),
    ),
    Guard(
        "every row that was written again is taken for late",
        f"{ENDS}/late_rows.py",
        '        then = _counted(self._pinned(young), young, "then")\n',
        '        then = _counted(_coordinates([], []), young, "then")\n',
        (f"{TESTS}/test_late_rows.py::test_an_update_gives_a_row_a_new_xmin_and_is_not_late",),
    ),
    Guard(
        "one row that went hides one that came late",
        "recovery_api/domain/grounds.py",
        '    if more == 0 and now["positions"] != earlier["positions"]:\n',
        "    if False:\n",
        ("tests/unit/test_grounds.py::test_as_many_rows_at_other_places_show_a_late_one",),
    ),
    Guard(
        "another server or table passes for the one that was proven",
        "workers/evidence/grounds.py",
        "    return bool(now.incarnation) and (now.catalogue, now.incarnation) == (then.catalogue, then.incarnation)\n",
        "    return True\n",
        ("tests/unit/test_pinned.py::test_a_frontier_proven_before_stands_for_its_own_catalogue_and_incarnation_only",),
    ),
    Guard(
        "a right that was granted later does not end the proof",
        "workers/evidence/grounds.py",
        "        elif safe.standing is not Standing.ASSUMED and safe.catalogue != found.safe.catalogue:\n",
        "        elif False:\n",
        ("tests/unit/test_pinned.py::test_a_ground_ends_where_the_catalogue_shows_something_else_than_at_the_pin",),
    ),
    Guard(
        "a late row voids nothing",
        "workers/recovery/verdicts.py",
        "    late_refute(pipeline, found, but)\n",
        "",
        ("tests/integration/recovery/test_grounds.py::test_t6_a_late_row_voids_what_was_certified_at_or_above_it",),
    ),
    *(
        Guard(
            f"what earlier audits proved {what}",
            "recovery_api/selectors/grounds.py",
            here,
            gone,
            ("tests/integration/recovery/test_many_lanes.py::test_two_hundred_lanes_are_audited_shown_and_recovered",),
        )
        for what, here, gone in (
            ("stands although a late row was found since", "WHERE late NOT IN ('null', '\"\"', '[]')", "WHERE false"),
            ("stands although the audit was voided", "    WHERE counts AND standing", "    WHERE standing"),
            (
                "stands for another catalogue",
                "FROM proven JOIN newest USING (lane, incarnation, catalogue)",
                "FROM proven JOIN newest USING (lane)",
            ),
        )
    ),
    Guard(
        "headroom holds all that fifty audits say of every lane",
        "recovery_api/selectors/lanes.py",
        "jsonb_object_agg(lane, {kept})",
        "jsonb_object_agg(lane, row)",
        ("tests/integration/recovery/test_many_lanes.py::test_two_hundred_lanes_are_audited_shown_and_recovered",),
    ),
    Guard(
        "a purge is answered from all that audits say of every lane",
        "recovery_api/selectors/ledger.py",
        'select_related("pipeline__source").order_by("lane", "position", "ordinal", "id")',
        'select_related("pipeline__source", "first_audit", "last_audit").order_by("lane", "position", "ordinal", "id")',
        ("tests/integration/recovery/test_many_lanes.py::test_two_hundred_lanes_are_audited_shown_and_recovered",),
    ),
)
