"""What an audit saw of the ends: growth, slots as each version of PostgreSQL shows them, and rows that come back the same."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import BadInput
from recovery_api.domain.headroom.observed import AuditSeen, arrivals_of, slot_was_there
from recovery_api.domain.headroom.seen import (
    ClockSeen,
    EndSeen,
    SlotSeen,
    end_seen_as_row,
    end_seen_from_row,
    growth_per_hour,
    slot_terms,
)
from recovery_api.domain.kinds import kind_get, options_parse
from tests.unit.headroom.cases import GIB, NOW, hours, minutes
from workers.connectors.postgresql.looking import slot_from_row

SPANS = st.timedeltas(timedelta(-1), timedelta(1))


@given(
    seen=st.builds(
        EndSeen,
        st.just(NOW),
        st.none() | st.builds(ClockSeen, SPANS, SPANS),
        st.none()
        | st.builds(
            SlotSeen,
            st.just("relay"),
            st.booleans(),
            st.sampled_from(["", "It is somebody else's."]),
            st.sampled_from(["", "reserved", "lost"]),
            st.sampled_from(["", "wal_removed"]),
            st.none() | st.integers(-(2**63), 2**63),
            st.none() | SPANS,
            st.none() | SPANS,
        ),
        st.none() | st.integers(0, 2**63),
        st.none() | st.integers(0, 2**63),
        st.sampled_from(["", "gone away"]),
    )
)
def test_row_comes_back_as_it_was(seen: EndSeen) -> None:
    assert end_seen_from_row(end_seen_as_row(seen)) == seen


def test_audit_that_looked_at_nothing_has_no_row() -> None:
    assert end_seen_from_row(None) is None and end_seen_from_row({}) is None


def test_growth_is_the_most_between_two_looks_far_enough_apart() -> None:
    far = [(NOW, 900), (NOW - hours(1), 600), (NOW - hours(2), 0)]
    assert growth_per_hour(far) == 600
    close = [(NOW - timedelta(seconds=5 * number), 100 - number) for number in range(4)]
    assert growth_per_hour(close) == 2 * 360, "each with the newest that is ten seconds older"


@pytest.mark.parametrize("sizes", [[], [5], [None, 5], [5, 9]])
def test_growth_that_nothing_shows_is_not_known(sizes: list[int | None]) -> None:
    assert growth_per_hour([(NOW - hours(number), size) for number, size in enumerate(sizes)]) is None


def test_many_close_audits_hide_no_rate_of_arrivals() -> None:
    audits = [
        AuditSeen(at, at, False, True, 100 - number, 0, 0, 0, {"0": Coordinate(9)}, {})
        for number in range(4)
        for at in [NOW - timedelta(seconds=4 * number)]
    ]
    assert arrivals_of(audits).peak_per_second == 3 / 12


ROW: dict[str, Any] = {"slot_type": "logical", "database": "orders", "active": False, "wal_status": "reserved"}


def read(**more: Any) -> SlotSeen:
    return slot_from_row("relay", {**ROW, **more}, "orders", NOW, None)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"slot_type": "physical", "database": None}, "is a physical one"),
        ({"database": "mail"}, "is of the database mail, not of orders: it is somebody else's"),
        ({"temporary": True}, "is temporary"),
    ],
)
def test_slot_that_keeps_nothing_for_this_source_is_said(row: dict[str, Any], problem: str) -> None:
    assert problem in read(**row).problem


def test_slot_as_older_and_newer_servers_show_it() -> None:
    assert read() == SlotSeen("relay", wal_status="reserved")
    assert read(conflicting=True).lost_because == "conflict"
    assert read(invalidation_reason="rows_removed", conflicting=True).lost_because == "rows_removed"
    idle = slot_from_row("relay", {**ROW, "inactive_since": "2026-03-01T11:00:00+00:00"}, "orders", NOW, 7200.0)
    assert (idle.idle, idle.idle_limit) == (hours(1), hours(2))
    busy = {**ROW, "active": True, "inactive_since": None}
    assert slot_from_row("relay", busy, "orders", NOW, 7200.0).idle is None


def terms(seen: SlotSeen | None, wal: float | None = GIB, disk: int | None = None, was_there: bool = False) -> Any:
    end = None if seen is None else EndSeen(NOW, slot=seen)
    return slot_terms("relay", end, was_there, wal, disk, NOW)


def test_slot_in_use_counts_its_idle_time_from_now_on() -> None:
    seen = SlotSeen("relay", room_bytes=GIB, idle_limit=minutes(30))
    room, idle = terms(seen)
    assert (room.expires_at, idle.expires_at) == (NOW + hours(1), NOW + minutes(30))
    assert "relay is read now" in idle.says


@pytest.mark.parametrize("wal", [None, 0.0])
def test_slot_without_any_growth_is_no_time(wal: float | None) -> None:
    (one,) = terms(SlotSeen("relay", room_bytes=GIB), wal)
    assert one.reach == "unknown"


def test_slot_without_limit_is_the_disk_and_unknown_where_that_is() -> None:
    assert terms(SlotSeen("relay"))[0].reach == "unknown"
    assert terms(SlotSeen("relay"), disk=2 * GIB)[0].expires_at == NOW + hours(2)


def test_slot_that_another_name_was_read_for_is_not_read() -> None:
    assert terms(SlotSeen("old"))[0].reach == terms(None)[0].reach == "unknown"
    assert not slot_was_there([], "relay")


@pytest.mark.parametrize("name", ["", "Relay", "a-b", "x" * 64, "re lay", "relay;"])
def test_name_that_no_slot_can_have_is_refused(name: str) -> None:
    options = {"connection": "env:A", "table": "outbox", "coordinate": ["id"], "slot": name}
    with pytest.raises(BadInput, match="slot"):
        options_parse(kind_get("postgresql_outbox"), options)
