"""What is sent from the archive is what was judged, and what is needed of it stays."""

from __future__ import annotations

from tests.guards.guard import Guard

DOMAIN = "recovery_api/domain/archives.py"
LOOKING = "workers/evidence/archive/looking.py"
CONTENTS = "workers/evidence/archive/contents.py"
SELECTED = "recovery_api/selectors/archives.py"
TESTS = "tests/integration/recovery/test_archive.py"
BUCKET = "tests/integration/recovery/test_archive_in_bucket.py"
KEEPING = "tests/integration/recovery/test_archive_keeping.py"

GUARDS = (
    Guard(
        "a file of the archive that somebody changed is read all the same",
        "workers/evidence/archive/parts.py",
        "    if found != (part.bytes, part.file_digest):\n",
        "    if False:\n",
        (f"{TESTS}::test_a_part_that_was_written_again_with_other_contents_gives_nothing",),
    ),
    Guard(
        "a bucket that does not answer is taken for files that are gone",
        "workers/evidence/archive/parts.py",
        "            if not place_parse(url).is_folder:\n",
        "            if False:\n",
        (f"{BUCKET}::test_a_bucket_that_answers_503_leaves_the_verdict_and_is_said",),
    ),
    Guard(
        "a bucket that is not set any more is asked for what it holds",
        DOMAIN,
        "    return Unusable.AWAY if part.is_elsewhere else None\n",
        "    return None\n",
        (
            f"{BUCKET}::test_files_of_before_the_bucket_are_sent_and_those_of_a_bucket_that_is_not_set_any_more_are_not",
            "tests/unit/test_archive.py::test_a_part_of_a_bucket_that_is_not_set_serves_nothing",
        ),
    ),
    Guard(
        "a content that was rewritten together with its digests is planned",
        LOOKING,
        "            is_genuine = pa.array([is_as_digested(row) for row in met.to_pylist()], pa.bool_())\n",
        "            is_genuine = pa.array([True] * met.num_rows, pa.bool_())\n",
        (f"{TESTS}::test_a_part_that_was_written_again_with_other_contents_gives_nothing",),
    ),
    Guard(
        "a content that is not what was judged is staged",
        CONTENTS,
        '        if not is_as_digested({**event, "payload_digest": judged[place]}):\n',
        "        if False:\n",
        ("tests/unit/test_archive.py::test_a_content_that_is_not_what_was_judged_is_never_handed_on",),
    ),
    Guard(
        "what another incarnation committed is sent",
        DOMAIN,
        "    if not incarnation or part.incarnation != incarnation:\n",
        "    if not incarnation:\n",
        (f"{TESTS}::test_an_archive_of_another_incarnation_gives_nothing_and_a_person_decides",),
    ),
    Guard(
        "what a source committed before it was put back is sent",
        DOMAIN,
        "    if part.read_to is not None and read_to is not None and read_to < part.read_to:\n",
        "    if False:\n",
        (f"{TESTS}::test_an_archive_from_before_the_source_was_put_back_gives_nothing",),
    ),
    Guard(
        "an archived event is sent where the source holds another",
        LOOKING,
        '    wanted = gone.join(_places(history), PLACE, join_type="left anti").select(gone.column_names)\n',
        "    wanted = gone\n",
        (f"{TESTS}::test_nothing_is_sent_from_the_archive_where_the_source_holds_another_event",),
    ),
    Guard(
        "a file that an open item needs is deleted when its time is over",
        SELECTED,
        '    return due.exclude(pk__in=parts_needed(due).values("pk"))\n',
        "    return due\n",
        (f"{KEEPING}::test_what_an_open_item_needs_stays_until_it_is_settled",),
    ),
    Guard(
        "an archive that cannot be written takes the verdict with it",
        "workers/evidence/archive/writing.py",
        "        except OSError as error:\n",
        "        except KeyError as error:\n",
        (f"{KEEPING}::test_a_folder_that_cannot_be_written_leaves_the_verdict_and_is_said",),
    ),
)
