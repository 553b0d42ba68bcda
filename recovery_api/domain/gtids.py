"""GTID sets: the transactions of each server, as MySQL prints them (`SERVER:1-5:7,SERVER:1-3`).

Source: MySQL's reference manual, "GTID Format and Storage".
"""

from __future__ import annotations

import re

Spans = list[tuple[int, int]]
"""First and last number of each stretch, ascending, none touching the next."""

_SERVER = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OF_SERVER = re.compile(rf"({_SERVER})((?::[0-9]+(?:-[0-9]+)?)+)", re.ASCII)


def gtid_set(text: str) -> dict[str, Spans] | None:
    """The set by server; None: no GTID set. Case, blanks, order and how stretches are cut make no difference.

    >>> gtid_set("AAAAAAAA-0000-0000-0000-000000000001:41-60 : 65:61-64,\\n")
    {'aaaaaaaa-0000-0000-0000-000000000001': [(41, 65)]}
    >>> gtid_set("12") is None
    True
    """
    parts = [part for part in re.sub(r"\s", "", text).lower().split(",") if part]
    found: dict[str, Spans] = {}
    for part in parts:
        match = _OF_SERVER.fullmatch(part)
        if match is None:
            return None
        spans = found.setdefault(match[1], [])
        for span in match[2][1:].split(":"):
            first, _, last = span.partition("-")
            spans.append((int(first), int(last or first)))
    return {server: _merged(spans) for server, spans in found.items()} or None


def _merged(spans: Spans) -> Spans:
    merged: Spans = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        elif first <= last:
            merged.append((first, last))
    return merged
