"""Omissions and purges: only what was shown is taken out, and nothing goes that was not counted."""

from __future__ import annotations

from tests.guards.guard import Guard

GUARDS = (
    Guard(
        "what is acknowledged is not what was shown",
        "recovery_api/services/omission_previews.py",
        "        _still_owed_check(preview, words)\n",
        "        pass\n",
        ("tests/integration/control/test_omissions.py::test_a_confirmation_is_bound_to_what_was_shown",),
    ),
    Guard(
        "a dead letter that names its event by content alone counts as one with its coordinate",
        "workers/recovery/dead_letters.py",
        "(Word.BY_CONTENT if word is Word.OWED else word).value",
        "word.value",
        (
            "tests/integration/recovery/test_dead_letters_by_content.py"
            "::test_rc_57_what_names_an_event_is_shown_and_a_wildcard_is_no_omission",
        ),
    ),
    Guard(
        "a dead letter names one of several events of the same content",
        "workers/recovery/dead_letters.py",
        "        if len(found) != 1:\n            word = Word.ALIKE",
        "        if not found:\n            word = Word.ALIKE",
        (
            "tests/integration/recovery/test_dead_letters_by_content.py"
            "::test_a_content_that_several_events_have_names_none_of_them",
        ),
    ),
    Guard(
        "files of the archive that became one go while somebody reads them",
        "workers/recovery/archiving.py",
        "        file_renew(*url_split(part.file), part.bytes)\n",
        "        pass\n",
        (
            "tests/integration/recovery/test_archive_joining.py"
            "::test_the_files_of_a_day_become_one_that_serves_as_they_did",
        ),
    ),
    Guard(
        "a purge takes rows that were never counted",
        "recovery_api/domain/kinds/postgresql_purge.py",
        " OR held_positions <>",
        " AND held_positions <>",
        (
            "tests/integration/recovery/test_purging.py::test_a_row_in_the_place_of_another_makes_it_roll_back_though_their_number_is_the_same",
        ),
    ),
)
