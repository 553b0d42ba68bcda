"""A pipeline of two sinks: its record, and a delivery of its own. Each sink serves one pipeline, in one part."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from recovery_api.domain.capabilities import APART, Archetype, Capability
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.kinds.base import KINDS
from recovery_api.domain.restores import SinkMemory
from recovery_api.models import Event, EventKind, Pipeline
from recovery_api.rows import pipeline_as_row, status_as_row
from recovery_api.selectors.ends import pipeline_get, sink_get, source_get
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.selectors.fleet_pages import fleet_entries, fleet_select
from recovery_api.selectors.pairs import pipeline_allows, restored_of
from recovery_api.selectors.registry import pipeline_of, pipelines_of, sinks_free
from recovery_api.services.audits import audit_record
from recovery_api.services.drills import drill_request
from recovery_api.services.ends import (
    connection_test_record,
    connection_test_request,
    sink_create,
    sink_update,
    source_create,
    source_update,
)
from recovery_api.services.intents import intent_take
from recovery_api.services.pipelines import pipeline_check, pipeline_create, pipeline_update
from recovery_api.services.plans import plan_approve, plan_record, plan_request, plan_start
from recovery_api.services.recoveries import recovery_request
from recovery_api.services.retirement import pipeline_retire, sink_retire
from recovery_api.services.sinks import sink_remember, sink_settle_request
from tests.integration.control.conftest import FRONTIER, make_ready

BY = {"actor": "owner"}
FENCED = Capability(Archetype.FENCED, True, True, True, True, True, batch_limit=500)
INBOX = Capability(Archetype.QUERYABLE, True, True, False, False, False, mark_because="A row here is a mark.")


def source_make(name, now):
    return source_create(name, "paper_source", {"path": name}, now=now, **BY)


def record_make(name, now):
    return sink_create(name, "paper_sink", {"path": name, "is_mark": True}, now=now, **BY)


def delivery_make(name, now):
    return sink_create(name, "memory", {"name": name}, now=now, **BY)


@pytest.fixture
def pair(db, now) -> Pipeline:
    source, inbox, kit = source_make("orders", now), record_make("inbox", now), delivery_make("kit", now)
    return pipeline_create("mail", source, inbox, delivery=kit, now=now, **BY)


def as_tested(sink, capability, now, is_usable=True):
    """What a worker records of a sink."""
    intent = intent_take(connection_test_request(sink=sink, now=now, wake=False, **BY).id, "worker", now)
    report = {"is_usable": is_usable, "facts": {}, "problems": [], "weaknesses": []}
    row = {**asdict(capability), "declared": "fenced", "strategy": "fenced", "recovery": "It fires."}
    connection_test_record(intent, report, now, row)


def test_a_sink_is_its_own_delivery_where_none_is_named(pipeline):
    assert pipeline.delivery is None and pipeline.fired_into == pipeline.sink
    assert pipeline_as_row(pipeline)["delivery"] is None


def test_a_pair_is_registered_and_told(pair):
    assert (pair.fired_into.name, pair.sink.name) == ("kit", "inbox")
    (event,) = Event.objects.filter(kind=EventKind.PIPELINE_CREATED)
    assert event.says == "Pipeline mail delivers orders through kit, recorded in inbox, every key."
    assert {one.name for one in map(pipeline_of, (pair.sink, pair.delivery)) if one} == {"mail"}
    assert not sinks_free().exists()


def test_a_delivery_is_not_the_record_itself(db, now):
    source, kit = source_make("orders", now), delivery_make("kit", now)
    with pytest.raises(BadInput, match="kit is the record itself"):
        pipeline_create("mail", source, kit, delivery=kit, now=now, **BY)
    with pytest.raises(IntegrityError, match="a_delivery_of_its_own_is_not_the_record"), transaction.atomic():
        Pipeline.objects.create(name="m", source=source, sink=kit, delivery=kit, created_at=now, created_by="x")


def test_a_record_alone_is_no_delivery(db, now):
    source, inbox, other = source_make("orders", now), record_make("inbox", now), record_make("other", now)
    with pytest.raises(BadInput, match="other is a record alone: a row in it is the mark of an effect") as raised:
        pipeline_create("mail", source, inbox, delivery=other, now=now, **BY)
    assert "Name a sink that can be sent to" in str(raised.value)
    assert not Pipeline.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_one_record_and_anothers_delivery_are_held_apart_where_both_are_registered_at_once(now):
    """Neither sees the other's row before it waits: the check under the lock on the sink decides."""
    source, inbox, kit = source_make("orders", now), record_make("inbox", now), delivery_make("kit", now)

    def second():
        pipeline_create("second", source, inbox, delivery=kit, now=now, **BY)

    with pytest.raises(Refused, match="sink kit already serves pipeline first"), waiting_for(second):
        pipeline_create("first", source, kit, now=now, **BY)
    assert Pipeline.objects.count() == 1


