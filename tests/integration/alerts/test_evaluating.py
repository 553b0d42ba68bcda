"""What the control database holds opens, tells of and resolves alerts; no end, worker, broker or engine is asked."""

from __future__ import annotations

import datetime as dt
from copy import copy
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from recovery_api.domain.alerts.causes import Cause, Scope
from recovery_api.domain.alerts.ends import Reached
from recovery_api.domain.alerts.evaluation import Observed, Subject
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.models import Alert, AlertGroup, Audit, Delivery, Intent, Pipeline, Recovery, Schedule, Sink, Worker
from recovery_api.selectors.alerts import evaluated_at, open_count, pager_says
from recovery_api.services.alert_quiet import alert_acknowledge, alert_give_back, mute_add, mute_end
from recovery_api.services.alerts import Evaluation, alerts_evaluate, alerts_forget
from recovery_api.services.destinations import destination_add, destination_turn, route_add
from recovery_api.services.freezes import freeze_lift, freeze_set
from recovery_api.services.retirement import pipeline_retire
from tests.integration.alerts.conftest import NOW, evaluate, judged, open_causes, sent
from tests.integration.pages.fleet import pipeline_make, plan_make

pytestmark = pytest.mark.django_db

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture
def pipeline() -> Pipeline:
    Worker.objects.create(name="w/1", queues=["default"], started_at=NOW, seen_at=NOW + dt.timedelta(days=365))
    return pipeline_make("orders", NOW, options={"is_scheduled": False, "stale_after_seconds": 86_400})


def test_owed_opens_at_once_and_two_clean_audits_a_period_apart_resolve_it(pipeline, hook, later):
    judged(pipeline, "owed", later(minutes=1))
    evaluate(later(minutes=1, seconds=5))
    alert = Alert.objects.get()
    assert (alert.cause, alert.number, alert.told) == ("owed", 3, "firing")
    judged(pipeline, "exactly_once", later(minutes=2))
    evaluate(later(minutes=2, seconds=1))
    evaluate(later(minutes=60))  # the same audit again is no second one
    assert open_causes() == ["owed"]
    judged(pipeline, "exactly_once", later(minutes=8))
    evaluate(later(minutes=61))
    alert.refresh_from_db()
    assert alert.resolved_at == later(minutes=61)
    assert [line.change for line in alert.lines.all()] == ["opened", "clearing", "resolved"]
    assert [kind for kind, _, _ in sent()] == ["trigger", "resolve"]


def test_a_recoverys_own_verification_resolves_owed_alone(pipeline, hook, later):
    judged(pipeline, "owed", later(minutes=1))
    evaluate(later(minutes=1))
    recovery = recovery_make(pipeline, later(minutes=2), outcome="exactly_once", finished_at=later(minutes=3))
    judged(pipeline, "exactly_once", later(minutes=3), recovery=recovery)
    evaluate(later(minutes=4))
    assert "owed" not in open_causes()


def test_an_audit_that_could_not_read_opens_unknown_and_leaves_owed_open(pipeline, later):
    judged(pipeline, "owed", later(minutes=1))
    evaluate(later(minutes=1))
    judged(pipeline, "unknown", later(minutes=2), lanes={}, frontier={}, lost_count=0)
    evaluate(later(minutes=2))
    assert open_causes() == ["owed", "unknown"]


def test_with_a_promise_owed_is_told_once_the_oldest_event_waits_longer(later):
    options = {"is_scheduled": False, "acceptance_sla_seconds": 600, "stale_after_seconds": 86_400}
    pipeline = pipeline_make("orders", NOW, options=options)
    Schedule.objects.update_or_create(pk=pipeline.pk, defaults={"next_full_at": NOW, "waiting_since": NOW})
    judged(pipeline, "owed", later(minutes=1))
    Schedule.objects.filter(pk=pipeline.pk).update(waiting_since=NOW)
    evaluate(later(minutes=9))
    assert "owed" not in open_causes()
    evaluate(later(minutes=11))
    assert "owed" in open_causes()


