"""The judge of exports: no line is passed over, no null, number or id is taken for another."""

from __future__ import annotations

from tests.guards.guard import Guard

FILES = "workers/evidence/files"
UNIT = "tests/unit/files"
LOGS = f"{UNIT}/test_change_logs.py"
LINES = f"{UNIT}/test_jsonlines.py"
ACCOUNT = f"{UNIT}/test_accounting.py"
FIVE_SHAPES = f"{LOGS}::test_rc_22_five_shapes_in_one_file_each_line_accounted_for"
TORN = f"{LINES}::test_rc_36_torn_tail_and_glued_record_are_named_and_never_silently_missing"
FAST = f"{ACCOUNT}::test_the_fast_way_leaves_what_it_cannot_vouch_for"

GUARDS = (
    Guard(
        "a line that was rejected bounds no verdict",
        f"{FILES}/notes.py",
        "            self.rejected_lines.append(line)\n        self.blemish(kind, line, offset, says)\n",
        "            self.rejected_lines.append(line)\n",
        (FIVE_SHAPES, "tests/unit/test_judge.py::test_a_torn_record_is_unknown_never_clean_and_says_what_was_read"),
    ),
    Guard(
        "a line that was rejected is not counted",
        f"{FILES}/notes.py",
        "        self.rejected += lines\n",
        "",
        (FIVE_SHAPES, f"{ACCOUNT}::test_the_account_is_in_the_page_and_in_the_object"),
    ),
    Guard(
        "a line that was rejected is not named",
        f"{FILES}/notes.py",
        "            self.rejected_lines.append(line)\n",
        "            pass\n",
        (FIVE_SHAPES,),
    ),
    Guard(
        "lines that do not add up pass for a whole file",
        f"{FILES}/notes.py",
        "        if not self.is_balanced():\n",
        "        if False:\n",
        (f"{ACCOUNT}::test_lines_that_do_not_add_up_bound_the_verdict",),
    ),
    Guard(
        "what was read of a torn file is shown as the whole",
        f"{FILES}/notes.py",
        "        return self.blemish_count == 0\n",
        "        return True\n",
        (TORN,),
    ),
    Guard(
        "a torn line is passed over as blank",
        f"{FILES}/jsonlines.py",
        """            notes.reject("torn record", number, start, f"it was not read{_glued(body, start, decoder)}")\n""",
        """            notes.ignore("blank")\n""",
        (TORN,),
    ),
    Guard(
        "a file that ends inside a line is taken for whole",
        f"{FILES}/jsonlines.py",
        """            notes.reject("unfinished tail", number, start, f"the file ends inside it{_glued(body, start, decoder)}")\n""",
        """            notes.ignore("blank")\n""",
        (TORN, "tests/unit/test_judge.py::test_a_torn_record_is_unknown_never_clean_and_says_what_was_read"),
    ),
    Guard(
        "a record glued to a torn one is missing unsaid",
        f"{FILES}/jsonlines.py",
        "        if isinstance(record, dict):\n            named = ",
        "        if False:\n            named = ",
        (TORN,),
    ),
    Guard(
        "a run of NUL bytes, as a crash leaves it, is left out unsaid",
        f"{FILES}/jsonlines.py",
        """            notes.blemish("NUL run", number, start, says)\n""",
        """            pass\n""",
        (TORN,),
    ),
    Guard(
        "a compressed file that breaks off is taken for whole",
        f"{FILES}/jsonlines.py",
        "    if stream.broken:\n",
        "    if False:\n",
        (f"{UNIT}/test_opening.py::test_a_compressed_stream_that_breaks_off_is_not_whole",),
    ),
    Guard(
        "the last cell of a torn CSV line is taken as it stands",
        f"{FILES}/delimited.py",
        """    elif not is_ended and not last.endswith('"'):\n""",
        "    elif False:\n",
        (f"{UNIT}/test_csv.py::test_csv_with_a_torn_last_line_reads_what_precedes_it_and_says_so",),
    ),
    Guard(
        "a row cut inside a character is read",
        f"{FILES}/delimited.py",
        "    elif not text.isascii() and _UNDECODED.search(text):\n",
        "    elif False:\n",
        (f"{UNIT}/test_csv.py::test_csv_rows_of_another_width_and_stray_bytes_are_named",),
    ),
    Guard(
        "a null that a tool writes as NULL is a text",
        f"{FILES}/delimited.py",
        """        elif cell == "NULL" and not is_quoted:\n""",
        "        elif False:\n",
        (f"{UNIT}/test_dialects.py::test_every_dialect_says_the_same",),
    ),
    Guard(
        "a null that a tool writes as an escape is a text",
        f"{FILES}/delimited.py",
        """        if cell == "\\\\N":\n""",
        "        if False:\n",
        (f"{UNIT}/test_dialects.py::test_every_dialect_says_the_same",),
    ),
    Guard(
        "a text that says NULL in quotes is a null",
        f"{FILES}/delimited.py",
        """        elif cell == "NULL" and not is_quoted:\n""",
        """        elif cell == "NULL":\n""",
        (f"{UNIT}/test_dialects.py::test_a_quoted_null_is_the_text_and_what_stands_for_null_can_be_told",),
    ),
    Guard(
        "an empty text in quotes is a null",
        f"{FILES}/delimited.py",
        """            return cell == "" and not is_quoted\n""",
        """            return cell == ""\n""",
        (
            f"{UNIT}/test_one_fact.py::test_t15_one_fact_has_one_digest_in_every_format",
            f"{UNIT}/test_csv.py::test_t15_plain_text_that_is_null_and_that_is_empty_are_two_in_csv_as_in_json",
        ),
    ),
    Guard(
        "a number that a fast reader rounded is compared",
        "workers/evidence/quick.py",
        "        return content\n    raise Uncertain\n\n\ndef canonical_checked",
        "        return content\n    return int(content)\n\n\ndef canonical_checked",
        (FAST, f"{ACCOUNT}::test_the_fast_way_gives_the_canonical_text_or_nothing"),
    ),
    Guard(
        "a member that is repeated is read as a fast reader happens to",
        "workers/evidence/quick.py",
        "    if not is_each_member_once(line, _members_of(content)):\n        raise Uncertain\n",
        "",
        (FAST,),
    ),
    Guard(
        "events of two tables are judged as one history",
        f"{FILES}/events.py",
        "    if len(file.tables) > 1 and not options.tables:\n",
        "    if False:\n",
        (f"{LOGS}::test_a_file_of_two_tables_is_refused_naming_both_and_one_can_be_chosen",),
    ),
    Guard(
        "a line of no shape that is looked for is ignored",
        f"{FILES}/debezium.py",
        """    raise BadRecord("it is no change event")\n""",
        """    raise NotAnEvent("message")\n""",
        (FIVE_SHAPES,),
    ),
    Guard(
        "a row that a snapshot reads again is a second event",
        f"{FILES}/records.py",
        "        if fields.is_read and identity in self._seen:\n",
        "        if False:\n",
        (f"{LOGS}::test_rc_24_a_row_that_a_snapshot_reads_again_is_no_second_event",),
    ),
    Guard(
        "events are ordered by log positions, which interleave",
        f"{FILES}/debezium.py",
        """        return own if commit is None else f"{_lsn(int(commit))}:{_lsn(own)}"\n""",
        "        return own\n",
        (f"{LOGS}::test_rc_08_debeziums_own_events_are_ordered_by_the_commit_before_them",),
    ),
    Guard(
        "a value that the log did not hold is a value like any other",
        f"{FILES}/records.py",
        "        if fields.unknown:\n",
        "        if False:\n",
        (f"{UNIT}/test_values.py::test_rc_26_a_value_that_the_log_did_not_hold_is_neither_equal_nor_different",),
    ),
    Guard(
        "a record that is known to be trimmed is judged as whole",
        "workers/judgement.py",
        "        if self.request.trimmed:\n",
        "        if False:\n",
        (f"{LOGS}::test_rc_66_a_trimmed_stream_gives_a_bound_and_no_verdict",),
    ),
    Guard(
        "that event ids are never used again is not named with the verdict",
        "workers/evidence/matching.py",
        """        return ("an event id is never used again",) if""",
        "        return () if",
        (f"{UNIT}/test_values.py::test_rc_35_router_payloads_null_doubly_encoded_and_binary_are_all_accepted",),
    ),
    Guard(
        "an id of two events of an export is matched to the first",
        "workers/evidence/sides.py",
        "    if len(again):\n",
        "    if False:\n",
        (f"{LOGS}::test_an_id_that_two_events_of_the_history_have_is_refused",),
    ),
)
