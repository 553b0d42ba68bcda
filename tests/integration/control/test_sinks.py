"""What a sink last said, and what happens once it says less."""

from __future__ import annotations

import pytest

from recovery_api.domain.errors import Refused
from recovery_api.domain.restores import SinkMemory
from recovery_api.models import Event, PlanState, Sink
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.services.audits import audit_record
from recovery_api.services.plans import plan_approve
from recovery_api.services.recoveries import recovery_request
from recovery_api.services.sinks import sink_clear, sink_remember, sink_settle_request
from tests.integration.control.conftest import FRONTIER, make_ready

SAID = SinkMemory("one", counter=7, fence=6, last_entry=100)
LESS = SinkMemory("one", counter=5, fence=5, last_entry=80)


def remember(sink, said, now):
    return sink_remember(sink, said, actor="worker", now=now)


def record(pipeline, now, *, status="exactly_once", code=0, is_full=True, started_at=None):
    times = {"now": now, "started_at": started_at or now}
    return audit_record(
        pipeline, status=status, exit_code=code, is_full=is_full, says="Judged.", frontier=FRONTIER, **times
    )


def test_memory_grows_with_the_sink(pipeline, now, later):
    remember(pipeline.sink, SAID, now)
    assert not remember(pipeline.sink, SinkMemory("one", 9, 9, 120), later(seconds=1)).is_restored
    kept = Sink.objects.get(id=pipeline.sink_id)
    assert (kept.said_counter, kept.said_fence, kept.said_last_entry) == (9, 9, 120)


def test_restored_sink_voids_what_was_certified_and_fires_nothing(pipeline, now, later):
    record(pipeline, now)
    remember(pipeline.sink, SAID, now)
    plan = make_ready(pipeline, now)
    finding = remember(pipeline.sink, LESS, later(seconds=1))
    assert finding.is_restored and finding.counter_floor == 7
    assert not pipeline.audits.filter(void_since__isnull=True).exists()
    plan.refresh_from_db()
    assert plan.state == PlanState.LAPSED
    assert Event.objects.filter(kind="sink restored").count() == 1
    status = pipeline_status(type(pipeline).objects.get(id=pipeline.id), later(seconds=2))
    assert status.status == "unknown" and "was restored" in status.says

    new = make_ready(pipeline, later(seconds=2), digest="d2")
    plan_approve(new.id, "d2", "approver", later(seconds=2))
    with pytest.raises(Refused, match="was restored or replaced"):
        recovery_request(new.id, "why", "mail", "on-call", now=later(seconds=3))


def test_restored_sink_stays_so_though_it_says_more_again(pipeline, now, later):
    remember(pipeline.sink, SAID, now)
    remember(pipeline.sink, LESS, later(seconds=1))
    again = remember(pipeline.sink, SinkMemory("one", 20, 20, 500), later(seconds=2))
    assert again.is_restored and again.counter_floor == 20
    assert Event.objects.filter(kind="sink restored").count() == 1


def test_sink_is_cleared_by_a_raised_counter_and_a_full_audit(pipeline, now, later):
    sink = pipeline.sink
    remember(sink, SAID, now)
    early = record(pipeline, now)
    remember(sink, LESS, later(seconds=1))
    after = later(seconds=2)
    raised = SinkMemory("one", 8, 5, 80)
    whole, narrow = record(pipeline, after, status="unknown", code=3), record(pipeline, after, is_full=False)
    for audit, said, is_whole in (
        (early, raised, True),
        (narrow, raised, True),
        (whole, raised, False),
        (whole, LESS, True),
    ):
        with pytest.raises(Refused):
            sink_clear(sink, said, audit=audit, is_record_whole=is_whole, actor="worker", now=later(seconds=3))
    cleared = sink_clear(sink, raised, audit=whole, is_record_whole=True, actor="worker", now=later(seconds=3))
    assert cleared.restored_at is None and cleared.said_last_entry == 80
    assert not remember(sink, raised, later(seconds=4)).is_restored


def test_sink_without_a_counter_is_found_replaced_and_cleared_by_a_full_audit(pipeline, now, later):
    sink = pipeline.sink
    record(pipeline, now)
    assert not remember(sink, SinkMemory("table 1"), now).is_restored
    finding = remember(sink, SinkMemory("table 2"), later(seconds=1))
    assert finding.is_restored and "counter" not in finding.says
    assert not pipeline.audits.filter(void_since__isnull=True).exists()
    whole = record(pipeline, later(seconds=2))
    sink_clear(sink, SinkMemory("table 2"), audit=whole, is_record_whole=True, actor="worker", now=later(seconds=3))
    assert not remember(sink, SinkMemory("table 2"), later(seconds=4)).is_restored


def test_settling_a_sink_is_one_intent_of_its_pipeline(pipeline, now):
    intent = sink_settle_request(pipeline.sink, actor="on-call", now=now)
    assert (intent.action, intent.sink_id, intent.pipeline_id) == ("settle", pipeline.sink_id, pipeline.id)
