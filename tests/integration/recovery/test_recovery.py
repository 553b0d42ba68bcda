"""A recovery from audit to hand-over on real parts, and what it answers when something is not as it should be."""

from __future__ import annotations

import psycopg
import pytest
from django.utils import timezone

from recovery_api.domain.errors import Refused
from recovery_api.models import PlanState, RecoveryOutcome
from recovery_api.services.omissions import omission_acknowledge
from recovery_api.services.plans import plan_approve, plan_request
from tests.integration.recovery.world import World, run
from workers.runners import intent_run

pytestmark = pytest.mark.spark

EVENTS = ["e1", "e2", "e3", "e4", "e5"]


def committed(world: World, *keys: str) -> None:
    for key in keys:
        world.commit([key])


def test_lost_events_are_found_planned_landed_and_verified(world: World) -> None:
    committed(world, "e1", "e2", "e3", "e4", "e5")
    assert world.deliver(["e1", "e3"]) == ["accepted", "accepted"]
    audit = world.audit()
    assert (audit.status, audit.lost_count, audit.exit_code) == ("owed", 3, 1)
    recovery = world.recover()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says
    assert (recovery.landed_count, recovery.absorbed_count) == (3, 0)
    assert world.accepted_keys() == ["e1", "e3", "e2", "e4", "e5"]
    assert world.audit().status == "exactly_once"


def test_a_plan_writes_nothing_at_the_sink(world: World) -> None:
    committed(world, "e1", "e2")
    before = world.record_fingerprint()
    plan = world.plan()
    assert plan.state == PlanState.READY
    assert plan.batch_count == 2
    assert world.record_fingerprint() == before


def test_nothing_owed_is_a_success_with_its_evidence(world: World) -> None:
    committed(world, "e1")
    world.deliver(["e1"])
    plan = world.plan()
    assert plan.state == PlanState.NOTHING_OWED
    assert plan.evidence_digest


def test_a_straggler_that_lands_before_the_claim_is_not_sent_again(world: World) -> None:
    committed(world, "e1", "e2", "e3")
    world.deliver(["e1"])
    approved = world.approve(world.plan())
    world.deliver(["e2"])
    recovery = world.request(approved)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 1)
    assert world.accepted_keys() == ["e1", "e2", "e3"]


def test_a_straggler_after_the_claim_is_fenced(world: World) -> None:
    committed(world, "e1", "e2")
    world.recover()
    assert world.deliver(["e2"], generation=0) == ["fenced"]
    assert world.accepted_keys() == ["e1", "e2"]


def test_an_approved_event_that_left_the_source_refuses_the_recovery(world: World) -> None:
    committed(world, "e1", "e2", "e3")
    approved = world.approve(world.plan())
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("DELETE FROM outbox WHERE \"key\" = 'e2'")
    recovery = world.request(approved)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED
    assert world.accepted_keys() == []


def test_a_coordinate_the_sink_holds_with_other_content_ends_incomplete_and_names_it(world: World) -> None:
    committed(world, "e1", "e2")
    altered = world.batch(["e1"])
    altered = altered.set_column(6, "content", [['{"key": "e1", "amount": 9}']])
    assert world.sink().deliver(0, altered) == ["accepted"]
    recovery = world.recover()
    assert recovery.outcome == RecoveryOutcome.INCOMPLETE_ALTERED
    assert "altered at the sink" in recovery.says
    assert recovery.landed_count == 1
    plan = world.plan()
    assert plan.state == PlanState.NOTHING_OWED
    assert "Not sent: 1 altered at the sink" in plan.says


def test_an_acknowledged_omission_stays_lost_and_is_not_sent(world: World) -> None:
    committed(world, "e1", "e2")
    audit = world.audit()
    coordinate = audit.findings[0]["coordinate"]
    omission_acknowledge(world.pipeline, coordinate, reason="dead letter 7", actor="ada", now=timezone.now())
    recovery = world.recover()
    assert recovery.outcome == RecoveryOutcome.COMPLETE_WITH_ACKNOWLEDGED
    assert world.accepted_keys() == ["e2"]
    assert world.audit().status == "acknowledged"


