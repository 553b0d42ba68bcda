"""The same key with the same request gets the same answer, and one effect."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from recovery_api.models import Event, Intent, Pipeline, Plan, PlanState, Recovery, RememberedAnswer, Source, Token
from recovery_api.services.idempotency import key_locked
from recovery_api.services.intents import intent_take
from tests.integration.api.conftest import make_api, make_person

SOURCE = {"name": "orders", "kind": "paper_source", "options": {"path": "p"}}
KEY = {"Idempotency_Key": "7c0b2f1e"}


def test_same_key_and_body_is_the_same_answer_byte_for_byte(admin):
    first = admin.post("/sources", SOURCE, **KEY)
    again = admin.post("/sources", dict(reversed(SOURCE.items())), **KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content and first.headers["Location"] == again.headers["Location"]
    assert again.headers["Idempotency-Replayed"] == "true" and "Idempotency-Replayed" not in first.headers
    assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert Source.objects.count() == 1


@pytest.mark.parametrize("path,body", [("/sources", SOURCE | {"name": "other"}), ("/sinks", SOURCE), ("/sources", {})])
def test_same_key_for_another_request_is_refused(admin, path, body):
    admin.post("/sources", SOURCE, **KEY)
    answer = admin.post(path, body, **KEY)
    assert (answer.status_code, answer.body["code"]) == (409, "idempotency_key_reused")
    assert Source.objects.count() == 1


def test_keys_of_two_people_are_two(db):
    for name in ("a", "b"):
        api = make_api(make_person(name, "admin"))
        assert api.post("/sources", SOURCE | {"name": name}, **KEY).status_code == 201


def test_refusal_is_remembered_as_it_was(admin):
    refused = admin.post("/sources", SOURCE | {"kind": "paper_sauce"}, **KEY)
    again = admin.post("/sources", SOURCE | {"kind": "paper_sauce"}, **KEY)
    assert refused.status_code == again.status_code == 422 and refused.content == again.content
    assert again.headers["Content-Type"] == "application/problem+json"


def test_what_never_reached_the_work_is_not_remembered(admin, viewer):
    for body, headers in ((b"{", {}), (b"{}", {"Content_Type": "text/plain"})):
        assert admin.post("/sources", body, **KEY, **headers).status_code in (400, 415)
    assert viewer.post("/sources", SOURCE, **KEY).status_code == 403
    assert admin.post("/sources", SOURCE, **KEY).status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 201, "größe", "a\tb"])
def test_key_that_cannot_be_kept_is_refused(admin, key):
    assert admin.post("/sources", SOURCE, Idempotency_Key=key).status_code == 400
    assert not Source.objects.exists()


def test_defect_is_not_remembered_and_leaves_nothing(operator, pipeline):
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION t_fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'disk'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER t_fail BEFORE INSERT ON recovery_api_intent FOR EACH ROW EXECUTE FUNCTION t_fail()"
        )
    events = Event.objects.count()
    assert operator.post("/audits", {"pipeline": "mail"}, **KEY).status_code == 500
    assert Event.objects.count() == events and not RememberedAnswer.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER t_fail ON recovery_api_intent")
    assert operator.post("/audits", {"pipeline": "mail"}, **KEY).status_code == 202


def test_key_is_forgotten_after_its_time(admin):
    admin.post("/sources", SOURCE, **KEY)
    hour = dt.timedelta(hours=1)
    kept = RememberedAnswer.objects.get()
    assert kept.expires_at - kept.created_at == 24 * hour
    RememberedAnswer.objects.update(created_at=kept.created_at - 25 * hour, expires_at=kept.expires_at - 25 * hour)
    assert admin.post("/sources", SOURCE | {"name": "other"}, **KEY).status_code == 201
    assert RememberedAnswer.objects.count() == 1


def test_asking_again_starts_nothing_and_the_keys_age_counts_from_the_first_attempt(operator, pipeline):
    first = operator.post("/audits", {"pipeline": "mail"}, **KEY)
    intent = Intent.objects.get()
    assert intent_take(intent.id, "worker", timezone.now()) is not None, "the first attempt runs"
    kept = RememberedAnswer.objects.get()
    assert kept.created_at <= intent.created_at, "from its beginning, however long it took"
    hours = dt.timedelta(hours=23)
    RememberedAnswer.objects.update(created_at=kept.created_at - hours, expires_at=kept.expires_at - hours)
    again = operator.post("/audits", {"pipeline": "mail"}, **KEY)
    assert again.content == first.content and Intent.objects.count() == 1
    assert RememberedAnswer.objects.get().expires_at == kept.expires_at - hours, "asking again makes it no younger"


def test_secret_of_a_token_is_not_kept_for_its_key(operator):
    body = {"name": "runbook", "roles": ["operator"]}
    first = operator.post("/tokens", body, **KEY)
    again = operator.post("/tokens", body, **KEY)
    assert first.body["token"].startswith("fp_")
    assert again.body == first.body | {"token": None}
    assert first.body["token"] not in RememberedAnswer.objects.get().body
    assert Token.objects.filter(name="runbook").count() == 1


@pytest.mark.django_db(transaction=True)
def test_request_in_flight_is_told_to_try_again(pipeline):
    user = make_person("olga", "operator")
    api = make_api(user)
    with key_locked(user.pk, "7c0b2f1e") as is_ours, ThreadPoolExecutor(1) as pool:
        assert is_ours
        answer = pool.submit(elsewhere, api, "/audits", {"pipeline": "mail"}).result()
    assert (answer.status_code, answer.body["code"], answer.headers["Retry-After"]) == (409, "in_flight", "1")
    assert not Intent.objects.exists()
    assert api.post("/audits", {"pipeline": "mail"}, **KEY).status_code == 202


@pytest.mark.django_db(transaction=True)
def test_two_posts_at_once_are_one_effect(pipeline):
    api = make_api(make_person("olga", "operator"))
    together = threading.Barrier(4)

    def post(_: int):
        together.wait()
        return elsewhere(api, "/audits", {"pipeline": "mail"})

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(post, range(4)))
    assert Intent.objects.count() == 1
    done = [answer for answer in answers if answer.status_code == 202]
    assert done and {answer.content for answer in done} == {done[0].content}
    assert all(answer.body["code"] == "in_flight" for answer in answers if answer not in done)


def elsewhere(api, path, body):
    try:
        return type(api)(api.token).post(path, body, **KEY)
    finally:
        connection.close()


def test_retry_pressed_twice_is_one_recovery_and_three_requests_in_the_timeline(approved_plan, approver, operator):
    body = {"plan": str(approved_plan.id), "digest": "d1", "pipeline": "mail", "reason": "relay died"}
    first, second = (approver.post("/recoveries", body) for _ in range(2))
    third = make_api(User.objects.create_superuser("root")).post("/recoveries", body)
    assert {answer.status_code for answer in (first, second, third)} == {202}
    assert first.body["recovery"] == second.body["recovery"] == third.body["recovery"]
    assert first.body["work"]["state"] == "queued"
    assert Recovery.objects.count() == Intent.objects.filter(action="recover").count() == 1
    asked = Event.objects.filter(kind="recovery requested").values_list("actor", "data__is_again")
    assert list(asked) == [("anna", None), ("anna", True), ("root", True)]
    other = approver.post("/recoveries", body | {"digest": "d2"})
    assert (other.status_code, other.body["code"]) == (409, "refused")


def test_second_recovery_of_a_pipeline_is_refused_with_the_first_ones_id(approved_plan, approver, now):

    body = {"plan": str(approved_plan.id), "digest": "d1", "pipeline": "mail", "reason": "relay died"}
    first = approver.post("/recoveries", body).body["recovery"]
    copy = Plan.objects.get(id=approved_plan.id)
    copy.pk, copy.state = None, PlanState.APPROVED
    copy._state.adding = True
    copy.id = uuid.uuid4()
    copy.save()
    answer = approver.post("/recoveries", body | {"plan": str(copy.id)})
    assert answer.status_code == 409 and first in answer.body["detail"]
    assert Pipeline.objects.count() == 1
