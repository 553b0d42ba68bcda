"""Sources, sinks, pipelines: registered, tested, changed, retired; and short jobs at a sink."""

from __future__ import annotations

import pytest

from recovery_api.models import Event, EventContent, Intent, Pipeline, Source
from recovery_api.services.ends import sink_create
from recovery_api.services.intents import intent_finish, intent_take
from recovery_api.services.recoveries import recovery_request

SINK = {"name": "post", "kind": "paper_sink", "options": {"path": "p"}}


def test_pipeline_is_registered_from_its_ends(admin, pipeline):
    for path, body in (("/sources", SINK | {"name": "s", "kind": "paper_source"}), ("/sinks", SINK)):
        assert admin.post(path, body).status_code == 201
    given = {"name": "post", "source": "s", "sink": "post", "scope": ["k1", "k2"], "options": {"batch_limit": 9}}
    made = admin.post("/pipelines", given)
    assert made.status_code == 201 and made.headers["Location"] == "/api/v1/pipelines/post"
    shown = admin.get("/pipelines/post").body
    assert shown == made.body and shown["options"]["batch_limit"] == 9 and shown["scope"] == ["k1", "k2"]
    assert admin.get("/pipelines/post/status").body["status"] == "unknown"
    assert admin.get("/pipelines/post/frontiers").body["lanes"] == []
    tested = admin.post("/pipelines/post/test")
    assert tested.status_code == 202 and len(tested.body["items"]) == 2
    again = admin.post("/pipelines", given | {"name": "other"})
    assert (again.status_code, again.body["code"]) == (409, "refused") and "post" in again.body["detail"]


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"source": "no such"}, 422, "source"),
        ({"sink": "mail-sinc"}, 422, "sink"),
        ({"scope": []}, 422, "pipeline.scope"),
        ({"scope": "k1"}, 400, "scope"),
        ({"scope": [1]}, 400, "scope.0"),
        ({"options": {"batchlimit": 5}}, 422, "pipeline.batchlimit"),
        ({"options": {"batch_limit": 0}}, 422, "pipeline.batch_limit"),
        ({"requires_other_approver": "yes"}, 400, "requires_other_approver"),
        ({"name": "mail"}, 422, "pipeline.name"),
        ({"name": "0197b2f4-8f3c-4d51-9b1e-2f6f6c1f8d10"}, 422, "pipeline.name"),
    ],
)
def test_pipeline_that_cannot_be_is_refused_by_its_field(admin, pipeline, now, change, status, field):
    sink_create("post", "paper_sink", {"path": "p"}, actor="x", now=now)
    answer = admin.post("/pipelines", {"name": "post", "source": "mail-orders", "sink": "post"} | change)
    assert (answer.status_code, answer.body.get("field")) == (status, field), answer.body
    assert Pipeline.objects.count() == 1


def test_end_is_tested_and_its_report_shown(admin, pipeline, now):
    queued = admin.post("/sources/mail-orders/test")
    assert queued.status_code == 202 and queued.body["state"] == "queued"
    assert queued.headers["Location"] == f"/api/v1/intents/{queued.body['intent']}"
    before = admin.post("/connection-tests", {"end": "source", "kind": "paper_source", "options": {"path": "p"}})
    assert before.status_code == 202
    wrong = admin.post("/connection-tests", {"end": "sink", "kind": "paper_source", "options": {"path": "p"}})
    assert (wrong.status_code, wrong.body["field"]) == (422, "sink.kind")
    intent = intent_take(queued.body["intent"], "w", now)
    assert intent is not None
    intent_finish(intent, {"is_usable": True, "facts": {"rows": 2**60}}, now)
    shown = admin.get(f"/intents/{intent.id}").body
    assert (shown["state"], shown["result"]["facts"]["rows"]) == ("done", str(2**60))


def test_options_are_changed_and_pipelines_learn_of_it(admin, ready_plan):
    changed = admin.call("PATCH", "/sources/mail-orders", {"options": {"path": "elsewhere"}})
    assert changed.status_code == 200 and changed.body["options"] == {"path": "elsewhere"}
    ready_plan.refresh_from_db()
    assert ready_plan.state == "lapsed"
    assert admin.call("PATCH", "/sinks/mail-sink", {"options": {"path": "x"}}).status_code == 200
    refused = admin.call("PATCH", "/sources/mail-orders", {"options": {"pth": "x"}})
    assert (refused.status_code, refused.body["field"]) == (422, "paper_source.pth")
    assert admin.call("PATCH", "/sources/mail-orders", {"name": "other"}).body["field"] == "name"


def test_pipeline_is_changed_member_by_member(admin, pipeline):
    assert admin.call("PATCH", "/pipelines/mail", {"options": {"batch_limit": 7}}).body["options"]["batch_limit"] == 7
    changed = admin.call("PATCH", "/pipelines/mail", {"requires_other_approver": False, "scope": ["k"]}).body
    assert (changed["options"]["batch_limit"], changed["requires_other_approver"], changed["scope"]) == (
        7,
        False,
        ["k"],
    )
    assert admin.call("PATCH", "/pipelines/mail", {"scope": None}).body["scope"] is None
    assert admin.call("PATCH", "/pipelines/mail", {}).status_code == 400


def test_delivery_of_a_pipeline_is_changed_and_taken_back(admin, pipeline, now):
    sink_create("outside", "memory", {"name": "outside"}, actor="x", now=now)
    assert admin.call("PATCH", "/pipelines/mail", {"delivery": "outside"}).body["delivery"] == "outside"
    assert admin.call("PATCH", "/pipelines/mail", {"scope": ["k"]}).body["delivery"] == "outside"
    assert admin.call("PATCH", "/pipelines/mail", {"delivery": None}).body["delivery"] is None
    for name, field in (("mail-sink", "pipeline.delivery"), ("nowhere", "delivery")):
        refused = admin.call("PATCH", "/pipelines/mail", {"delivery": name})
        assert (refused.status_code, refused.body["field"]) == (422, field)


