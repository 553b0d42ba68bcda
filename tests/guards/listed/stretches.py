"""What `judge` takes a message for, and what it reads in stretches."""

from __future__ import annotations

from tests.guards.guard import Guard

FILES = "workers/evidence/files"
TESTS = "tests/unit/files"

GUARDS = (
    Guard(
        "a message that its connector published again is a second event",
        f"{FILES}/emitted.py",
        '            raise NotAnEvent("replay")\n',
        "            return\n",
        (
            f"{TESTS}/test_emitted.py::test_rc_38_a_message_published_again_is_one_event_and_the_sinks_second_one_is_doubled",
        ),
    ),
    Guard(
        "two contents at one log position are one event",
        f"{FILES}/emitted.py",
        "        elif told != emitted.told:\n",
        "        elif False:\n",
        (f"{TESTS}/test_emitted.py::test_rc_38_one_position_with_two_contents_is_rejected_with_its_line",),
    ),
    Guard(
        "a message that no transaction wrote counts as committed",
        f"{FILES}/emitted.py",
        "    if is_untied and not (options.is_record or options.is_untied_committed):\n",
        "    if False:\n",
        (f"{TESTS}/test_emitted.py::test_rc_38_a_message_that_no_transaction_wrote_is_tied_to_no_commit",),
    ),
    Guard(
        "that messages without a transaction were taken as committed is not named",
        "workers/judgement.py",
        "            given=(*matching.given, *self._given()),\n",
        "            given=matching.given,\n",
        (f"{TESTS}/test_emitted.py::test_rc_38_a_message_that_no_transaction_wrote_is_tied_to_no_commit",),
    ),
    Guard(
        "messages of a prefix that nobody asked for are events",
        f"{FILES}/emitted.py",
        '    if given["prefix"] not in options.prefixes:\n',
        "    if False:\n",
        (
            f"{TESTS}/test_emitted.py::test_rc_38_a_message_published_again_is_one_event_and_the_sinks_second_one_is_doubled",
        ),
    ),
    Guard(
        "a GTID set with holes is a frontier",
        "workers/evidence/lane_bounds.py",
        "        if len(spans) != 1 or spans",
        "        if False and spans",
        (f"{TESTS}/test_change_logs.py::test_rc_15_a_gtid_set_is_a_frontier_where_it_has_no_holes",),
    ),
    Guard(
        "a stretch forgets a member that one of its lines repeats",
        f"{FILES}/quick_rows.py",
        "    if not is_each_member_once(spelled, members + len(names) * len(records)):\n        raise Uncertain\n",
        "",
        (f"{TESTS}/test_stretches.py::test_a_repeated_member_is_said_wherever_it_stands",),
    ),
    Guard(
        "a number that a float has rounded is digested as if it had been written so",
        "workers/evidence/quick_columns.py",
        "    if kind is float and column.has_short_numbers:\n",
        "    if kind is float:\n",
        (f"{TESTS}/test_stretches.py::test_floats_are_vouched_for_where_nothing_was_rounded_and_nowhere_else",),
    ),
    Guard(
        "a number too small for a float is digested as 0",
        "workers/evidence/quick_columns.py",
        "        if column.has_powers:\n            raise Uncertain\n",
        "",
        (f"{TESTS}/test_stretches.py::test_floats_are_vouched_for_where_nothing_was_rounded_and_nowhere_else",),
    ),
    Guard(
        "rows of CSV that span several lines are taken for a line each",
        f"{FILES}/stretches.py",
        "    if len(rows) != len(lines):\n        raise Uncertain\n",
        "",
        (f"{TESTS}/test_stretches.py::test_a_row_of_several_lines_and_a_null_among_stretches_of_csv_are_read",),
    ),
    Guard(
        "Spark judges rows whose entries no event id was matched for",
        "workers/judgement.py",
        "            side_write(sides[end], written[end], question.lane, schema)\n",
        '            side_write(side_load(self.files[end], self.spelling, None, (), end == "accepted"), written[end], '
        "question.lane, schema)\n",
        ("tests/spark/test_meet.py::test_judge_by_event_id_answers_alike_with_both_engines",),
        needs_spark=True,
    ),
)