@pytest.mark.parametrize(
    ("sink", "delivery", "named"),
    [("inbox", None, "inbox"), ("kit", None, "kit"), ("other", "kit", "kit"), ("other", "alone", "alone")],
    ids=["two records", "a delivery as a record", "two deliveries", "a record as a delivery"],
)
def test_a_sink_serves_one_pipeline_in_one_part(pair, now, sink, delivery, named):
    pipeline_create("alone", source_make("more", now), delivery_make("alone", now), now=now, **BY)
    sinks = {one: sink_get(one) for one in ("inbox", "kit", "alone")} | {"other": record_make("other", now)}
    with pytest.raises(Refused, match=f"sink {named} already serves pipeline"):
        pipeline_create("post", pair.source, sinks[sink], delivery=sinks.get(delivery), now=now, **BY)
    assert not Pipeline.objects.filter(name="post").exists()


def test_the_database_holds_two_deliveries_apart(pair, now):
    with pytest.raises(IntegrityError, match="a_delivery_serves_one_pipeline"), transaction.atomic():
        other = record_make("other", now)
        given = {"source": pair.source, "sink": other, "delivery": pair.delivery, "created_at": now, "created_by": "x"}
        Pipeline.objects.create(name="post", **given)


def test_a_check_before_any_test_refuses_the_same(pair, now):
    with pytest.raises(Refused, match="already serves"):
        pipeline_check("post", record_make("other", now), delivery=pair.delivery, scope=None, options=None)


COMPUTED = {
    "digest": "d1",
    "frontier": FRONTIER,
    "conditions": [],
    "batch": {"provably missing": "3"},
    "batch_count": 3,
    "says": "3 events are owed.",
}
KEPT = {"scope": None, "options": {}, "requires_other_approver": True}


def deliver_through(pipeline, delivery, now):
    return pipeline_update(pipeline, delivery=delivery, **KEPT, now=now, **BY)


def test_another_delivery_lapses_what_waits_says_why_and_voids_no_audit(pair, now):
    audit = audit_record(pair, status="unknown", exit_code=3, now=now, started_at=now, is_full=True, says="Judged.")
    plan = plan_approve(make_ready(pair, now).id, "d1", "approver", now)
    changed = deliver_through(pair, delivery_make("other", now), now)
    plan.refresh_from_db()
    audit.refresh_from_db()
    assert (changed.fired_into.name, plan.state, audit.void_since) == ("other", "lapsed", None)
    says = "Pipeline mail changed: delivery, from kit to other."
    event = Event.objects.get(kind=EventKind.PIPELINE_CHANGED, pipeline=pair)
    assert (event.says, event.data["before"], event.data["after"]) == (says, {"delivery": "kit"}, {"delivery": "other"})
    assert says in Event.objects.get(kind=EventKind.PLAN_LAPSED, plan=plan).says
    assert list(sinks_free()) == [sink_get("kit")]
    assert deliver_through(changed, None, now).fired_into == pair.sink
    assert "from other to the record itself" in Event.objects.filter(kind=EventKind.PIPELINE_CHANGED).latest("id").says


@pytest.mark.parametrize(
    ("named", "error", "says"),
    [
        ("inbox", BadInput, "inbox is the record itself"),
        ("letters", BadInput, "letters is a record alone"),
        ("alone", Refused, "sink alone already serves pipeline alone"),
        ("retired", Refused, "sink retired was retired"),
    ],
)
def test_another_delivery_is_checked_as_at_registration(pair, now, named, error, says):
    pipeline_create("alone", source_make("more", now), delivery_make("alone", now), now=now, **BY)
    record_make("letters", now)
    sinks = {one: sink_get(one) for one in ("inbox", "letters", "alone")} | {"retired": delivery_make("retired", now)}
    sink_retire(sinks["retired"], "retired", now=now, **BY)
    with pytest.raises(error, match=says):
        deliver_through(pair, sinks[named], now)
    assert pipeline_get("mail").fired_into.name == "kit"


