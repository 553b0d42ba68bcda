"""Every finding is one word of the ledger, and every word says what it means."""

from __future__ import annotations

import pytest

from recovery_api.domain.findings import Cause, FindingWord
from recovery_api.domain.ledger.words import DOUBTED, KEPT_AS_ROWS, WRONG, ItemWord, SettledBy, item_word


@pytest.mark.parametrize("finding", FindingWord)
def test_every_finding_opens_an_item(finding: FindingWord) -> None:
    assert item_word(finding.value, None) in ItemWord


def test_only_what_a_person_looks_at_one_by_one_is_kept_as_rows() -> None:
    assert set(ItemWord) - set(KEPT_AS_ROWS) == {ItemWord.UNJUSTIFIABLE}
    assert set(WRONG) < set(DOUBTED) and all(word.is_acceptance for word in DOUBTED)
    assert item_word(FindingWord.PREMATURE, Cause.ALTERED) is ItemWord.ALTERED


def test_every_word_says_what_it_means() -> None:
    assert all(word.means.endswith(".") for word in (*ItemWord, *SettledBy))