def test_an_event_alone_changes_nothing_and_a_worse_state_breaks_through_an_acknowledgement(pipeline, hook, later):
    judged(pipeline, "owed", later(minutes=1), lost_count=10)
    evaluate(later(minutes=1))
    alert = Alert.objects.get()
    alert_acknowledge(alert, note="I am on it", until=later(hours=5), actor="ada", now=later(minutes=2))
    with pytest.raises(Refused, match="ada acknowledged it until"):
        alert_acknowledge(alert, note="me, too", until=later(hours=5), actor="bob", now=later(minutes=3))
    judged(pipeline, "owed", later(minutes=4), lost_count=19)
    evaluate(later(minutes=4))
    assert [kind for kind, _, _ in sent()] == ["trigger", "acknowledge"]
    judged(pipeline, "owed", later(minutes=5), lost_count=20)
    evaluate(later(minutes=5))
    alert.refresh_from_db()
    assert alert.acknowledged_until is None
    pages = list(Delivery.objects.order_by("number").values_list("kind", "key"))
    assert [kind for kind, _ in pages] == ["trigger", "acknowledge", "resolve", "trigger"]
    assert pages[3][1] != pages[0][1] == pages[2][1]  # a new key pages anew; the old page is over


def test_an_acknowledgement_ends_by_itself_or_is_given_back(pipeline, hook, later):
    judged(pipeline, "owed", later(minutes=1))
    evaluate(later(minutes=1))
    alert = Alert.objects.get()
    for wrong in ({"note": "", "until": later(hours=1)}, {"note": "x", "until": None}):
        with pytest.raises(BadInput):
            alert_acknowledge(alert, actor="ada", now=later(minutes=2), **wrong)
    alert_acknowledge(alert, note="soon", until=later(hours=1), actor="ada", now=later(minutes=2))
    evaluate(later(minutes=59))
    assert open_count(later(minutes=59)).unheard == 0
    evaluate(later(minutes=60))
    assert sent()[-1][0] == "trigger" and open_count(later(minutes=60)).unheard == 1
    alert_acknowledge(alert, note="again", until=later(hours=9), actor="bob", now=later(minutes=61))
    alert_give_back(alert, actor="ada", now=later(minutes=62))
    evaluate(later(minutes=63))
    assert [kind for kind, _, _ in sent()].count("trigger") == 3


def test_an_acknowledgement_made_while_an_evaluation_runs_stays(pipeline, hook, later):
    judged(pipeline, "owed", later(minutes=1))
    evaluate(later(minutes=1))
    evaluation = Evaluation(later(minutes=9), later(minutes=8))
    evaluation._load()
    alert_acknowledge(Alert.objects.get(), note="mine", until=later(hours=5), actor="ada", now=later(minutes=9))
    seen = Observed(Cause.OWED, Subject(Scope.PIPELINE, pipeline.pk), True, later(minutes=8), "Still owed.", number=3)
    with transaction.atomic():
        evaluation._load = lambda: None
        evaluation.run([seen])
    alert = Alert.objects.get()
    assert (alert.says, alert.acknowledged_by) == ("Still owed.", "ada")


def test_a_pipeline_that_this_release_does_not_understand_keeps_no_other_from_being_looked_at(pipeline, later):
    other = pipeline_make("other", NOW, options={"is_scheduled": False, "stale_after_seconds": 86_400})
    for one in (pipeline, other):
        judged(one, "owed", later(minutes=1))
    Pipeline.objects.filter(pk=other.pk).update(options={"of_a_later_release": 1})
    evaluate(later(minutes=1))
    assert [alert.pipeline for alert in Alert.objects.filter(cause="owed")] == [pipeline]


