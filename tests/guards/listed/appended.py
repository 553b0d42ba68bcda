"""What is appended to a sink without a fence."""

from __future__ import annotations

from tests.guards.guard import Guard

TABLE = "workers/connectors/sinks/table"
APPENDING = "tests/integration/postgresql/test_appending.py"
BESIDE = "tests/integration/postgresql/test_appending_beside_others.py"
ABILITY = "tests/integration/postgresql/test_append_ability.py"

GUARDS = (
    Guard(
        "a relay or another recoverer writes the table while owed rows are added",
        f"{TABLE}/appending.py",
        "IN SHARE ROW EXCLUSIVE MODE",
        "IN ROW EXCLUSIVE MODE",
        (
            f"{BESIDE}::test_a_writer_that_never_lets_the_lock_go_is_named_after_a_bounded_wait",
            f"{BESIDE}::test_two_recoverers_at_once_land_each_event_once_without_any_constraint",
        ),
    ),
    Guard(
        "what is missing is read in a snapshot older than the lock",
        f"{TABLE}/appending.py",
        "        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED  # whatever the role's default is\n",
        "",
        (f"{BESIDE}::test_a_role_whose_transactions_keep_one_snapshot_still_sees_what_came_before_its_lock",),
    ),
    Guard(
        "a trigger swallows an owed row unnoticed",
        f"{TABLE}/appending.py",
        "    if figures.wrong_count:\n",
        "    if False:\n",
        (f"{APPENDING}::test_a_trigger_that_swallows_or_changes_a_row_is_noticed_by_the_read_back",),
    ),
    Guard(
        "a row that would read otherwise than it was committed is added",
        f"{TABLE}/appending.py",
        "            rows.check()\n",
        "",
        (
            f"{APPENDING}::test_a_row_that_only_the_server_refuses_is_named_and_nothing_landed",
            f"{APPENDING}::test_a_batch_that_repeats_a_coordinate_is_refused",
        ),
    ),
    Guard(
        "what came otherwise than it was judged is added",
        f"{TABLE}/appending.py",
        "            _came_check(rows, count, owed)\n",
        "",
        (f"{APPENDING}::test_what_came_otherwise_than_it_was_judged_lands_nothing",),
    ),
    Guard(
        "a commit at a table is left to a lowered synchronous_commit",
        f"{TABLE}/appending.py",
        "            connection.execute(ON_DISK)\n",
        "",
        (f"{APPENDING}::test_a_lowered_synchronous_commit_is_raised_and_a_higher_one_kept",),
    ),
    Guard(
        "a constraint that lets a second entry in until its transaction ends is relied on",
        f"{TABLE}/ability.py",
        "            if not index.is_immediate\n",
        "            if False\n",
        (f"{ABILITY}::test_a_constraint_that_does_not_refuse_every_late_send_is_named",),
    ),
    Guard(
        "an index that was not built to its end is relied on",
        f"{TABLE}/ability.py",
        "            if not index.is_valid\n",
        "            if False\n",
        (f"{ABILITY}::test_an_index_that_was_not_built_to_its_end_absorbs_nothing",),
    ),
    Guard(
        "a table that is only the mark of an effect is written",
        f"{TABLE}/ability.py",
        """    problems = [] if options["is_effect"] else [NOT_THE_EFFECT]\n""",
        "    problems: list[str] = []\n",
        (f"{ABILITY}::test_a_table_not_declared_the_effect_is_never_written",),
    ),
)
