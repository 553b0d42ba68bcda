"""The conformance cases of a deduplicating consumer's window, against what such a consumer does (paper, section 8)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

from tests.contract.verdict_cases import cases_read

Payload = TypeVar("Payload", bound=Hashable)


def processed_counts(record: Iterable[Payload], window: int | None) -> dict[Payload, int]:
    """How often each payload is processed as new by a consumer that remembers the last `window` record positions.

    Absorbed repeats take positions too, so a repeat refreshes the memory of its payload. None: it remembers for good.
    """
    last_seen: dict[Payload, int] = {}
    processed: dict[Payload, int] = {}
    for position, payload in enumerate(record):
        seen = last_seen.get(payload)
        if seen is None or (window is not None and position - seen > window):
            processed[payload] = processed.get(payload, 0) + 1
        last_seen[payload] = position
    return processed


def test_window_processes_each_payload_as_often_as_expected():
    failed = [
        case["id"]
        for case in cases_read("dedup_window.json")
        if case["expect"]
        != {
            "processed": processed_counts(case["record"], case["window"]),
            "permanent": processed_counts(case["record"], None),
        }
    ]
    assert not failed
