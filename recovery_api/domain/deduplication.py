"""What a deduplicating consumer with bounded memory makes of a record (paper, section 8)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Payload = TypeVar("Payload", bound=Hashable)


def processed_counts(record: Iterable[Payload], window: int | None) -> dict[Payload, int]:
    """How often each payload is processed as new by a consumer that remembers the last `window` record positions.

    Absorbed repeats take positions too, so a repeat refreshes the memory of its payload. None: it remembers for good.

    >>> processed_counts(["p1", "p2", "p1"], 1), processed_counts(["p1", "p2", "p1"], 2)
    ({'p1': 2, 'p2': 1}, {'p1': 1, 'p2': 1})
    """
    last_seen: dict[Payload, int] = {}
    processed: dict[Payload, int] = {}
    for position, payload in enumerate(record):
        seen = last_seen.get(payload)
        if seen is None or (window is not None and position - seen > window):
            processed[payload] = processed.get(payload, 0) + 1
        last_seen[payload] = position
    return processed