def test_what_is_used_is_not_retired_and_what_is_retired_keeps_its_history(admin, pipeline):
    refused = admin.post("/sources/mail-orders/retire", {"confirm": "mail-orders"})
    assert (refused.status_code, refused.body["code"]) == (409, "refused")
    assert admin.post("/pipelines/mail/retire", {"confirm": "male"}).status_code == 422
    assert admin.post("/pipelines/mail/retire", {}).status_code == 400
    assert admin.post("/pipelines/mail/retire", {"confirm": "mail"}).status_code == 200
    assert admin.get("/pipelines/mail").status_code == 404
    for path, name in (("/sources", "mail-orders"), ("/sinks", "mail-sink")):
        assert admin.post(f"{path}/{name}/retire", {"confirm": name}).status_code == 200
    assert admin.get("/sources").body["items"] == [] and Source.objects.count() == 1
    assert Event.objects.filter(kind="retired").count() == 3


def test_running_recovery_keeps_its_pipeline(everyone, approved_plan, now):
    recovery_request(approved_plan.id, "r", "mail", "x", now=now, wake=False)
    for method, path, body in (
        ("POST", "/pipelines/mail/retire", {"confirm": "mail"}),
        ("PATCH", "/pipelines/mail", {"scope": ["k"]}),
        ("PATCH", "/sources/mail-orders", {"options": {"path": "x"}}),
    ):
        assert everyone.call(method, path, body).status_code == 409


def test_jobs_at_a_sink_are_intents(everyone, pipeline):
    assert everyone.post("/sinks/mail-sink/settle").body["action"] == "settle"
    assert everyone.post("/sinks/mail-sink/read").body["action"] == "sink_read"
    refused = everyone.post("/sinks/mail-sink/install", {"is_shown_only": True})
    assert refused.status_code == 409
    assert everyone.post("/sinks/mail-sink/drills").body["action"] == "drill"
    assert everyone.post("/sinks/mail-sink/drills").status_code == 409
    assert everyone.post("/sinks/mail-sink/drills", {"names": ["no such"]}).body["code"] == "unknown_option"
    assert everyone.post("/sinks/mail-sink/drill-schedule", {"every_hours": 24}).body["drill_every_hours"] == 24
    assert everyone.post("/sinks/mail-sink/drill-schedule", {"every_hours": 0}).status_code == 400
    everyone.post("/sinks", {"name": "kit", "kind": "postgresql_kit", "options": {"connection": "env:MAIL"}})
    shown = everyone.post("/sinks/kit/install", {"is_shown_only": True, "grants": {"relay": "app"}})
    assert shown.status_code == 202 and shown.body["action"] == "sink_install"
    for body, status in (
        ({}, 400),
        ({"is_shown_only": "yes"}, 400),
        ({"is_shown_only": True, "grants": {"root": "app"}}, 422),
        ({"is_shown_only": True, "is_upgrade": True}, 422),
        ({"is_shown_only": False, "is_upgrade": "yes"}, 400),
        ({"is_shown_only": True, "connection": "postgresql://u:hunter2@h/d"}, 422),
    ):
        answer = everyone.post("/sinks/kit/install", body)
        assert answer.status_code == status and b"hunter2" not in answer.content


def test_r7_upgrade_of_a_kit_is_asked_for_as_an_install_is(everyone, operator, pipeline):
    everyone.post("/sinks", {"name": "kit", "kind": "postgresql_kit", "options": {"connection": "env:MAIL"}})
    body = {"is_shown_only": False, "is_upgrade": True}
    assert operator.post("/sinks/kit/install", body).status_code == 403
    asked = everyone.post("/sinks/kit/install", body)
    assert asked.status_code == 202
    assert Intent.objects.get(id=asked.body["intent"]).arguments["is_upgrade"] is True


def test_event_is_read_on_request_and_its_content_given_as_bytes(operator, viewer, pipeline, now):
    queued = operator.post("/pipelines/mail/event-reads", {"coordinate": "9007199254740993"})
    assert queued.status_code == 202 and queued.body["action"] == "event_read"
    path = f"/intents/{queued.body['intent']}/content"
    assert operator.get(path).status_code == 404
    raw = b'{"n":12345678901234567890,"d":0.1234567890123456789,"s":"<script>"}'
    intent = Intent.objects.get(id=queued.body["intent"])
    EventContent.objects.create(intent=intent, body=raw, kept_until=now)
    answer = operator.get(path)
    assert (answer.content, answer.headers["Content-Type"]) == (raw, "application/octet-stream")
    assert "attachment" in answer.headers["Content-Disposition"]
    assert operator.get(path, Accept="application/octet-stream").status_code == 200
    assert viewer.get(path).status_code == 403
    assert Event.objects.filter(kind="content read").count() == 3
    assert operator.post("/pipelines/mail/event-reads", {"coordinate": "x"}).body["code"] == "bad_coordinate"


def test_kinds_say_their_options(viewer):
    kinds = {row["name"]: row for row in viewer.get("/kinds").body["items"]}
    options = {one["name"]: one for one in kinds["postgresql_outbox"]["options"]}
    assert options["table"]["is_required"] and options["connection"]["type"] == "reference"
    assert {row["end"] for row in viewer.get("/kinds?end=sink").body["items"]} == {"sink"}