def test_a_muted_alert_is_open_and_told_to_nobody_until_the_mute_ends(pipeline, hook, later):
    with pytest.raises(BadInput, match="has an end"):
        mute_add("pipeline", "orders", note="planned work", until=None, actor="ada", now=NOW)
    with pytest.raises(BadInput, match="no pipeline"):
        mute_add("pipeline", "other", note="planned work", until=later(hours=1), actor="ada", now=NOW)
    mute = mute_add("pipeline", "orders", note="planned work", until=later(hours=1), actor="ada", now=NOW)
    judged(pipeline, "owed", later(minutes=1))
    evaluate(later(minutes=2))
    alert = Alert.objects.get()
    assert alert.muted_until == mute.until and sent() == []
    mute_end(mute, actor="ada", now=later(minutes=3))
    evaluate(later(minutes=4))
    assert [kind for kind, _, _ in sent()] == ["trigger"]
    assert not Delivery.objects.get().is_late and Delivery.objects.get().due_since == later(minutes=4)


def test_it_opens_again_within_half_an_hour_as_the_same_alert_and_pages_when_it_lasts(pipeline, hook, later):
    def flap(minute: float, is_there: bool) -> None:
        Worker.objects.update(seen_at=later(minutes=minute) if is_there else NOW - MINUTE)
        Schedule.objects.update_or_create(pk=pipeline.pk, defaults={"next_full_at": NOW})
        evaluate(later(minutes=minute))

    Pipeline.objects.update(options={"stale_after_seconds": 86_400})
    for minute, is_there in ((1, False), (2, True), (3, True), (4, False), (20, False)):
        flap(minute, is_there)
    alert = Alert.objects.get(cause="no_worker")
    assert alert.reopened_count == 1 and alert.resolved_at is None
    assert [kind for kind, _, _ in sent()] == ["trigger", "resolve"]
    flap(34.1, False)
    pages = list(Delivery.objects.order_by("number").values_list("kind", "key"))
    assert [kind for kind, _ in pages] == ["trigger", "resolve", "trigger"] and len({key for _, key in pages}) == 1


def test_what_opens_again_and_is_worse_pages_at_once(pipeline, hook, later):
    judged(pipeline, "owed", later(minutes=1), lost_count=10)
    evaluate(later(minutes=1))
    for minute in (2, 7):
        judged(pipeline, "exactly_once", later(minutes=minute))
        evaluate(later(minutes=minute))
    judged(pipeline, "owed", later(minutes=12), lost_count=30)
    evaluate(later(minutes=12))
    assert Alert.objects.get().reopened_count == 1
    assert [kind for kind, _, _ in sent()] == ["trigger", "resolve", "trigger"]


def test_a_destination_that_was_turned_off_is_told_nothing_more_and_the_spare_is_paged(pipeline, hook, later):
    spare = destination_add(
        "spare", "json", address="https://s.example/", secret="env:FENCEPOST_END_X", actor="root", now=NOW
    )
    judged(pipeline, "owed", later(minutes=1), lost_count=10)
    evaluate(later(minutes=1))
    Delivery.objects.update(state="sent", due_at=None, sent_at=later(minutes=1))
    destination_turn(hook, is_on=False, actor="root", now=later(minutes=2))
    judged(pipeline, "owed", later(minutes=3), lost_count=30)
    evaluate(later(minutes=3))
    assert [kind for kind, _, _ in sent(hook)] == ["trigger"]
    assert [kind for kind, _, _ in sent(spare)] == ["trigger"]


def test_300_pipelines_at_one_sink_are_one_page_that_names_300_and_later_ones_page_nobody(hook, later):
    slack = destination_add("slack", "slack", address="env:FENCEPOST_END_SLACK", is_routed=False, actor="root", now=NOW)
    Worker.objects.create(name="w/1", started_at=NOW, seen_at=NOW + dt.timedelta(days=365))
    hook.routes.update(goes_on=True)
    route_add(slack, actor="root", now=NOW)
    pipelines = copies(pipeline_make("p", NOW, options={"is_scheduled": False}), 300)
    unread = judged(pipelines[0], "unknown", later(minutes=1), lanes={}, frontier={}, lost_count=0)
    Audit.objects.bulk_create(copied(unread, pk=uuid4(), pipeline=pipeline) for pipeline in pipelines[1:297])
    evaluate(later(minutes=1))
    assert sent(hook) == [("trigger", "waiting", 297)]
    Delivery.objects.update(state="sent", sent_at=later(minutes=1), due_at=None)
    for number, pipeline in enumerate(pipelines[297:]):
        at = later(minutes=1, seconds=10 * (number + 1))
        judged(pipeline, "unknown", at, lanes={}, frontier={}, lost_count=0)
        evaluate(at)
    kinds = [kind for kind, _, _ in sent(hook)]
    assert kinds == ["trigger", "update", "update", "update"] and sent(hook)[-1] == ("update", "waiting", 300)
    newest = Delivery.objects.filter(destination=hook).order_by("number").last()
    assert newest is not None and len(newest.message["members"]) == 300
    waiting = list(Delivery.objects.filter(destination=slack, state="waiting"))
    assert [one.message["count"] for one in waiting] == [300]  # the summaries of one minute are one
    assert waiting[0].due_at == later(minutes=2)


