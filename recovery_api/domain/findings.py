"""What a reading finds at a coordinate: one row a word, with its meaning and how it is drawn and listed."""

from __future__ import annotations

from enum import StrEnum


class FindingWord(StrEnum):
    """A finding, in the order in which groups are listed: what was wrongly accepted first.

    A row: the word; what it means of several; the rail's row; its sign (a Plotly symbol) and tone.
    """

    means: str
    label: str
    sign: str
    tone: str

    def __new__(cls, word: str, means: str = "", label: str = "", sign: str = "", tone: str = "unsure") -> FindingWord:
        row = str.__new__(cls, word)
        row._value_ = word
        row.means, row.label, row.sign, row.tone = means, label, sign, tone
        return row

    PREMATURE = "premature", "Accepted, and not as committed.", "premature", "triangle-up", "bad"
    DUPLICATE = (
        "duplicate",
        "The same event was accepted more than once. No recovery takes a copy away; a person decides.",
        "duplicate",
        "diamond",
        "bad",
    )
    LOST = "lost", "Committed, and the sink does not have them. A recovery can send these.", "lost", "x", "warn"
    UNKNOWN = (
        "unknown",
        "Accepted, and nothing that was read shows whether it was committed.",
        "not provable",
        "circle-open",
        "unsure",
    )


class Cause(StrEnum):
    """Why an accepted entry is premature, or what the absence of an id shows. A row: the word, what it means of several."""

    means: str

    def __new__(cls, word: str, means: str = "") -> Cause:
        row = str.__new__(cls, word)
        row._value_ = word
        row.means = means
        return row

    NEVER_COMMITTED = "never committed", "Accepted at a coordinate where nothing was ever committed."
    ALTERED = (
        "altered",
        "Accepted with other content than was committed there. No recovery can deliver the committed one.",
    )
    AHEAD = "ahead of its commit", "Accepted before it was committed."
    HEAD_NOT_BELIEVED = (
        "head not believed",
        "Its relay claimed to know of events beyond everything that was committed.",
    )
    ROW_GONE = (
        "row gone, commit not seen",
        "Accepted, and the source's row was gone before an audit saw it: nothing shows what was committed there.",
    )
    RECEIVED = (
        "received, not accepted",
        "The record has a row of each, and the acceptance condition does not hold: received, and not accepted.",
    )
    TRIMMED = (
        "record trimmed",
        "The record has no row of these, and none that old is kept: nothing shows whether the sink accepted them. Never sent.",
    )
    UNTIMED = (
        "commit time not known",
        "The record has no row of these, and it is not known whether one would still be kept. Never sent.",
    )
    UNREADABLE = (
        "the record holds ids that cannot be read",
        "The record has no row of these that could be read, and rows whose id cannot be: those may be theirs. Never sent.",
    )


ABSENCES = (Cause.TRIMMED, Cause.UNTIMED, Cause.UNREADABLE)
"""Of unknown ones: obligations without an entry, of which nothing shows whether they were accepted."""


LOST_ALTERED_MEANS = "Committed, and the sink holds other content at their coordinate. No recovery can deliver them."
"""Of lost ones whose coordinate the sink has: the other side of an altered entry."""
ACKNOWLEDGED_MEANS = "Somebody decided that these are never to be delivered. They stay lost."


def finding_means(finding: str, cause: str, is_acknowledged: bool, is_altered: bool) -> str:
    """What a group of findings means, in a sentence or two; empty for a word of a later version.

    >>> finding_means("premature", "ahead of its commit", False, False)
    'Accepted before it was committed.'
    """
    if is_acknowledged:
        return ACKNOWLEDGED_MEANS
    if is_altered:
        return LOST_ALTERED_MEANS
    if cause in list(Cause):
        return Cause(cause).means
    return FindingWord(finding).means if finding in list(FindingWord) else ""
