"""A filter that a person keeps by name: the parameters of the overview's address, in one spelling."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from recovery_api.domain.errors import BadInput
from recovery_api.domain.visible import visible

NAMES = ("status", "headroom", "plan", "owner", "label", "q")
"""The overview's filters, in the order of its form. Which values each takes, it says where they are used."""
LONGEST_NAME, LONGEST_QUERY = 100, 2000
MOST = 50
"""Of one person."""


def filter_name_parse(text: str) -> str:
    """Raises: BadInput for a name that is empty, too long, or cannot be read.

    >>> filter_name_parse(" my team ")
    'my team'
    """
    name = text.strip()
    if not name or len(name) > LONGEST_NAME or name != visible(name) or not name.isprintable():
        remedy = f"Give 1 to {LONGEST_NAME} characters that can be read."
        raise BadInput("name", f"{visible(name)[:40]!r} is no name", remedy)
    return name


def filter_query_parse(text: str) -> str:
    """The filters in the order of the form. Raises: BadInput for none, one that is not known, or one given twice.

    >>> filter_query_parse("?owner=payments&status=owed&q=")
    'status=owed&owner=payments'
    """
    if len(text) > LONGEST_QUERY:
        raise BadInput("query", f"is longer than {LONGEST_QUERY} characters", "Save fewer filters.")
    given: dict[str, str] = {}
    for name, value in parse_qsl(text.removeprefix("?"), keep_blank_values=True):
        if name not in NAMES:
            raise BadInput(
                "query", f"{visible(name)[:40]!r} is no filter of the overview", f"Known: {', '.join(NAMES)}."
            )
        if name in given:
            raise BadInput("query", f"{name} is given twice", "Give it once.")
        if "\x00" in value:
            raise BadInput("query", f"{name} holds a NUL character", "Take it out.")
        given[name] = value.strip()
    found = filter_query_of(given)
    if not found:
        raise BadInput("query", "holds no filter", "Filter the overview first, then save that.")
    return found


def filter_query_of(given: Mapping[str, str]) -> str:
    """The one spelling of these filters; "" where there is none."""
    return urlencode([(name, given[name]) for name in NAMES if given.get(name)])
