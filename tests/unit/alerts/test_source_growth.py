from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recovery_api.domain.alerts.causes import Cause
from recovery_api.domain.alerts.pipelines import Look, PipelineNow, observations
from recovery_api.domain.alerts.source_growth import over_bounds
from recovery_api.domain.headroom.seen import EndSeen, SlotSeen

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SLOT = SlotSeen("orders", wal_status="extended", room_bytes=500)
SEEN = EndSeen(NOON, slot=SLOT, table_bytes=900)


def over(*slots: SlotSeen | None, least: int | None = 100, most: int | None = None, table: int | None = 900):
    seen = [EndSeen(NOON - timedelta(hours=at), slot=slot, table_bytes=table) for at, slot in enumerate(slots)]
    return over_bounds(seen, most, least)


def test_a_slot_with_little_room_is_over_its_bound_and_one_with_enough_is_not():
    assert over(SLOT, least=100).says == ""
    assert over(SLOT, least=600).says == "The slot orders may keep 500 bytes of WAL more; 600 are asked for."


@pytest.mark.parametrize(
    ("slot", "says"),
    [
        (replace(SLOT, room_bytes=None, wal_status="lost"), "is lost: the WAL"),
        (replace(SLOT, room_bytes=None, lost_because="idle_timeout"), "is lost (idle_timeout)"),
        (replace(SLOT, room_bytes=None, wal_status="unreserved"), "is unreserved"),
        (SlotSeen("orders", is_there=False), "is gone: somebody dropped it."),
    ],
)
def test_a_slot_that_has_nothing_left_is_over_its_bound_though_its_server_names_no_room(slot, says):
    assert says in over(slot, SLOT).says


def test_what_was_not_read_shows_nothing_and_keeps_the_alert_as_it_is():
    assert over(None) is None and over() is None
    assert over(SlotSeen("orders", is_there=False)) is None  # it never was there: a wrong name, not a loss
    assert over(replace(SLOT, problem="belongs to another database")) is None
    assert over(SLOT, most=1000, table=None) is None
    assert over(SLOT, most=1000, least=600, table=None).says  # what was read is over its bound all the same
    assert over(None, most=800).says  # and the other way round


def test_a_lost_slot_does_not_resolve_the_alert_of_a_full_one():
    look = Look("1", NOON, True, 0, 0, 0, source=replace(SEEN, slot=replace(SLOT, room_bytes=None, wal_status="lost")))
    now = PipelineNow(1, "orders", "mail", timedelta(minutes=5), looks=[look], least_slot_room_bytes=100)
    (found,) = [one for one in observations(now, NOON) if one.cause is Cause.SOURCE_GROWTH]
    assert found.is_shown and "is lost" in found.says
