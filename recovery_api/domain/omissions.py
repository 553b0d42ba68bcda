"""Acknowledging more than one omission: by which way it was asked, and what each coordinate turned out to be.

The law: only what the newest audit found lost can be acknowledged. What is accepted, what was never committed and what
lies above f is told apart and left alone: acknowledging it would hide an event that somebody still expects.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Way(StrEnum):
    """How the coordinates were named."""

    FILTER = "filter"
    """A range, or a filter of findings: the lost ones of the newest audit, at that moment."""
    EXPORT = "export"
    """A dead-letter export, line by line."""


class Word(StrEnum):
    """What a coordinate of a preview is. A row: the word; how it is counted in a sentence, of one and of several."""

    one: str
    many: str

    def __new__(cls, word: str, one: str = "", many: str = "") -> Word:
        row = str.__new__(cls, word)
        row._value_ = word
        row.one, row.many = one, many or one
        return row

    OWED = "owed", "event would be acknowledged", "events would be acknowledged"
    """Lost, and nobody acknowledged it: the only ones that a confirmation acknowledges."""
    BY_CONTENT = (
        "owed by content",
        "is lost, and named by its key and content alone: acknowledged only where you say so",
        "are lost, and named by their keys and contents alone: acknowledged only where you say so",
    )
    """Lost, and the one committed event with this key and content. A coordinate or an id shows more: what was set aside may
    have been an earlier event with the same content, which is gone."""
    ALREADY = "already acknowledged", "is acknowledged already", "are acknowledged already"
    ACCEPTED = "accepted", "is accepted: nothing to acknowledge", "are accepted: nothing to acknowledge"
    """The sink's record holds it, as committed."""
    UNDECIDED = (
        "undecided",
        "is neither lost nor accepted by the newest audit: a person decides first",
        "are neither lost nor accepted by the newest audit: a person decides first",
    )
    """Its absence from a record that forgets proves nothing, or it was committed after the audit looked."""
    NEVER_COMMITTED = (
        "never committed",
        "was never committed, or the source no longer has it",
        "were never committed, or the source no longer has them",
    )
    SEVERAL = (
        "several events",
        "names an event id that several committed events have",
        "name event ids that several committed events have",
    )
    ALIKE = (
        "several alike",
        "has the key and content of several committed events",
        "have the key and content of several committed events",
    )
    """Named by key and content alone: which of them was set aside nobody knows."""
    UNMATCHED = (
        "no such content",
        "has a key and content that no committed event has",
        "have keys and contents that no committed event has",
    )
    OTHER_ID = (
        "other event id",
        "has another event id at the source than the export says",
        "have other event ids at the source than the export says",
    )
    ABOVE = "above f", "lies above the frontier", "lie above the frontier"
    OUT_OF_SCOPE = (
        "out of scope",
        "is of a key that this pipeline does not owe",
        "are of keys that this pipeline does not owe",
    )


def counts_says(counts: Mapping[str, Any]) -> str:
    """What a preview would do, in one sentence a word.

    >>> counts_says({"owed": 412, "accepted": 1})
    '412 events would be acknowledged. 1 is accepted: nothing to acknowledge.'
    >>> counts_says({})
    '0 events would be acknowledged.'
    """
    said = []
    for word in Word:
        count = int(counts.get(word, 0))
        if count or word is Word.OWED:
            said.append(f"{count:,} {word.one if count == 1 else word.many}.")
    return " ".join(said)
