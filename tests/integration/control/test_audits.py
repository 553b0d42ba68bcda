"""Audits: recorded whole, never clean where unknown, stale after a while."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from recovery_api.domain.errors import BadCoordinate, BadInput, NotFound, Refused
from recovery_api.models import Audit, Event, Intent
from recovery_api.selectors.fleet import fleet_status
from recovery_api.selectors.omissions import acknowledged_by_lane
from recovery_api.services.audits import audit_record, audit_request
from recovery_api.services.intents import intent_take, intents_sweep
from recovery_api.services.omissions import omission_acknowledge, omission_withdraw
from tests.integration.control.conftest import FRONTIER, make_pipeline


def record(pipeline, now, status="exactly_once", exit_code=0, **more):
    given = {"started_at": now, "now": now, "is_full": True, "says": "Judged.", "frontier": FRONTIER, **more}
    return audit_record(pipeline, status=status, exit_code=exit_code, **given)


def test_audit_is_asked_for_in_the_sources_spelling(pipeline, now):
    intent = audit_request(pipeline, actor="on-call", now=now, frontier="42", is_full=True)
    assert intent.arguments == {"frontier": FRONTIER, "is_full": True}
    with pytest.raises(BadCoordinate):
        audit_request(pipeline, actor="on-call", now=now, frontier="9223372036854775808")
    assert Intent.objects.count() == 1


def test_audit_and_its_intent_end_together(pipeline, now):
    intent = intent_take(audit_request(pipeline, actor="on-call", now=now).id, "worker", now)
    audit = record(pipeline, now, intent=intent, findings=[{"finding": "lost"}] * 300)
    intent.refresh_from_db()
    assert intent.result == {"audit": str(audit.id), "status": "exactly_once", "exit_code": 0}
    assert len(audit.findings) == 200
    with pytest.raises(Refused, match="an audit intent records one audit"):
        record(pipeline, now, intent=intent)


def test_audit_of_a_lost_intent_is_not_recorded(pipeline, now, later):
    dead = intent_take(audit_request(pipeline, actor="on-call", now=now).id, "worker", now)
    intents_sweep(later(seconds=31))
    with pytest.raises(Refused, match="another worker holds it"):
        record(pipeline, later(seconds=32), intent=dead)
    assert not Audit.objects.exists() and not Event.objects.filter(kind="audit recorded").exists()


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"status": "unknown", "exit_code": 0}, "an audit exits as its status says"),
        ({"lost_count": 1}, "exactly once has nothing lost and no hazard"),
        ({"exit_code": 5, "status": "owed"}, "an audit exit code is known"),
        ({"exit_code": 4, "status": "owed"}, "an audit exits as its status says"),
        ({"status": "exactly_once_given", "exit_code": 4}, "only what was given nothing is exactly once"),
        ({"givens": ["a grace of 30 s"]}, "only what was given nothing is exactly once"),
    ],
)
def test_verdict_that_contradicts_itself_is_refused_by_the_database(pipeline, now, fields, name):
    with pytest.raises(Refused, match=name):
        record(pipeline, now, **fields)
    with pytest.raises(BadInput, match="'clean' is no status"):
        record(pipeline, now, status="clean")


def test_status_is_unknown_until_audited_and_once_stale(pipeline, now, later):
    make_pipeline("never", now)
    record(pipeline, now)
    fresh = {status.pipeline.name: status for status in fleet_status(later(minutes=14))}
    assert fresh["mail"].status == "exactly_once" and fresh["never"].status == "unknown"
    stale = {status.pipeline.name: status for status in fleet_status(later(minutes=16))}["mail"]
    assert (
        stale.status == "unknown" and stale.is_stale and stale.says == "Stale, so unknown; when last audited: Judged."
    )


def test_fleet_takes_three_queries(pipeline, now, django_assert_num_queries):
    for name in ("one", "two", "three"):
        record(make_pipeline(name, now), now)
    with django_assert_num_queries(3):
        assert len(fleet_status(now)) == 4


def test_omission_is_acknowledged_with_a_reason_and_withdrawn(pipeline, now, later):
    omission_acknowledge(pipeline, "41", reason="dead letter", actor="operator", now=now)
    assert acknowledged_by_lane(pipeline)["0"].count == 1
    with pytest.raises(Refused, match="a coordinate is acknowledged once"):
        omission_acknowledge(pipeline, "41", reason="again", actor="operator", now=now)
    with pytest.raises(BadInput, match="reason"):
        omission_acknowledge(pipeline, "42", reason=" ", actor="operator", now=now)
    omission_withdraw(pipeline, "41", actor="operator", now=later(minutes=1))
    assert acknowledged_by_lane(pipeline) == {}
    with pytest.raises(NotFound):
        omission_withdraw(pipeline, "41", actor="operator", now=now)
    omission_acknowledge(pipeline, "41", reason="after all", actor="operator", now=later(minutes=2))


def test_acknowledging_leaves_an_approved_plan_and_withdrawing_lapses_it(approved_plan, pipeline, now):
    omission_acknowledge(pipeline, "41", reason="dead letter", actor="operator", now=now)
    approved_plan.refresh_from_db()
    assert approved_plan.state == "approved"
    omission_withdraw(pipeline, "41", actor="operator", now=now)
    approved_plan.refresh_from_db()
    assert approved_plan.state == "lapsed"


def test_nothing_that_is_told_of_can_be_deleted(pipeline, now):
    from django.db.models import ProtectedError

    with pytest.raises(ProtectedError):
        pipeline.delete()
    with pytest.raises(IntegrityError), transaction.atomic():
        Event.objects.create(at=now, kind="unheard of", actor="x", says="x")


def at(position):
    return {"0": {"position": str(position), "ordinal": "0"}}


def test_t10_the_database_keeps_what_no_later_reading_took_back(pipeline, now, later):
    """An audit's success, then a plan that found something further on, then a verification that ends last."""
    record(pipeline, now, frontier=at(9200))
    owed = record(
        pipeline, later(minutes=2), "owed", 1, frontier=at(12200), lost_count=3000, started_at=later(minutes=1)
    )
    slow = record(pipeline, later(minutes=5), frontier=at(9200), started_at=later(seconds=30))
    status = fleet_status(later(minutes=5))[0]
    assert (status.status, status.audit) == ("owed", owed)
    slow.refresh_from_db()
    assert not slow.is_standing  # it ended last, and was read before
    cleared = record(pipeline, later(minutes=6), frontier=at(12200))
    status = fleet_status(later(minutes=6))[0]
    assert (status.status, status.audit) == ("exactly_once", cleared)
    assert list(Audit.objects.filter(is_standing=True)) == [cleared]


def test_t10_a_reading_that_ends_last_but_was_read_first_decides_nothing(pipeline, now, later):
    record(pipeline, later(minutes=2), "owed", 1, lost_count=3, started_at=later(minutes=1))
    early = record(pipeline, later(minutes=3), record_read_at=now, started_at=now)
    early.refresh_from_db()
    assert not early.is_standing and fleet_status(later(minutes=3))[0].status == "owed"
