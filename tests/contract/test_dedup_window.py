"""The conformance cases of a deduplicating consumer's window."""

from __future__ import annotations

from recovery_api.domain.deduplication import processed_counts
from tests.contract.verdict_cases import cases_read


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
