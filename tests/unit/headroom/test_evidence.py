"""Until when a verdict's evidence lasts: the earliest that is known, and nothing that is made up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from recovery_api.domain.headroom.evidence import (
    evidence_terms,
    evidence_until,
    exit_code_read,
    is_expired,
    word_read,
)
from recovery_api.domain.headroom.seen import Clocks
from recovery_api.domain.headroom.terms import SAME_CLOCK
from recovery_api.domain.kinds.base import Retention
from recovery_api.domain.outcomes import Status
from tests.unit.headroom.cases import NOW, hours, minutes

SAME = Clocks(SAME_CLOCK, SAME_CLOCK, SAME_CLOCK)
READ = NOW - minutes(5)
HOUR = 3600


def until(
    status: Status = Status.EXACTLY_ONCE,
    source: dict[str, Any] | None = None,
    retention: Retention = Retention.KEEPS,
    record: dict[str, Any] | None = None,
    is_for_good: bool = True,
    clocks: Clocks = SAME,
    read_since: Any = READ,
) -> Any:
    held: dict[str, Any] = record or {}
    terms = evidence_terms(
        status, source or {}, retention, held, held, (is_for_good, is_for_good), read_since, NOW, clocks, NOW
    )
    return evidence_until(status, terms)


def test_ends_that_delete_nothing_give_no_end_whatever_their_disks_are() -> None:
    found = until(record={"disk_free_bytes": 1, "disk_growth_bytes_per_hour": 1})
    assert (found.until, found.says) == (
        None,
        "Its evidence has no end: both ends delete nothing of it, as declared.",
    )


def test_record_that_goes_by_age_counts_from_what_the_verdict_read_itself() -> None:
    found = until(record={"record_keeps_seconds": HOUR}, is_for_good=False)
    assert found.until == READ + hours(1)
    assert found.says.startswith("Its evidence lasts until 2026-03-01 12:55:00 UTC. The record keeps rows for 1 h")


def test_sink_memory_counts_from_where_the_next_reading_begins() -> None:
    assert until(record={"memory_seconds": HOUR}).until == NOW + hours(1)


def test_memory_in_entries_becomes_time_by_its_peak() -> None:
    assert until(record={"memory_entries": 7200, "memory_peak_per_second": 2}).until == NOW + hours(1)


def test_earliest_of_several_counts() -> None:
    record = {"record_keeps_seconds": 2 * HOUR, "memory_seconds": 10 * HOUR}
    source = {"purges_after_seconds": HOUR, "purges_from": "commit"}
    found = until(source=source, retention=Retention.PURGES, record=record, is_for_good=False)
    assert found.until == READ + hours(1) and "source deletes rows 1 h after commit" in found.says


@pytest.mark.parametrize(
    "given",
    [
        {"is_for_good": False},
        {"retention": Retention.PURGES, "source": {}},
        {"retention": Retention.DELETES_DELIVERED},
        {"record": {"record_keeps_seconds": HOUR}, "is_for_good": False, "read_since": None},
        {"record": {"record_keeps_seconds": HOUR}, "is_for_good": False, "clocks": Clocks(None, None, None)},
    ],
)
def test_what_nobody_declared_or_measured_has_no_moment_and_is_said(given: dict[str, Any]) -> None:
    found = until(**given)
    assert found.until is None and found.says.startswith("How long its evidence lasts is not known. ")
    assert not is_expired(found.until, NOW + timedelta(days=9999)), "undeclared is not expired"


def test_known_beside_unknown_is_at_most() -> None:
    found = until(retention=Retention.DELETES_DELIVERED, record={"memory_seconds": HOUR})
    assert found.until == NOW + hours(1)
    assert "13:00:00 UTC at most." in found.says and "Not known: The source deletes rows" in found.says


def test_what_is_lost_rests_on_the_record_alone() -> None:
    source = {"purges_after_seconds": 60, "purges_from": "commit"}
    record = {"record_keeps_seconds": HOUR, "memory_seconds": 60}
    found = until(Status.OWED, source, Retention.PURGES, record, is_for_good=False)
    assert found.until == READ + hours(1)


def test_hazard_is_taken_back_by_nothing() -> None:
    found = until(Status.HAZARD, record={"record_keeps_seconds": 60}, is_for_good=False)
    assert found.until is None and "stays so" in found.says


def test_measured_clocks_take_their_whole_error_off() -> None:
    clock = Clocks(SAME_CLOCK, type(SAME_CLOCK)(error=minutes(2)), SAME_CLOCK)
    assert until(record={"record_keeps_seconds": HOUR}, is_for_good=False, clocks=clock).until == READ + minutes(58)


def test_from_that_moment_on_it_reads_unknown() -> None:
    lasts = NOW + hours(1)
    for at, word, code in ((lasts - timedelta(microseconds=1), "exactly_once", 0), (lasts, "evidence_expired", 3)):
        assert (word_read("exactly_once", lasts, at), exit_code_read("exactly_once", lasts, at)) == (word, code)
