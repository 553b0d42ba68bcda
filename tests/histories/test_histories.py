"""Thirty random histories: incremental audit, full audit and what was generated agree. `make histories` runs more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.histories.ends import Ends
from tests.histories.history import History

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
COUNT = 30
FIRST = 7000


def test_incremental_full_and_generated_history_agree(database_factory: Callable[[str], str], tmp_path: Path) -> None:
    ends = Ends(database_factory("history_source"), database_factory("history_sink"), tmp_path)
    kept = 0
    for seed in range(FIRST, FIRST + COUNT):
        history = History(ends, seed, tmp_path)
        history.run()
        kept += history.kept
    assert kept >= COUNT, "incremental audits left blocks unread, or nothing was compared"


def test_an_acceptance_that_is_changed_above_the_newest_block_is_told_as_a_change(
    database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    """It is read again and judged as it is now each time; that it was another when it was seen is said as well."""
    ends = Ends(database_factory("history_source"), database_factory("history_sink"), tmp_path)
    assert History(ends, 30_261_410, tmp_path).run(), "no audit was compared"
