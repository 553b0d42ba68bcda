"""What is remembered of a single event or acceptance, and by what it was settled: one row a word."""

from __future__ import annotations

from enum import StrEnum

from recovery_api.domain.findings import Cause, FindingWord


class ItemWord(StrEnum):
    """An item. A row: the word; what it means of one; whether it was accepted (its digest is then the acceptance's)."""

    means: str
    is_acceptance: bool

    def __new__(cls, word: str, means: str = "", is_acceptance: bool = False) -> ItemWord:
        row = str.__new__(cls, word)
        row._value_ = word
        row.means, row.is_acceptance = means, is_acceptance
        return row

    LOST = "lost", "Committed, and the sink does not have it."
    ALTERED = "altered", "Accepted with other content than was committed there.", True
    PREMATURE = "premature", "Accepted, and not as committed.", True
    DUPLICATE = "duplicate", "Accepted more than once.", True
    UNJUSTIFIABLE = "unjustifiable", "Accepted, and nothing that was read shows whether it was committed.", True


KEPT_AS_ROWS = tuple(one for one in ItemWord if one is not ItemWord.UNJUSTIFIABLE)
"""What a person looks at one by one. What cannot be justified may be millions, and is kept with the audit's evidence."""
WRONG = (ItemWord.ALTERED, ItemWord.PREMATURE)
"""Acceptances that an audit found to be not as committed: they stay so when nothing shows it any more."""
DOUBTED = (*WRONG, ItemWord.UNJUSTIFIABLE)
"""Acceptances that an audit saw and did not find justified: no later one may take them to be."""


class SettledBy(StrEnum):
    """What took an item away. A row: the word; what it means."""

    means: str

    def __new__(cls, word: str, means: str = "") -> SettledBy:
        row = str.__new__(cls, word)
        row._value_ = word
        row.means = means
        return row

    ACCEPTED = "accepted", "The sink accepted it."
    COMMITTED = "committed", "The source shows it committed."
    TRIMMED = "trimmed", "The record does not hold it any more."
    REPLACED = "replaced", "It is judged in another way now: under another mapping, or as another finding."


def item_word(finding: str, cause: str | None) -> ItemWord:
    """The item that a finding opens.

    >>> item_word("premature", "altered"), item_word("premature", "never committed"), item_word("unknown", None)
    (<ItemWord.ALTERED: 'altered'>, <ItemWord.PREMATURE: 'premature'>, <ItemWord.UNJUSTIFIABLE: 'unjustifiable'>)
    """
    if finding == FindingWord.UNKNOWN:
        return ItemWord.UNJUSTIFIABLE
    if finding == FindingWord.PREMATURE:
        return ItemWord.ALTERED if cause == Cause.ALTERED else ItemWord.PREMATURE
    return ItemWord(finding)


def settled_by(word: ItemWord) -> SettledBy:
    """What it means that a later audit judged the item's place and found nothing wrong there.

    >>> settled_by(ItemWord.LOST), settled_by(ItemWord.DUPLICATE)
    (<SettledBy.ACCEPTED: 'accepted'>, <SettledBy.TRIMMED: 'trimmed'>)
    """
    return SettledBy.ACCEPTED if word is ItemWord.LOST else SettledBy.TRIMMED
