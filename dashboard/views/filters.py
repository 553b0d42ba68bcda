"""Filters in the address: read strictly, so that a mistyped one is said and never shows everything instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from django.http import HttpRequest

from recovery_api.domain.errors import BadInput, UnknownOption
from recovery_api.domain.kinds.base import Option, options_parse

LONGEST = 300


class Filters:
    """What a page's address may carry: declared like a kind's options, `choices` empty for any text."""

    name = "filter"

    def __init__(self, known: Mapping[str, Sequence[str]]) -> None:
        self.options = tuple(Option(name, "", choices=tuple(choices)) for name, choices in known.items())


def filters_read(request: HttpRequest, known: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The filters given and not empty. Raises: UnknownOption, BadInput naming what would be understood."""
    given: dict[str, str] = {}
    for name, values in request.GET.lists():
        if name not in known:
            options_parse(Filters(known), {name: "x"})  # raises, with the nearest
            raise UnknownOption(f"filter.{name}", ", ".join(known), "")
        if len(values) > 1:
            raise BadInput(f"filter.{name}", "is given twice", "Give it once.")
        value = values[0].strip()
        if "\x00" in value or len(value) > LONGEST:
            raise BadInput(f"filter.{name}", "cannot be looked for", f"At most {LONGEST} characters, no NUL.")
        if value and known[name] and value not in known[name]:
            raise BadInput(
                f"filter.{name}", f"{value!r} is not one of its values", f"One of: {', '.join(known[name])}."
            )
        if value:
            given[name] = value
    return given


def page_read(given: Mapping[str, str]) -> int:
    """The page asked for, from 1. Raises: BadInput."""
    text = given.get("page", "1")
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 1_000_000:
        raise BadInput("filter.page", f"{text!r} is no page", "Pages count from 1.")
    return int(text)


def query_of(given: Mapping[str, str], *without: str) -> str:
    """The filters as the beginning of a query, ending with & where there are any."""
    kept = {name: value for name, value in given.items() if name not in without}
    return urlencode(kept) + "&" if kept else ""
