"""Omissions and purges: only what was shown is taken out, and nothing goes that was not counted."""

from __future__ import annotations

from tests.guards.guard import Guard

GUARDS = (
    Guard(
        "what is acknowledged is not what was shown",
        "recovery_api/services/omission_previews.py",
        "        _still_owed_check(preview)\n",
        "        pass\n",
        ("tests/integration/control/test_omissions.py::test_a_confirmation_is_bound_to_what_was_shown",),
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