def test_a_plan_that_is_computed_while_the_delivery_changes_is_recorded_as_lapsed(pair, now):
    plan = plan_start(plan_request(pair, now=now, **BY)[0])
    assert plan.pipeline.fired_into.name == "kit"  # as the worker read it
    deliver_through(pair, None, now)
    recorded = plan_record(plan, **COMPUTED, now=now)
    assert recorded.state == "lapsed"
    assert "was changed while it was computed" in Event.objects.get(kind=EventKind.PLAN_LAPSED, plan=plan).says


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("what", ["delivery", "an end's options"])
def test_nothing_is_changed_under_a_recovery_that_begins_meanwhile(now, what):
    """Neither sees the other's row before it waits: what is asked after the waiting plans lapsed decides."""
    source, kit, other = source_make("orders", now), delivery_make("kit", now), delivery_make("other", now)
    pair = pipeline_create("mail", source, record_make("inbox", now), delivery=kit, now=now, **BY)
    plan = plan_approve(make_ready(pair, now).id, "d1", "approver", now)

    def change():
        if what == "delivery":
            return deliver_through(pair, other, now)
        return source_update(source, {"path": "elsewhere"}, now=now, **BY)

    with pytest.raises(Refused, match=r"recovery .* is unfinished"), waiting_for(change):
        recovery_request(plan.id, "because", "mail", "owner", now=now, wake=False)
    assert pipeline_get("mail").fired_into.name == "kit" and source_get("orders").options == {"path": "orders"}


@contextmanager
def waiting_for(work):
    """`work` in another session, which waits for what this one has not committed yet; its end, or its error, at the end."""

    def alone():
        try:
            return work()
        finally:
            connection.close()

    waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND %s = ANY(pg_blocking_pids(pid)))"
    moment = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic(), connection.cursor() as cursor:
            yield
            cursor.execute("SELECT pg_backend_pid()")
            own = cursor.fetchone()
            asked = pool.submit(alone)
            while not asked.done():
                cursor.execute(waits, own)
                if cursor.fetchone() == (True,):
                    break
                moment.wait(0.02)
        asked.result()


def test_a_delivery_in_use_is_not_retired_and_is_free_afterwards(pair, now):
    for sink in (pair.sink, pair.delivery):
        with pytest.raises(Refused, match="pipeline mail uses it"):
            sink_retire(sink, sink.name, now=now, **BY)
    retired = pipeline_retire(pair, "mail", now=now, **BY)
    assert "its two sinks are free" in Event.objects.get(kind=EventKind.RETIRED, pipeline=retired).says
    sink_retire(pair.delivery, "kit", now=now, **BY)


def test_what_the_pair_may_do_changes_when_either_end_is_tested(pair, now):
    assert pipeline_allows(pair) is None and pipeline_as_row(pair)["strategy"] is None
    as_tested(pair.sink, INBOX, now)
    assert pipeline_allows(pipeline_get("mail")) is None
    as_tested(pair.delivery, FENCED, now)
    row = pipeline_as_row(pipeline_get("mail"))
    assert row["strategy"] == "read_only" and APART in row["strategy_says"]
    assert "as one sink" in row["strategy_says"] and "exactly once" not in row["strategy_says"]
    as_tested(pair.sink, Capability(Archetype.BLIND, False, False, False, False, False), now)
    assert pipeline_as_row(pipeline_get("mail"))["strategy"] == "blind"
    sink_update(pair.delivery, {"name": "another"}, now=now, **BY)
    assert pipeline_as_row(pipeline_get("mail"))["strategy"] is None


def test_a_test_of_either_end_voids_a_plan_that_the_pair_does_not_allow(pair, now, later):
    as_tested(pair.sink, INBOX, now)
    plan = make_ready(pair, now)  # as one made for a fence
    as_tested(pair.delivery, FENCED, later(seconds=1))
    plan.refresh_from_db()
    assert plan.state == "lapsed"


