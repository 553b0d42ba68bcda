"""Words that are stored: each is a member of an enumeration, a *row*, that says everything about it.

Pages, REST, commands and the database's constraints read the rows; none of them lists the words a second time.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar

Row = TypeVar("Row", bound=StrEnum)


def row_make(of: type[Row], word: str, **said: Any) -> Row:
    """A row for an enumeration's `__new__` to give back: the word, and as attributes what is said of it."""
    row = str.__new__(of, word)
    row._value_ = word
    for name, value in said.items():
        setattr(row, name, value)
    return row


def words(of: type[StrEnum]) -> list[str]:
    """The words as plain text, in the order of their rows: for a constraint, a filter, a document."""
    return [one.value for one in of]


def choices(of: type[StrEnum]) -> list[tuple[str, str]]:
    """Word and name, as a database field declares them.

    >>> choices(StrEnum("Colour", {"DEEP_RED": "deep_red"}))
    [('deep_red', 'Deep Red')]
    """
    return [(one.value, one.name.replace("_", " ").title()) for one in of]