def test_routes_choose_by_label_and_severity_and_without_one_nobody_is_told(pipeline, hook, later):
    hook.routes.all().delete()
    route_add(hook, least="critical", labels={"team": "payments"}, actor="root", now=NOW)
    judged(pipeline, "owed", later(minutes=1))
    assert evaluate(later(minutes=1)).unrouted == 1
    assert sent() == []
    pipeline.options["labels"] = {"team": "payments"}
    pipeline.save()
    assert evaluate(later(minutes=2)).unrouted == 0
    assert [kind for kind, _, _ in sent()] == ["trigger"]


def test_states_of_recoveries_sinks_and_the_installation_are_each_a_cause(pipeline, later):
    recovery = recovery_make(pipeline, later(minutes=1))
    sink = pipeline.sink
    Sink.objects.filter(pk=sink.pk).update(
        restored_at=later(minutes=1),
        restored_says="It was restored.",
        counter_floor=3,
        drill_every_hours=1,
        report={"facts": {"kit_version": 3}},
        tested_at=later(minutes=1),
        capability={"has_fence": False, "can_read_record": True, "is_record_complete": True},
    )
    Worker.objects.all().delete()
    Pipeline.objects.update(options={})
    reached = {Cause.NO_BROKER: Reached(False, "No broker."), Cause.NO_ENGINE: Reached(True)}
    alerts_evaluate(reached, 4, at=later(minutes=20))
    assert open_causes() == [
        "capability_weaker",
        "generation_backwards",
        "kit_outdated",
        "no_broker",
        "no_worker",
        "recovery_stuck",
    ]
    Recovery.objects.filter(pk=recovery.pk).update(problem={"text": "The sink did not answer."})
    evaluate(later(hours=3))
    assert {"drill_old", "recovery_unsettled"} <= set(open_causes())
    Recovery.objects.filter(pk=recovery.pk).update(
        problem=None, state="finished", outcome="fenced", says="Newer.", finished_at=later(hours=4)
    )
    evaluate(later(hours=4))
    evaluate(later(hours=4, minutes=2))
    assert "recovery_ended_badly" in open_causes() and not {"recovery_unsettled", "recovery_stuck"} & set(open_causes())
    Intent.objects.update(state="cancelled", finished_at=later(hours=5))
    pipeline_retire(pipeline, "orders", actor="root", now=later(hours=5))
    evaluate(later(hours=5))
    assert open_causes() == ["no_broker", "no_worker"]  # what is out of use is over


