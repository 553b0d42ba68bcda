"""A whole incident by REST alone: audit, plan, approve, apply, wait, certificate; and with everything else away."""

from __future__ import annotations

import pytest

from recovery_api.models import Audit, Intent, LedgerItem, LedgerLane, Plan
from tests.integration.api.conftest import make_api, make_person
from tests.integration.control import paper_runner


@pytest.fixture(autouse=True)
def _answers():
    paper_runner.ANSWERS.clear()
    yield
    paper_runner.ANSWERS.clear()


def work(api, answer):
    """Whom the answer's intent was waiting for comes, and does it."""
    assert answer.status_code == 202, answer.body
    intent = answer.body.get("work") or answer.body
    assert intent["state"] == "queued"
    paper_runner.intent_run(intent["intent"], "worker")
    done = api.get(f"/intents/{intent['intent']}").body
    assert done["state"] == "done", done
    return done


def test_incident_from_audit_to_certificate(operator, approver, viewer, pipeline):
    audited = work(operator, operator.post("/audits", {"pipeline": "mail"}))
    verdict = viewer.get(f"/audits/{audited['result']['audit']}").body
    assert (verdict["status"], verdict["lost"], verdict["exit_code"]) == ("owed", "3", 1)
    assert viewer.get("/pipelines/mail/status").body["status"] == "owed"

    planned = work(operator, operator.post("/plans", {"pipeline": "mail"}))
    plan = viewer.get(f"/plans/{planned['plan']}").body
    assert (plan["state"], plan["planned"], plan["digest"]) == ("ready", "3", "d1")

    own = approver.post("/recoveries", apply(plan))
    assert (own.status_code, own.body["code"]) == (409, "refused") and "not approved" in own.body["detail"]
    changed = approver.post(f"/plans/{plan['plan']}/approval", {"digest": "d0"})
    assert (changed.status_code, changed.body["code"]) == (409, "refused")
    assert approver.post(f"/plans/{plan['plan']}/approval", {"digest": "d1"}).body["approved_by"] == "anna"

    typed = approver.post("/recoveries", apply(plan) | {"pipeline": "male"})
    assert (typed.status_code, typed.body["field"]) == (422, "confirm")
    applied = approver.post("/recoveries", apply(plan))
    recovery = applied.body["recovery"]
    assert applied.headers["Location"] == f"/api/v1/recoveries/{recovery}"
    assert viewer.get("/pipelines/mail/status").body["status"] == "running"
    path = f"/recoveries/{recovery}"
    assert approver.post(f"{path}/pause", {"reason": "look first"}).body["wanted"] == "pause"
    assert approver.post(f"{path}/resume", {"reason": "go on"}).body["wanted"] == "run"
    assert approver.post(f"{path}/settle").body["intent"] == applied.body["work"]["intent"]
    paper_runner.ANSWERS["recover"] = {"certificate": {"landed": 3}, "certificate_digest": "c1"}
    work(viewer, applied)
    ended = viewer.get(path).body
    assert (ended["outcome"], ended["landed"], ended["work"]) == ("exactly_once", "3", None)
    assert viewer.get(f"{path}/certificate").body["certificate"] == {"landed": 3}
    kinds = [row["kind"] for row in viewer.get(f"/events?recovery={recovery}").body["items"]]
    assert kinds[:3] == ["plan requested", "plan recorded", "plan approved"] and kinds[-1] == "recovery finished"
    assert approver.post(f"{path}/stop", {"reason": "x"}).status_code == 409


def apply(plan):
    return {"plan": plan["plan"], "digest": plan["digest"], "pipeline": "mail", "reason": "relay died at 03:12"}


def test_author_of_a_plan_may_not_approve_it(approver, pipeline):
    planned = work(approver, approver.post("/plans", {"pipeline": "mail"}))
    refused = approver.post(f"/plans/{planned['plan']}/approval", {"digest": "d1"})
    assert (refused.status_code, refused.body["code"]) == (409, "refused") and "author" in refused.body["detail"]


def test_recovery_not_begun_stops_at_once(approver, approved_plan):
    plan = {"plan": str(approved_plan.id), "digest": "d1"}
    recovery = approver.post("/recoveries", apply(plan)).body
    cancelled = approver.post(f"/intents/{recovery['work']['intent']}/cancel")
    assert cancelled.status_code == 409 and "/stop" in cancelled.body["remedy"]
    stopped = approver.post(f"/recoveries/{recovery['recovery']}/stop", {"reason": "wrong frontier"}).body
    assert (stopped["state"], stopped["outcome"], stopped["work"]) == ("finished", "stopped", None)