def test_other_options_of_the_delivery_void_its_plans_and_no_audit(db, now, later):
    options = {"connection": "env:FENCEPOST_END_MAIL", "table": "mails", "coordinate": ["id"], "is_effect": True}
    table = sink_create("mails", "postgresql_table", options, now=now, **BY)
    pair = pipeline_create("mail", source_make("orders", now), record_make("inbox", now), delivery=table, now=now, **BY)
    audit = audit_record(pair, status="unknown", exit_code=3, now=now, started_at=now, is_full=True, says="Judged.")
    with pytest.raises(Refused, match="mail is delivered through it"):
        sink_update(table, {**options, "is_effect": False}, now=now, **BY)
    plan = make_ready(pair, now)
    sink_update(table, {**options, "filter": "kind = 'mail'"}, now=later(seconds=1), **BY)
    plan.refresh_from_db()
    audit.refresh_from_db()
    assert plan.state == "lapsed" and audit.void_since is None
    assert Event.objects.get(kind=EventKind.END_CHANGED).pipeline == pair


def test_nothing_is_redriven_while_either_end_is_restored(pair, now, later):
    plan = make_ready(pair, now)
    plan_approve(plan.id, plan.digest, "approver", now)
    audit = audit_record(pair, status="unknown", exit_code=3, now=now, started_at=now, is_full=True, says="Judged.")
    for counter in (9, 2):
        sink_remember(pair.delivery, SinkMemory("it", counter, 1, None), actor="worker", now=later(seconds=1))
    found = pipeline_get("mail")
    audit.refresh_from_db()
    plan.refresh_from_db()
    assert restored_of(found) == found.delivery and (audit.void_since, plan.state) == (None, "lapsed")
    assert Event.objects.get(kind=EventKind.SINK_RESTORED).pipeline == found
    type(plan).objects.filter(id=plan.id).update(state="approved")
    with pytest.raises(Refused, match="settle kit"):
        recovery_request(plan.id, "because", "mail", "owner", now=later(seconds=2))
    assert sink_settle_request(found.delivery, now=now, wake=False, **BY).pipeline == found


def test_drills_of_either_end_are_the_pairs(pair, now):
    for sink in (pair.sink, pair.delivery):
        _, intent = drill_request(sink, now=now, wake=False, **BY)
        assert intent.pipeline == pair
    pair.sink.drill_passed_at = pair.delivery.drill_passed_at = now
    assert status_as_row(pipeline_status(pair, now))["drill_passed_at"] is None


def test_a_pair_is_found_by_the_name_of_its_delivery(pair, now):
    assert [one.name for one in fleet_select(fleet_entries(now), text="KIT")] == ["mail"]
    assert list(pipelines_of(pair.delivery)) == list(pipelines_of(pair.sink)) == [pair]


def test_the_command_registers_shows_and_names_both(db, now):
    source_make("orders", now), record_make("inbox", now), delivery_make("kit", now)
    told = StringIO()
    given = ("--source", "orders", "--sink", "inbox", "--delivery", "kit", "--no-test")
    call_command("pipelines", "add", "mail", *given, stdout=told)
    assert "orders -> kit, recorded in inbox" in told.getvalue()
    for name, capability in (("inbox", INBOX), ("kit", FENCED)):
        as_tested(getattr(pipeline_get("mail"), "sink" if name == "inbox" else "delivery"), capability, now)
    told = StringIO()
    call_command("pipelines", "show", "mail", stdout=told)
    assert APART in told.getvalue()


def test_the_command_changes_the_delivery_and_takes_it_back(pair, now):
    delivery_make("other", now)
    told = StringIO()
    call_command("pipelines", "edit", "mail", "--delivery", "other", stdout=told)
    assert "orders -> other, recorded in inbox" in told.getvalue()
    call_command("pipelines", "edit", "mail", "--author-may-approve", "yes", stdout=StringIO())
    assert pipeline_get("mail").fired_into.name == "other"
    call_command("pipelines", "edit", "mail", "--no-delivery", stdout=StringIO())
    assert pipeline_get("mail").delivery is None
    with pytest.raises(SystemExit, match="2"):
        call_command("pipelines", "edit", "mail", "--delivery", "other", "--no-delivery")


def test_a_delivery_alone_is_no_record_and_may_be_a_delivery(db, now, monkeypatch):
    monkeypatch.setitem(KINDS, "delivery_alone", "tests.contract.delivery_alone")
    office = sink_create("office", "delivery_alone", {"name": "office"}, now=now, **BY)
    source, inbox = source_make("orders", now), record_make("inbox", now)
    with pytest.raises(BadInput, match="office is a delivery alone: what arrives there cannot be read back") as raised:
        pipeline_create("mail", source, office, now=now, **BY)
    assert "this one as its delivery" in str(raised.value)
    assert pipeline_create("mail", source, inbox, delivery=office, now=now, **BY).fired_into == office