def test_a_stalled_relay_a_grown_source_and_a_lost_ground_show_between_two_audits(pipeline, later):
    pipeline.options["alert_table_bytes"] = 1000
    pipeline.save()
    ground = {"standing": "proven", "because": "No writer is open."}
    lanes = {"0": {"above_frontier_owed": "5", "safe_frontier": ground}}
    smaller = {"source": {"read_at": later(minutes=1).isoformat(), "table_bytes": "2000"}}
    Pipeline.objects.update(options={**pipeline.options, "alert_table_bytes": 3000})
    judged(
        pipeline,
        "exactly_once",
        later(minutes=1),
        lanes=lanes,
        obligation_count=10,
        accepted_count=10,
        ends_seen=smaller,
    )
    evaluate(later(minutes=1))
    assert open_causes() == []
    pipeline.save()
    attested = {"0": {**lanes["0"], "safe_frontier": {"standing": "attested", "because": "The owner says so"}}}
    looked = {"source": {"read_at": later(minutes=7).isoformat(), "table_bytes": "4000"}}
    judged(
        pipeline,
        "exactly_once",
        later(minutes=7),
        lanes=attested,
        obligation_count=15,
        accepted_count=10,
        ends_seen=looked,
    )
    evaluate(later(minutes=7))
    assert open_causes() == ["ground_lost", "relay_stalled", "source_growth"]
    says = Alert.objects.get(cause="source_growth").says
    assert "4,000 bytes; 1,000 are declared" in says and "grew by up to 20,000 bytes an hour" in says  # RC-76


def test_only_one_evaluates_at_a_time_and_when_it_did_is_known(pipeline, later):
    assert "No pager has ever run" in pager_says(NOW, evaluated_at())
    evaluate(later(minutes=1))
    assert pager_says(later(minutes=1, seconds=30), evaluated_at()) == ""
    assert "No pager has run since" in pager_says(later(minutes=3), evaluated_at())


def test_what_is_old_and_over_goes_and_what_is_open_stays(pipeline, hook, later):
    judged(pipeline, "owed", later(minutes=1))
    evaluate(later(minutes=1))
    kept = dt.timedelta(days=400)
    assert alerts_forget(later(days=800), kept) == 0
    Alert.objects.update(resolved_at=later(minutes=9))
    AlertGroup.objects.update(closed_at=later(minutes=9))
    Delivery.objects.update(state="sent", due_at=None)
    alerts_forget(later(days=800), kept)
    assert not Alert.objects.exists() and not Delivery.objects.exists() and not AlertGroup.objects.exists()


def test_the_database_itself_refuses_a_mute_without_an_end_and_a_second_open_alert(pipeline, later):
    judged(pipeline, "owed", later(minutes=1))
    evaluate(later(minutes=1))
    alert = Alert.objects.get()
    with pytest.raises(IntegrityError), transaction.atomic():
        Alert.objects.filter(pk=alert.pk).update(acknowledged_at=NOW, acknowledged_until=None)
    alert.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        alert.save(force_insert=True)


def copied(row, **fields):
    row = copy(row)
    row._state.adding = True
    for name, value in fields.items():
        setattr(row, name, value)
    return row


def copies(pipeline, count):
    """So many pipelines, each with ends of its own at the same two servers."""
    ends = {}
    for name in ("source", "sink"):
        first = getattr(pipeline, name)
        made = [copied(first, pk=None, name=f"{name} {n}") for n in range(1, count)]
        ends[name] = type(first).objects.bulk_create(made)
    pairs = zip(ends["source"], ends["sink"], strict=True)
    more = [copied(pipeline, pk=None, name=f"p{n}", source=a, sink=b) for n, (a, b) in enumerate(pairs)]
    return [pipeline, *Pipeline.objects.bulk_create(more)]


def recovery_make(pipeline, at, **more):
    plan = plan_make(pipeline, at)
    finished = {"state": "finished"} if "outcome" in more else {"state": "arming"}
    return Recovery.objects.create(
        plan=plan,
        pipeline=pipeline,
        frontier={},
        reason="test",
        requested_by="ada",
        created_at=at,
        moved_at=at,
        **finished,
        **more,
    )


def test_a_recovery_that_waits_because_its_sending_is_frozen_is_not_stuck(pipeline, later):
    recovery_make(pipeline, later(minutes=1), progress={"holds_before": "the fire"})
    freeze = freeze_set(None, "A bad deploy.", actor="ada", now=later(minutes=2))
    evaluate(later(minutes=20))
    assert "recovery_stuck" not in open_causes()
    freeze_lift(freeze.pipeline, "It was rolled back.", actor="ada", now=later(minutes=21))
    evaluate(later(minutes=22))
    assert "recovery_stuck" in open_causes()
