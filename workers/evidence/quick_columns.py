"""The canonical texts of many contents at once: a column of values is a column of texts, and so on down.

The law of workers.evidence.quick holds: what is not certain is not done here. Kinds and shapes are looked at once a column,
and where no number of the whole column is long, a float is what was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any

from workers.evidence.canonical import ABSENT, number_canonical
from workers.evidence.quick import SHAPES_KEPT, Uncertain, canonical_quick, order_of

SHAPES_FEW = 16
"""Objects of more shapes than this in one column are written one at a time."""

LEAST, MOST = 1e-300, 1e300
"""Between these a float of either sign holds 15 digits."""

_LONG = re.compile(rb"[0-9.]{16}")
_POWER = re.compile(rb"[0-9][eE][-+0-9]")
_WORDS = {True: "true", False: "false"}
_shapes: dict[tuple[str, ...], tuple[Callable[[Any], Any], str]] = {}


def canonical_column(contents: Sequence[Any], spelled: bytes) -> tuple[list[str], int]:
    """The canonical text of each content, and how many members all their objects have together. `spelled`: what they
    were read from. Raises: Uncertain.

    >>> canonical_column([{"bb": 1, "a": [None, 2.50]}, {"bb": 2, "a": []}], b'{"bb":1,"a":[null,2.50]} {"bb":2,"a":[]}')
    (['{"a": [null, 2.5], "bb": 1}', '{"a": [], "bb": 2}'], 4)
    """
    column = _Column(spelled)
    return _texts(contents, column), column.members


@dataclass
class _Column:
    """What is known of a whole column. `members`: of all objects so far."""

    spelled: bytes
    members: int = 0

    @cached_property
    def has_short_numbers(self) -> bool:
        """Whether no number is written with more digits than a float gives back."""
        return _LONG.search(self.spelled) is None

    @cached_property
    def has_powers(self) -> bool:
        """Whether a number may be written with a power of ten."""
        return _POWER.search(self.spelled) is not None


def _texts(values: Sequence[Any], column: _Column) -> list[str]:
    kinds = set(map(type, values))
    if len(kinds) != 1:
        return _by_group(values, list(map(type, values)), kinds, column)
    (kind,) = kinds
    if kind is str:
        return list(map(encode_basestring, values))
    if kind is int:
        return list(map(str, values))
    if kind is type(None):
        return ["null"] * len(values)
    if kind is dict:
        return _objects(values, column)
    if kind is list:
        each = iter(_texts(list(chain.from_iterable(values)), column))
        return [f"[{', '.join(islice(each, count))}]" for count in map(len, values)]
    if kind is bool:
        return [_WORDS[value] for value in values]
    if kind is float and column.has_short_numbers:
        return [_decimal(value, column) for value in values]
    raise Uncertain


def _decimal(value: float, column: _Column) -> str:
    """A number of at most 15 digits, which a float keeps. What is too small for one reads as 0, as only a power of ten can be.

    Source: C's DBL_DIG; a float's shortest text has the digits that were written.
    """
    if value == 0:
        if column.has_powers:
            raise Uncertain
        return "0"
    if not LEAST < abs(value) < MOST:
        raise Uncertain
    text = repr(value)
    return text.removesuffix(".0") if "e" not in text else number_canonical(text)


def _objects(values: Sequence[dict[str, Any]], column: _Column) -> list[str]:
    different = set(map(tuple, values))
    if len(different) != 1:
        if len(different) <= SHAPES_FEW:
            return _by_group(values, list(map(tuple, values)), different, column)
        return [_alone(value, column) for value in values]
    (names,) = different
    column.members += len(names) * len(values)
    if not names:
        return ["{}"] * len(values)
    taken, template = _shape(names)
    items = zip(*map(taken, values), strict=True) if len(names) > 1 else (list(map(taken, values)),)
    return list(map(template.__mod__, zip(*(_texts(each, column) for each in items), strict=True)))


def _shape(names: tuple[str, ...]) -> tuple[Callable[[Any], Any], str]:
    """What takes the items of an object with these members in canonical order, and its text with a place for each."""
    found = _shapes.get(names)
    if found is None:
        order = order_of(names)
        spelled = ", ".join(f"{encode_basestring(name)}: ".replace("%", "%%") + "%s" for name in order)
        found = itemgetter(*order), f"{{{spelled}}}"
        if len(_shapes) < SHAPES_KEPT:
            _shapes[names] = found
    return found


def _by_group(values: Sequence[Any], of: Sequence[Any], groups: set[Any], column: _Column) -> list[str]:
    """Each group of values as a column of its own, and the texts back in their places. `of`: each value's group."""
    texts: list[Any] = [ABSENT] * len(values)
    for group in groups:
        places = [place for place, one in enumerate(of) if one == group]
        for place, text in zip(places, _texts([values[place] for place in places], column), strict=True):
            texts[place] = text
    return texts


def _alone(value: dict[str, Any], column: _Column) -> str:
    text, count = canonical_quick(value)
    column.members += count
    return text