def test_omission_is_acknowledged_and_withdrawn(operator, pipeline):
    path = "/pipelines/mail/omissions"
    made = operator.post(path, {"coordinate": "41", "reason": "a test order"})
    assert (made.status_code, made.body["coordinate"], made.body["acknowledged_by"]) == (201, "41", "olga")
    assert operator.post(path, {"coordinate": "41", "reason": "again"}).status_code == 409
    assert operator.post(path, {"coordinate": "4x", "reason": "r"}).body["code"] == "bad_coordinate"
    assert operator.post(path, {"coordinate": "42", "reason": " "}).body["field"] == "reason"
    assert operator.post(f"{path}/withdraw", {"coordinate": "41"}).body["withdrawn_by"] == "olga"
    assert operator.post(f"{path}/withdraw", {"coordinate": "41"}).status_code == 404
    assert operator.get(path).body["items"] == []
    assert len(operator.get(f"{path}?with_withdrawn=true").body["items"]) == 1


@pytest.mark.django_db(transaction=True)
def test_work_is_queued_where_broker_worker_and_engine_are_away(pipeline, settings, caplog):
    settings.REDIS_URL, settings.SPARK_REMOTE = "redis://127.0.0.1:1/0", "sc://127.0.0.1:1/"
    operator = make_api(make_person("olga", "operator"))
    for path in ("/audits", "/plans"):
        answer = operator.post(path, {"pipeline": "mail"}, Idempotency_Key=f"key {path}")
        assert (answer.status_code, answer.body["state"]) == (202, "queued")
        assert operator.get(f"/intents/{answer.body['intent']}").body["state"] == "queued"
    assert Intent.objects.filter(state="queued").count() == 2
    assert caplog.text.count("the sweep will") == 2


def test_what_must_be_attested_is_listed_in_the_plan_and_given_in_its_words(operator, approver, viewer, pipeline):
    planned = work(operator, operator.post("/plans", {"pipeline": "mail"}))
    pins = {"strategy": "attested", "promise": "…", "attestations": ["relay-drained", "only-recoverer"]}
    Plan.objects.filter(id=planned["plan"]).update(pins=pins)
    plan = viewer.get(f"/plans/{planned['plan']}").body
    assert [one["name"] for one in plan["attestations"]] == ["relay-drained", "only-recoverer"]
    assert plan["strategy"] == "attested" and "since TIME by NAME" in plan["attestations"][0]["write"]
    assert approver.post(f"/plans/{plan['plan']}/approval", {"digest": "d1"}).status_code == 200
    refused = approver.post("/recoveries", apply(plan))
    assert (refused.status_code, refused.body["code"]) == (409, "refused") and "nobody attested" in refused.body[
        "detail"
    ]
    vague = approver.post("/recoveries", apply(plan) | {"attestations": ["relay-drained", "only-recoverer"]})
    assert (vague.status_code, vague.body["field"]) == (422, "attestations")
    texts = ["relay-drained since 2026-11-01T10:30:00+00:00 by ada", "only-recoverer"]
    applied = approver.post("/recoveries", apply(plan) | {"attestations": texts})
    assert applied.status_code == 202 and applied.body["attestations"] == texts
    assert applied.body["attested"][0]["since"] == "2026-11-01T10:30:00+00:00"


def test_what_is_open_is_listed_and_who_knows_decides_what_nobody_saw(operator, viewer, pipeline):
    audit = work(operator, operator.post("/audits", {"pipeline": "mail"}))["result"]["audit"]
    seen = Audit.objects.get(id=audit)
    told = {"pipeline": pipeline, "lane": "0", "epoch": "e"}
    LedgerLane.objects.create(
        **told, audit=seen, read_at=seen.record_read_at, unseen_below={"position": "4", "ordinal": "0"}
    )
    times = {"first_seen_at": seen.record_read_at, "last_seen_at": seen.record_read_at}
    LedgerItem.objects.create(
        **told, **times, position=7, word="lost", is_content_gone=True, first_audit=seen, last_audit=seen
    )
    (item,) = viewer.get("/pipelines/mail/items").body["items"]
    assert (item["coordinate"], item["word"], item["is_content_gone"]) == ("7", "lost", True)
    assert "no recovery can send it" in item["means"]
    assert viewer.get("/pipelines/mail/ledger").body["items"][0]["unknown_below"] == "4"
    path, decision = "/pipelines/mail/ledger", {"coordinate": "4", "reason": "imported"}
    assert viewer.post(path, decision).status_code == 403
    made = operator.post(path, decision)
    assert (made.status_code, made.body["nothing_owed_below"], made.body["decided_by"]) == (201, "4", "olga")
    assert operator.post(path, {"coordinate": "4", "reason": " "}).body["field"] == "reason"
