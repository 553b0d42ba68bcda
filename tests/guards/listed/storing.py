"""What keeps evidence from being something else than was written, or from going while something rests on it."""

from __future__ import annotations

from tests.guards.guard import Guard

STORE = "tests/unit/test_evidence_store.py"
SHIPPING = "tests/unit/test_shipping.py"
BUCKET = "tests/integration/recovery/test_bucket.py"

GUARDS = (
    Guard(
        "evidence whose bytes were altered is read",
        "workers/evidence/store.py",
        "    if hashlib.sha256(body).hexdigest() != written.digest:\n",
        "    if False:\n",
        (f"{STORE}::test_a_part_half_written_altered_or_gone_is_never_read",),
    ),
    Guard(
        "an object grows beyond one PUT",
        "workers/evidence/store.py",
        "            if self._open.size + 2 * GROUP_BYTES > PUT_BYTES:\n",
        "            if False:\n",
        (f"{STORE}::test_what_was_written_is_read_back_and_no_object_is_larger_than_one_put",),
    ),
    Guard(
        "a store that is away is taken for evidence that is gone",
        "workers/evidence/places.py",
        "        raise EvidenceUnwritable(where, reason) from error\n",
        "        raise FileNotFoundError(where) from error\n",
        (f"{STORE}::test_a_bucket_that_answers_503_to_readers_is_no_part_that_is_gone",),
    ),
    Guard(
        "a key of the bucket stands in the setting",
        "recovery_api/domain/evidence_places.py",
        '        if name in SECRETS and not value.startswith(("env:", "file:")):\n',
        "        if False:\n",
        (f"{STORE}::test_an_address_that_cannot_be_used_is_refused_without_its_secret",),
    ),
    Guard(
        "the sweep takes what a manifest names",
        "workers/recovery/retention.py",
        "            if name not in named and changed_at < before:\n",
        "            if changed_at < before:\n",
        (f"{BUCKET}::test_what_nothing_rests_on_goes_within_a_day_and_what_a_manifest_names_stays",),
    ),
    Guard(
        "a place that the sweep took is kept all the same",
        "recovery_api/services/evidence_places.py",
        "    if not mine.update(**kept):\n",
        "    mine.update(**kept)\n    if False:\n",
        (f"{BUCKET}::test_what_nothing_rests_on_goes_within_a_day_and_what_a_manifest_names_stays",),
    ),
    Guard(
        "an executor's other copy of our code serves",
        "workers/spark/probing.py",
        '            if f"fencepost-{code_digest(code_files(root))}.zip" != archive:\n',
        "            if False:\n",
        (f"{SHIPPING}::test_the_archives_name_is_its_contents",),
    ),
    Guard(
        "an archive of our code stays where temporary files are",
        "workers/spark/shipping.py",
        '        with tempfile.TemporaryDirectory(prefix="fencepost-") as directory:\n',
        '        for directory in [tempfile.mkdtemp(prefix="fencepost-")]:\n',
        (f"{SHIPPING}::test_the_archives_name_is_its_contents",),
    ),
    Guard(
        "what a task imports is not sent",
        "workers/spark/probing.py",
        '"workers/__init__.py", "workers/faults.py"),\n',
        '"workers/__init__.py"),\n',
        (f"{SHIPPING}::test_the_archive_alone_is_enough_for_every_task",),
    ),
    Guard(
        "a bucket is sent an object in pieces",
        "workers/evidence/places.py",
        "    if not place.is_folder and len(body) > PUT_MOST:\n",
        "    if False:\n",
        (f"{STORE}::test_no_object_is_sent_in_pieces_that_the_store_puts_together",),
    ),
    Guard(
        "a file of the archive that is several objects counts as whole without one",
        "workers/evidence/archive/parts.py",
        "                sizes[file_of(name)] += size\n",
        "                sizes[file_of(name)] = next((part.bytes for part in mine), size)\n",
        (f"{STORE}::test_a_content_larger_than_one_object_is_archived_whole_and_goes_whole",),
    ),
    Guard(
        "an object of a large file stays when the file goes",
        "workers/evidence/archive/files.py",
        "    for one in _names(url, name, size):\n        object_remove(url, one)\n",
        "    object_remove(url, name)\n",
        (f"{STORE}::test_a_content_larger_than_one_object_is_archived_whole_and_goes_whole",),
    ),
    Guard(
        "a history that is matched by id is held whole, whatever it is",
        "workers/evidence/holding.py",
        "int(HISTORY_TIMES * spec.rows_a_range)",
        "2**62",
        ("tests/unit/test_holding.py::test_a_history_by_id_is_staged_in_stretches_and_says_what_it_says_as_a_whole",),
    ),
    Guard(
        "a stretch of a history that is matched by id is counted by nobody",
        "workers/evidence/ids.py",
        '    more = [_apart(lane, counts) for one in ranges for counts in one["blocks"][1:]]\n',
        "    more: list[Any] = []\n",
        (
            "tests/unit/test_holding.py::"
            "test_what_is_matched_by_id_is_the_same_whether_a_range_is_held_whole_or_in_stretches",
        ),
    ),
)
