"""What an image audit may say of a key: a difference only where everything it rests on is known."""

from __future__ import annotations

from tests.guards.guard import Guard

RULE = "recovery_api/domain/images.py"
READ = "workers/evidence"
UNIT = "tests/unit/test_images.py"
REAL = "tests/integration/recovery/test_image.py"

GUARDS = (
    Guard(
        "a key with an acceptance above the frontier is told a difference",
        RULE,
        "    if has_later:\n",
        "    if False:\n",
        (f"{UNIT}::test_a_key_is_told_a_difference_only_where_everything_it_rests_on_is_known",),
    ),
    Guard(
        "an image with unknown keys is free of mismatches",
        RULE,
        "    if unknown:\n",
        "    if False:\n",
        (f"{UNIT}::test_a_difference_that_is_certain_counts_beside_unknown_keys_and_no_key_is_equal_to_nothing",),
    ),
    Guard(
        "two contents at one coordinate are told apart",
        f"{READ}/kernel/image.py",
        "    committed[is_tied] = Committed.TIED\n",
        "",
        (UNIT,),
    ),
    Guard(
        "a base that is not what was written counts",
        f"{READ}/image_base.py",
        "            object_open(stored.url, one).close()\n",
        "            pass\n",
        (f"{REAL}::test_a_base_counts_only_while_its_files_are_what_was_written",),
    ),
    Guard(
        "a key is judged by an older event where a later one was purged",
        f"{READ}/image.py",
        "        later.append(Later(lane.lane, before, f))\n",
        "        pass\n",
        (f"{REAL}::test_a_key_whose_latest_event_was_purged_by_a_mark_is_not_judged_by_an_older_one",),
    ),
    Guard(
        "an archive's file that was exchanged is believed by an image audit",
        f"{READ}/image_archive.py",
        "        part_check(piece.part)\n",
        "        pass\n",
        (f"{REAL}::test_what_the_archive_holds_of_a_purged_history_counts",),
    ),
)
