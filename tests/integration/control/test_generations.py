"""Who took which generation, what became of it, and where sink and memory part, as a person sees it."""

from __future__ import annotations

from typing import Any

from recovery_api.models import GenerationPurpose, Intent, IntentAction, IntentState, Pipeline, Plan
from recovery_api.services.generations import claim_record, generation_record
from recovery_api.services.recoveries import recovery_request
from tests.integration.control.test_commands import run


def _superseded(pipeline: Pipeline, plan: Plan, now: Any) -> None:
    recovery = recovery_request(plan.id, "crash", pipeline.name, "operator", now=now, wake=False)
    for number, worker in ((4, "host-a"), (5, "host-b")):
        generation_record(
            pipeline, number, purpose=GenerationPurpose.RECOVERER, asked_by=worker, now=now, recovery=recovery
        )
    said = {"superseded_by": 5, "superseded_at": "2026-03-01T03:00:09+00:00", "superseded_who": "recovery x as mailer"}
    claim_record(recovery, {"generation": 4, "state": "superseded", **said}, now=now)
    fired = {"state": "fired", "landed_count": 7, "absorbed_count": 1}
    claim_record(recovery, {"generation": 5, **fired}, now=now)


def test_generations_say_who_took_them_when_and_what_became_of_them(pipeline, approved_plan, now):
    _superseded(pipeline, approved_plan, now)
    said = run("generations", "mail", "--json")
    assert said.code == 0 and said.body["newest"] == "5"
    newest, older = said.body["generations"]
    assert (newest["asked_by"], newest["claim"]["landed"]) == ("host-b", "7")
    assert (older["claim"]["superseded_by"], older["claim"]["superseded_who"]) == ("5", "recovery x as mailer")
    text = run("generations", "mail").out
    assert "superseded by generation 5 (recovery x as mailer) at 2026-03-01T03:00:09Z" in text
    assert "7 delivered, 1 already present" in text and "never asked" in text


def test_a_sink_that_contradicts_a_final_claim_is_shown_and_named_for_settling(pipeline, approved_plan, now):
    _superseded(pipeline, approved_plan, now)
    claims = [{"generation": "5", "state": "open"}]
    Intent.objects.create(
        action=IntentAction.SINK_READ,
        sink=pipeline.sink,
        state=IntentState.DONE,
        result={"fence": "5", "counter": "5", "claims": claims, "generations": []},
        created_at=now,
        created_by="ada",
        finished_at=now,
    )
    said = run("generations", "mail")
    assert said.code == 3
    assert "claim at generation 5 is remembered fired, and the sink says open" in said.out
    assert "manage.py sinks settle mail-sink" in said.out


def test_an_unknown_pipeline_is_bad_input(db):
    assert run("generations", "male").code == 2
