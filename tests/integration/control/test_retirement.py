"""Changing and retiring what is registered: refused while used, the history stays, the name becomes free."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from recovery_api.domain.errors import BadInput, NotFound, Refused
from recovery_api.models import Event, EventKind, Intent, Pipeline, PlanState, Source
from recovery_api.selectors.ends import pipeline_get, sink_get, source_get
from recovery_api.services.audits import audit_request
from recovery_api.services.ends import sink_create, sink_update, source_create, source_update
from recovery_api.services.intents import intent_cancel
from recovery_api.services.pipelines import pipeline_create, pipeline_update
from recovery_api.services.recoveries import recovery_request
from recovery_api.services.retirement import pipeline_retire, sink_retire, source_retire

BY = {"actor": "owner"}
KEPT: dict[str, Any] = {"delivery": None, "scope": None, "options": {}, "requires_other_approver": True}


def test_end_that_a_pipeline_uses_is_not_retired(pipeline, now):
    with pytest.raises(Refused, match="pipeline mail uses it"):
        source_retire(pipeline.source, pipeline.source.name, now=now, **BY)
    with pytest.raises(Refused, match="pipeline mail uses it"):
        sink_retire(pipeline.sink, pipeline.sink.name, now=now, **BY)


def test_retired_names_are_free_again_and_the_history_stays(pipeline, now):
    source, sink = pipeline.source, pipeline.sink
    pipeline_retire(pipeline, "mail", now=now, **BY)
    source_retire(source, source.name, now=now, **BY)
    sink_retire(sink, sink.name, now=now, **BY)
    for get, name in ((pipeline_get, "mail"), (source_get, source.name), (sink_get, sink.name)):
        with pytest.raises(NotFound):
            get(name)
    again = source_create(source.name, "paper_source", {"path": "orders"}, now=now, **BY)
    assert again.pk != source.pk
    assert Event.objects.filter(kind=EventKind.RETIRED).count() == 3
    assert Event.objects.filter(pipeline=pipeline, kind=EventKind.PIPELINE_CREATED).exists()


def test_retiring_needs_the_name_typed(pipeline, now):
    with pytest.raises(BadInput, match="not this pipeline's name"):
        pipeline_retire(pipeline, "Mail", now=now, **BY)
    assert pipeline_get("mail").retired_at is None


def test_retiring_twice_is_refused(pipeline, now):
    pipeline_retire(pipeline, "mail", now=now, **BY)
    with pytest.raises(Refused, match="it was retired at"):
        pipeline_retire(pipeline, "mail", now=now, **BY)


@pytest.fixture
def idle(approved_plan, pipeline, now):
    """The approved plan, computed long ago: nothing is queued any more."""
    for intent in Intent.objects.filter(pipeline=pipeline):
        assert intent_cancel(intent, now=now, **BY)
    return approved_plan


def test_pipeline_with_work_or_an_unfinished_recovery_is_not_retired(idle, pipeline, now):
    intent = audit_request(pipeline, now=now, **BY)
    with pytest.raises(Refused, match=r"audit .* is queued"):
        pipeline_retire(pipeline, "mail", now=now, **BY)
    intent_cancel(intent, now=now, **BY)
    recovery_request(idle.id, "it crashed", "mail", "owner", now=now, wake=False)
    for step in (
        lambda: pipeline_retire(pipeline, "mail", now=now, **BY),
        lambda: source_update(pipeline.source, {"path": "elsewhere"}, now=now, **BY),
        lambda: pipeline_update(pipeline, **KEPT | {"scope": ["k"]}, now=now, **BY),
    ):
        with pytest.raises(Refused, match=r"recovery .* is unfinished"):
            step()


def test_retiring_a_pipeline_lapses_its_plans_and_frees_its_sink(idle, pipeline, now):
    pipeline_retire(pipeline, "mail", now=now, **BY)
    idle.refresh_from_db()
    assert idle.state == PlanState.LAPSED
    assert pipeline_create("post", pipeline.source, pipeline.sink, now=now, **BY).sink == pipeline.sink


def test_pipeline_is_not_made_of_a_retired_end(db, now):
    source = source_create("orders", "paper_source", {"path": "orders"}, now=now, **BY)
    sink = sink_create("mail", "paper_sink", {"path": "mail"}, now=now, **BY)
    held_elsewhere = Source.objects.get(pk=source.pk)
    source_retire(source, "orders", now=now, **BY)
    with pytest.raises(Refused, match="source orders was retired"):
        pipeline_create("mail", held_elsewhere, sink, now=now, **BY)
    assert not Pipeline.objects.exists()


def test_pipeline_changes_whole_and_says_what(approved_plan, pipeline, now):
    changed = pipeline_update(pipeline, **KEPT | {"scope": ["b", "a"], "options": {"batch_limit": 5}}, now=now, **BY)
    approved_plan.refresh_from_db()
    assert (changed.scope, changed.options, approved_plan.state) == (["a", "b"], {"batch_limit": 5}, PlanState.LAPSED)
    event = Event.objects.get(kind=EventKind.PIPELINE_CHANGED)
    assert event.data["before"] == {"scope": None, "options": {}}
    assert event.says == "Pipeline mail changed: scope, options."


def test_change_of_nothing_is_no_event_and_lapses_nothing(approved_plan, pipeline, now):
    pipeline_update(pipeline, **KEPT, now=now, **BY)
    source_update(pipeline.source, pipeline.source.options, now=now, **BY)
    approved_plan.refresh_from_db()
    assert approved_plan.state == PlanState.APPROVED
    assert not Event.objects.filter(kind__in=[EventKind.PIPELINE_CHANGED, EventKind.END_CHANGED]).exists()


def test_sink_with_other_options_is_untested_and_keeps_what_it_said(pipeline, now):
    sink = pipeline.sink
    sink.said_identity, sink.said_counter, sink.said_fence, sink.said_at = "a", 5, 5, now
    sink.capability = {"archetype": "fenced"}
    sink.save()
    changed = sink_update(sink, {"path": "elsewhere"}, now=now, **BY)
    assert (changed.capability, changed.report, changed.said_counter) == (None, None, 5)


@pytest.mark.parametrize("name", [".", "..", "\ud800", "a/b", "x" * 201, " a"])
def test_name_that_cannot_be_an_address_is_refused(db, now, name):
    with pytest.raises(BadInput):
        source_create(name, "paper_source", {"path": "orders"}, now=now, **BY)


def test_commands_change_and_retire(pipeline, now):
    def run(*words: str) -> dict:
        out = StringIO()
        call_command(*words, "--json", stdout=out)
        return json.loads(out.getvalue())

    assert run("sources", "edit", pipeline.source.name, "--option", "path=x")["options"] == {"path": "x"}
    edited = run("pipelines", "edit", "mail", "--option", "batch_limit=7", "--author-may-approve", "yes")
    assert (edited["options"]["batch_limit"], edited["requires_other_approver"]) == (7, False)
    assert run("pipelines", "retire", "mail", "--confirm", "mail")["retired"] is True
    assert run("sinks", "retire", pipeline.sink.name, "--confirm", pipeline.sink.name)["retired"] is True
