"""What audits tell the ledger: merged with the audit, by sets, in the order of the record's snapshots."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import BadInput, LedgerMoved, NotFound
from recovery_api.domain.ledger.lanes import LaneKnown, Unseen
from recovery_api.domain.restores import SinkMemory
from recovery_api.models import Audit, EventKind, LedgerItem, LedgerLane
from recovery_api.selectors.ledger import (
    ledger_inherited,
    ledger_items_open,
    ledger_items_remembered,
    ledger_lanes,
    ledger_token,
)
from recovery_api.services.audits import audit_record
from recovery_api.services.ledger import (
    ITEMS_AT_MOST,
    Learnt,
    LearntItem,
    ledger_decide_below,
    ledger_unsettle,
    ledger_void,
)
from recovery_api.services.sinks import sink_remember

pytestmark = pytest.mark.django_db

FRONTIER = {"0": {"position": "9", "ordinal": "0"}}


def lost(position: int, **more: Any) -> LearntItem:
    given: dict[str, Any] = {
        "lane": "0",
        "position": position,
        "ordinal": 0,
        "word": "lost",
        "cause": "",
        "digest": b"\x01" * 32,
        "other_digest": None,
        "entry": None,
        "copies": None,
        "event_id": None,
        "key": None,
        "shown_key": None,
        "committed_at": None,
        "is_acknowledged": False,
        "is_content_gone": False,
        "settled_by": "",
    }
    return LearntItem(**{**given, **more})


def known(**more: Any) -> LaneKnown:
    return LaneKnown(**{"frontier": Coordinate(9), "lowest": Coordinate(1), "admitted_below": 700, **more})


def record(
    pipeline: Any,
    at: datetime,
    items: Iterable[LearntItem] = (),
    *,
    token: str | None = None,
    epoch: str = "e1",
    status: str = "owed",
    **lane: Any,
) -> Audit:
    token = ledger_token(pipeline) if token is None else token
    return audit_record(
        pipeline,
        status=status,
        exit_code={"owed": 1, "exactly_once": 0}[status],
        now=at,
        started_at=at,
        record_read_at=at,
        is_full=False,
        says="Judged.",
        frontier=FRONTIER,
        evidence_uri="/evidence/one",
        learnt=Learnt(epoch, token, {"0": known(**lane)}, items),
    )


def test_what_is_open_is_remembered_from_first_to_last_and_settled_by_a_word(pipeline, now, later) -> None:
    first = record(pipeline, now, [lost(3), lost(5), lost(7)])
    second = record(
        pipeline, later(minutes=1), [lost(3, is_content_gone=True), lost(5, settled_by="accepted"), lost(7)]
    )
    rows = {one.position: one for one in LedgerItem.objects.all()}
    assert {at: (one.is_content_gone, one.settled_by) for at, one in rows.items()} == {
        3: (True, ""),
        5: (False, "accepted"),
        7: (False, ""),
    }
    assert (rows[3].first_audit, rows[3].last_audit) == (first, second)
    assert (rows[3].first_seen_at, rows[3].last_seen_at) == (now, later(minutes=1))
    assert [one.position for one in ledger_items_open(pipeline)] == [3, 7]
    assert sorted(row[2] for row in ledger_items_remembered(pipeline)) == [3, 5, 7]


def test_what_was_settled_is_open_again_where_it_is_found_again(pipeline, now, later) -> None:
    record(pipeline, now, [lost(3)])
    record(pipeline, later(minutes=1), [lost(3, settled_by="accepted")], status="exactly_once")
    record(pipeline, later(minutes=2), [lost(3, is_content_gone=True)])
    (item,) = LedgerItem.objects.all()
    assert (item.settled_at, item.settled_by, item.is_content_gone) == (None, "", True)
    assert item.first_seen_at == now


def test_a_reading_that_finds_the_ledger_moved_on_records_nothing(pipeline, now, later) -> None:
    token = ledger_token(pipeline)
    record(pipeline, now, [lost(3)], token=token)
    with pytest.raises(LedgerMoved), transaction.atomic():
        record(pipeline, later(minutes=1), [lost(4)], token=token)
    assert Audit.objects.count() == 1 and [one.position for one in LedgerItem.objects.all()] == [3]
    assert LedgerMoved("mail").is_transient


def test_an_event_that_is_lost_twice_over_is_one_item(pipeline, now) -> None:
    record(pipeline, now, [lost(3), lost(3), lost(3, digest=b"\x02" * 32)])
    assert LedgerItem.objects.count() == 2


def test_what_does_not_fit_into_rows_lies_with_the_evidence_and_that_is_said(pipeline, now, later) -> None:
    record(pipeline, now, (lost(number) for number in range(ITEMS_AT_MOST + 10)))
    lane = LedgerLane.objects.get()
    assert LedgerItem.objects.count() == ITEMS_AT_MOST
    assert (lane.is_whole, lane.evidence) == (False, "/evidence/one")
    assert not ledger_lanes(pipeline)[("0", "e1")].is_whole
    settled = [lost(number, settled_by="accepted") for number in range(5)]
    record(pipeline, later(minutes=1), settled, evidence="")
    assert LedgerLane.objects.get().is_whole


def test_another_epoch_has_a_ledger_of_its_own_and_inherits_what_nobody_saw(pipeline, now, later) -> None:
    record(pipeline, now, [lost(3)], unseen=Unseen(None, Coordinate(2)), earliest=Coordinate(2))
    assert ledger_inherited(pipeline)["0"] == LaneKnown(earliest=Coordinate(2), unseen=Unseen(None, Coordinate(2)))
    record(pipeline, later(minutes=1), [lost(4)], epoch="e2")
    assert set(ledger_lanes(pipeline)) == {("0", "e1"), ("0", "e2")}
    assert {one.position: one.epoch for one in LedgerItem.objects.all()} == {3: "e1", 4: "e2"}


def test_a_restore_voids_the_lanes_and_keeps_the_items(pipeline, now, later) -> None:
    record(pipeline, now, [lost(3)], earliest=Coordinate(1))
    token = ledger_token(pipeline)
    ledger_void(pipeline, "restored", now)
    assert ledger_lanes(pipeline) == {} and ledger_token(pipeline) != token
    assert ledger_items_open(pipeline).count() == 1 and ledger_inherited(pipeline)["0"].earliest == Coordinate(1)
    record(pipeline, later(minutes=1), [lost(3)])
    assert len(ledger_lanes(pipeline)) == 1


def test_a_sink_found_restored_voids_the_ledger_of_its_pipeline(pipeline, now) -> None:
    sink_remember(pipeline.sink, SinkMemory("a", 7, 6, 100), actor="worker", now=now)
    record(pipeline, now, [lost(3)])
    sink_remember(pipeline.sink, SinkMemory("a", 5, 5, 80), actor="worker", now=now)
    assert ledger_lanes(pipeline) == {} and ledger_items_open(pipeline).count() == 1


def test_a_late_row_takes_away_how_far_the_history_was_seen_and_nothing_else(pipeline, now) -> None:
    record(pipeline, now)
    ledger_unsettle(pipeline, "0")
    lane = ledger_lanes(pipeline)[("0", "e1")]
    assert (lane.frontier, lane.admitted_below) == (None, 700)


def test_who_decides_that_nothing_is_owed_gives_a_reason_and_is_named(pipeline, now) -> None:
    with pytest.raises(NotFound):
        ledger_decide_below(pipeline, "4", reason="tests", actor="grace", now=now)
    record(pipeline, now, unseen=Unseen(None, Coordinate(4)))
    with pytest.raises(BadInput):
        ledger_decide_below(pipeline, "4", reason=" ", actor="grace", now=now)
    ledger_decide_below(pipeline, "4", reason="they were tests", actor="grace", now=now)
    lane = ledger_lanes(pipeline)[("0", "e1")]
    assert lane.decided_below == Coordinate(4)
    assert lane.decided == "that nothing below 4 is owed (grace on 2026-03-01 03:00 UTC)"
    event = pipeline.events.get(kind=EventKind.LEDGER_DECIDED)
    assert event.actor == "grace" and "they were tests" in event.says


def test_the_command_lists_what_is_open_and_decides(pipeline, now) -> None:
    record(pipeline, now, [lost(3, is_content_gone=True)], unseen=Unseen(None, Coordinate(2)))
    out = io.StringIO()
    call_command("ledger", "list", "mail", stdout=out)
    assert "lane 0: seen up to 9; unknown below 2" in out.getvalue()
    assert "0=3  lost, content gone  first seen 2026-03-01T03:00" in out.getvalue()
    out = io.StringIO()
    call_command("ledger", "list", "mail", "--json", stdout=out)
    body = json.loads(out.getvalue())
    assert (body["open_count"], body["items"][0]["is_content_gone"]) == ("1", True)
    call_command("ledger", "nothing-owed-below", "mail", "2", "--reason", "tests", stdout=out)
    assert LedgerLane.objects.get().decided_because == "tests"