def test_a_recovery_above_the_limit_is_split_by_frontier(world: World) -> None:
    world.pipeline.options = {"batch_limit": 2}
    world.pipeline.save()
    committed(world, *EVENTS)
    recovery = world.recover()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says
    assert (recovery.batches, recovery.landed_count) == (3, 5)
    assert world.accepted_keys() == EVENTS
    assert recovery.claims.filter(state="fired").count() == 3


def test_the_relay_starts_where_the_recovery_handed_over(world: World) -> None:
    committed(world, "e1", "e2")
    recovery = world.recover()
    last = world.batch(["e2"]).to_pylist()[0]
    assert recovery.start == {"0": {"position": str(last["position"]), "ordinal": str(last["ordinal"])}}
    assert dict(world.sink().hand_over()) == recovery.start
    with psycopg.connect(world.sink_dsn) as connection:
        assert connection.execute("SELECT count(*) FROM fencepost.staged").fetchone() == (0,)


def test_work_above_the_frontier_is_counted_as_what_the_fence_may_strand(world: World) -> None:
    committed(world, "e1", "e2", "e3")
    first = world.audit().findings[0]["coordinate"]
    plan = world.plan(first)
    assert (plan.batch_count, plan.stranded_count) == (1, 2)


def test_an_open_transaction_holds_the_safe_frontier_and_is_named(world: World) -> None:
    with psycopg.connect(world.source_dsn, application_name="slow writer") as slow:
        slow.execute("INSERT INTO outbox (\"key\", content) VALUES ('e1', '1')")
        committed(world, "e2")
        audit = world.audit(is_safe=False)
        assert audit.obligation_count == 0
        assert "slow writer" in audit.says
        assert "1 not accepted yet" in audit.says
        plan, intent = plan_request(
            world.pipeline, actor="ada", now=timezone.now(), frontier=world.coordinate("e2"), wake=False
        )
        intent_run(str(intent.id), "test")
        plan.refresh_from_db()
        assert plan.state == PlanState.REFUSED
        assert "safe frontier" in plan.says
    assert world.audit().lost_count == 2


def test_the_same_plan_applied_twice_is_one_recovery(world: World) -> None:
    committed(world, "e1")
    approved = world.approve(world.plan())
    assert world.request(approved).id == world.request(approved).id


def test_a_sink_behind_what_it_said_before_refuses_a_recovery(world: World) -> None:
    committed(world, "e1", "e2")
    world.recover()
    committed(world, "e3")
    approved = world.approve(world.plan())
    sink = world.pipeline.sink
    sink.refresh_from_db()
    sink.said_counter += 5
    sink.save()
    recovery = world.request(approved)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED
    assert "restored" in recovery.says
    assert world.accepted_keys() == ["e1", "e2"]
    with pytest.raises(Refused, match="sinks settle"):
        world.recover()


def test_effects_land_with_their_entries_and_an_older_event_never_overwrites_a_newer_one(
    world_with_target: World,
) -> None:
    world = world_with_target
    world.commit(["k"], {"v": 1})
    world.commit(["k"], {"v": 2})
    newest = world.batch(["k"]).slice(1)
    assert world.sink().deliver(0, newest) == ["accepted"]
    recovery = world.recover()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE
    with psycopg.connect(world.sink_dsn) as connection:
        assert connection.execute("SELECT content FROM mail").fetchall() == [({"v": 2},)]


def test_an_author_may_not_approve_their_own_plan(world: World) -> None:
    committed(world, "e1")
    plan = world.plan()
    with pytest.raises(Refused, match="author"):
        plan_approve(plan.id, plan.digest, "ada", timezone.now())
