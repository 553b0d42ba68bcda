"""Words that are kept: each is one row of an enumeration that says everything about it.

Pages, REST, commands and the database's constraints read the rows; none of them lists the words a second time.
"""

from __future__ import annotations

from enum import StrEnum


def words(of: type[StrEnum]) -> list[str]:
    """The words as plain text, in the order of their rows: for a constraint, a filter, a document."""
    return [one.value for one in of]


def choices(of: type[StrEnum]) -> list[tuple[str, str]]:
    """Word and name, as a database field declares them.

    >>> choices(StrEnum("Colour", {"DEEP_RED": "deep_red"}))
    [('deep_red', 'Deep Red')]
    """
    return [(one.value, one.name.replace("_", " ").title()) for one in of]
