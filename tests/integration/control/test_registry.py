"""Sources, sinks and pipelines: registered whole and strictly, or not at all."""

from __future__ import annotations

import pytest

from recovery_api.domain.errors import BadInput, NotFound, Refused, UnknownOption
from recovery_api.models import Event, Pipeline, PlanState, Sink, Source
from recovery_api.selectors.ends import pipeline_get, source_get
from recovery_api.services.ends import (
    connection_test_record,
    connection_test_request,
    sink_create,
    source_create,
    source_update,
)
from recovery_api.services.intents import intent_take
from recovery_api.services.pipelines import pipeline_create

REPORT = {"is_usable": True, "facts": {"rows": 3}, "problems": [], "weaknesses": []}


@pytest.fixture
def ends(db, now):
    source = source_create("orders", "paper_source", {"path": "p"}, actor="owner", now=now)
    return source, sink_create("letters", "paper_sink", {"path": "p"}, actor="owner", now=now)


@pytest.mark.parametrize(
    ("kind", "options", "error", "words"),
    [
        ("paper_sauce", {}, UnknownOption, "Did you mean 'paper_source'"),
        ("paper_sink", {"path": "p"}, BadInput, "is a kind of sink"),
        ("paper_source", {}, BadInput, "paper_source.path: is missing"),
        ("paper_source", {"path": "p", "spellin": "bigint"}, UnknownOption, "Did you mean 'spelling'"),
        ("paper_source", {"path": "p", "spelling": "bigit"}, BadInput, "Did you mean 'bigint'"),
        ("paper_source", {"path": "p", "password": "hunter2"}, BadInput, "the credential itself is never stored"),
    ],
)
def test_what_cannot_be_used_is_named_and_nothing_is_registered(db, now, kind, options, error, words):
    """RC-75: an unknown kind, option or value is an error that names it; nothing starts."""
    with pytest.raises(error) as raised:
        source_create("orders", kind, options, actor="owner", now=now)
    assert words in str(raised.value) and "hunter2" not in str(raised.value)
    assert not Source.objects.exists()


def test_name_is_registered_once(ends, now):
    with pytest.raises(BadInput, match="'orders' is taken"):
        source_create("orders", "paper_source", {"path": "p"}, actor="owner", now=now)


@pytest.mark.parametrize("name", ["", " mail", "a/b", "a=b", "a,b", "line\nbreak", "x" * 201, "0" * 32])
def test_name_nobody_could_type_is_refused(ends, now, name):
    with pytest.raises(BadInput, match=r"pipeline\.name"):
        pipeline_create(name, *ends, actor="owner", now=now)


def test_scope_left_out_is_every_key_and_an_empty_one_is_refused(ends, now):
    """RC-75: an empty selection is refused, never everything."""
    with pytest.raises(BadInput, match=r"pipeline\.scope: is empty"):
        pipeline_create("mail", *ends, actor="owner", now=now, scope=[])
    with pytest.raises(BadInput, match="not a list of keys"):
        pipeline_create("mail", *ends, actor="owner", now=now, scope="k1")
    assert pipeline_create("mail", *ends, actor="owner", now=now).scope is None


def test_unknown_pipeline_option_is_named(ends, now):
    """RC-75."""
    with pytest.raises(UnknownOption, match="Did you mean 'batch_limit'"):
        pipeline_create("mail", *ends, actor="owner", now=now, options={"batch_limt": 5})
    assert not Pipeline.objects.exists()


def test_sink_serves_one_pipeline(ends, now):
    pipeline_create("mail", *ends, actor="owner", now=now)
    with pytest.raises(Refused, match="already serves pipeline mail"):
        pipeline_create("post", *ends, actor="owner", now=now)


def test_missing_name_is_answered_with_the_nearest(ends, now):
    with pytest.raises(NotFound, match="Did you mean 'orders'"):
        source_get("order")
    with pytest.raises(NotFound, match="Registered: none"):
        pipeline_get("mail")


def test_test_report_is_kept_with_its_end_and_ends_the_intent(ends, now, later):
    _, sink = ends
    queued = connection_test_request(actor="owner", now=now, sink=sink)
    intent = intent_take(queued.id, "worker", now)
    connection_test_record(intent, REPORT, later(seconds=1), {"archetype": "fenced"})
    kept = Sink.objects.get(id=sink.id)
    intent.refresh_from_db()
    assert (kept.report["is_usable"], kept.tested_at, kept.capability) == (
        True,
        later(seconds=1),
        {"archetype": "fenced"},
    )
    assert intent.state == "done" and intent.result == kept.report
    with pytest.raises(Refused):
        connection_test_record(intent, REPORT, now)


def test_test_is_of_exactly_one_end(ends, now):
    source, sink = ends
    for both in ({}, {"source": source, "sink": sink}):
        with pytest.raises(BadInput, match="exactly one end"):
            connection_test_request(actor="owner", now=now, **both)


def test_other_options_drop_the_report_and_lapse_waiting_plans(approved_plan, pipeline, now):
    source = pipeline.source
    changed = source_update(source, {"path": "elsewhere"}, actor="owner", now=now)
    approved_plan.refresh_from_db()
    assert (changed.options, changed.report, approved_plan.state) == ({"path": "elsewhere"}, None, PlanState.LAPSED)
    assert Event.objects.filter(kind="end changed", says__contains="path").exists()
