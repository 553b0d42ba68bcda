"""The same alerts, destinations and messages on pages, by REST and by command; the web process resolves no secret."""

from __future__ import annotations

import datetime as dt
import html
import json
from io import StringIO

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.utils import timezone

from recovery_api.domain.alerts.causes import Cause, Scope
from recovery_api.domain.alerts.evaluation import Observed, Subject
from recovery_api.models import Alert, Delivery, Destination, Event, Incident, Mute, Route
from recovery_api.selectors.clock import now_get
from recovery_api.services.alert_quiet import alert_acknowledge, mute_add, mute_end
from recovery_api.services.alerts import Evaluation
from recovery_api.services.destinations import destination_add
from recovery_api.services.tokens import token_create
from tests.integration.alerts.conftest import evaluate, judged
from tests.integration.pages.fleet import pipeline_make

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _plain(settings):
    settings.SECURE_SSL_REDIRECT = False
    settings.FENCEPOST_API_RATES = {"person": None, "anonymous": None}


@pytest.fixture
def alert():
    now = now_get()
    hook = {"address": "https://hooks.example/x", "secret": "env:FENCEPOST_END_NOT_SET_HERE"}
    destination_add("hook", "json", actor="root", now=now, **hook)
    labels = {"labels": {"team": "payments"}, "is_scheduled": False, "stale_after_seconds": 86_400}
    judged(pipeline_make("orders", now, options=labels), "owed", now)
    evaluate(now_get())
    return Alert.objects.get()


def person(name, *roles):
    user = User.objects.create_user(name)
    user.groups.set([Group.objects.get_or_create(name=role)[0] for role in roles])
    client = Client()
    client.force_login(user)
    return client


def page(client, address, /, **post):
    answer = client.post(address, post, follow=True) if post else client.get(address)
    return answer.status_code, " ".join(html.unescape(answer.content.decode()).split())


def soon(hours=4):
    return (now_get() + dt.timedelta(hours=hours)).isoformat()


def run(*words):
    out = StringIO()
    code = 0
    try:
        call_command(*words, "--json", stdout=out, stderr=StringIO())
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, json.loads(out.getvalue().splitlines()[-1])


def test_pages_show_an_alert_take_it_over_with_a_note_and_an_end_and_give_it_back(alert):
    client = person("olga", "operator")
    assert '<span class="count">1</span>' in page(client, "/")[1].replace('class="count"', 'class="count"')
    status, shown = page(client, "/alerts/")
    assert status == 200 and "1 open" in shown and "Owed" in shown and "No pager" not in shown
    address = f"/alerts/{alert.pk}/"
    assert "Two later checks, a period apart" in page(client, address)[1]
    assert page(client, f"{address}acknowledge/", note="", **{"for": "4"})[0] == 400
    status, shown = page(client, f"{address}acknowledge/", note="I look", until="2020-01-01T00:00:00Z")
    assert status == 400 and "is not ahead" in shown
    status, shown = page(client, f"{address}acknowledge/", note="I look", **{"for": "4"})
    assert status == 200 and "acknowledged" in shown and "I look" in shown
    status, shown = page(person("bob", "operator"), f"{address}acknowledge/", note="Me, too", **{"for": "4"})
    assert status == 409 and "olga acknowledged it until" in shown
    assert page(person("vera", "viewer"), f"{address}give-back/", x="")[0] == 403
    assert "given back" in page(client, f"{address}give-back/", x="")[1]
    assert Event.objects.filter(kind="alert acknowledged").count() == 2


def test_pages_refuse_a_mute_without_an_end_and_show_what_is_muted(alert):
    client = person("olga", "operator")
    given = {"by": "label", "value": "team=payments", "note": "Moved tonight"}
    status, shown = page(client, "/mutes/", **given)
    assert status == 400 and "A mute has an end" in shown
    assert page(client, "/mutes/", **{**given, "value": "team=a\nb", "for": "1"})[0] == 400
    status, shown = page(client, "/mutes/", **given, **{"for": "1"})
    assert status == 200 and "every alert of label team=payments" in shown and "Moved tonight" in shown
    evaluate(now_get())
    assert "muted" in page(client, "/alerts/")[1]
    page(client, f"/mutes/{Mute.objects.get().pk}/end/", x="")
    assert "Nothing is muted" in page(client, "/alerts/")[1]


def test_pages_add_a_destination_test_it_and_show_what_it_answered(alert):
    client, olga = person("root", "admin"), person("olga", "operator")
    status, shown = page(
        client, "/destinations/", name="chat", shape="slack", address="https://hooks.slack.com/services/T/B/x"
    )
    assert status == 400 and "is a secret" in shown and not Destination.objects.filter(name="chat").exists()
    status, shown = page(client, "/destinations/", name="chat", shape="slack", address="env:FENCEPOST_END_CHAT")
    assert status == 200 and "Send a test" in shown
    assert "on its way" in page(client, "/destinations/chat/test/", x="")[1]
    row = Delivery.objects.get(destination__name="chat")
    Delivery.objects.filter(pk=row.pk).update(
        state="refused",
        due_at=None,
        answers=[
            {
                "at": "2026-03-01T00:00:00Z",
                "attempt": 1,
                "status": 404,
                "problem": "answered 404",
                "excerpt": "<script>",
                "took_seconds": 0.1,
            }
        ],
    )
    answer = client.get("/destinations/chat/").content.decode()
    assert "answered 404" in answer and "&lt;script&gt;" in answer and "<script>" not in answer.split("<main")[1]
    assert page(olga, "/destinations/chat/test/", x="")[0] == 403
    assert "sent again" in page(olga, f"/deliveries/{row.message_id}/again/", x="")[1]
    page(client, "/destinations/chat/routes/", least="critical", label="team=payments", cause="owed", goes_on="true")
    route = Route.objects.get(labels={"team": "payments"})
    assert (route.least, route.causes, route.goes_on) == ("critical", ["owed"], True)
    page(client, f"/routes/{route.pk}/remove/", x="")
    assert "It is off" in page(client, "/destinations/chat/off/", x="")[1]
    assert "out of use" in page(client, "/destinations/chat/retire/", x="")[1]
    assert Event.objects.filter(kind="alerting changed").count() >= 7


def test_rest_does_the_same(alert):
    person("root", "admin", "operator")
    _, token = token_create(
        User.objects.get(username="root"),
        "t",
        ["admin", "operator"],
        held=["admin", "operator"],
        actor="root",
        now=timezone.now(),
    )
    client, auth = Client(), {"authorization": f"Bearer {token}"}

    def call(method, path, body=None):
        data = b"" if body is None else json.dumps(body)
        answer = client.generic(method, f"/api/v1{path}", data, content_type="application/json", headers=auth)
        return answer.status_code, json.loads(answer.content)

    status, found = call("GET", "/alerts?pipeline=orders&severity=critical")
    assert status == 200 and [one["alert"] for one in found["items"]] == [str(alert.pk)]
    assert call("GET", "/alerts?cause=nothing")[0] == 400
    status, whole = call("GET", f"/alerts/{alert.pk}")
    assert whole["means"] and [line["change"] for line in whole["history"]] == ["opened"] and whole["number"] == "3"
    assert call("POST", f"/alerts/{alert.pk}/acknowledge", {"note": "x"})[0] in (400, 422)
    status, said = call("POST", f"/alerts/{alert.pk}/acknowledge", {"note": "x", "until": soon()})
    assert status == 200 and said["state"] == "acknowledged"
    assert call("POST", f"/alerts/{alert.pk}/acknowledge", {"note": "x", "until": soon()})[0] == 409
    assert call("POST", f"/alerts/{alert.pk}/give-back")[0] == 200
    asked = {"by": "pipeline", "value": "orders", "note": "x", "until": soon()}
    for wrong in ({**asked, "dryrun": True}, {**asked, "by": "pipelin"}, {"note": "x", "until": soon()}):  # RC-75
        assert call("POST", "/mutes", wrong)[0] in (400, 422) and not Mute.objects.exists()
    status, mute = call("POST", "/mutes", {"by": "pipeline", "value": "orders", "note": "x", "until": soon()})
    assert status == 201 and len(call("GET", "/mutes")[1]["items"]) == 1
    assert call("POST", f"/mutes/{mute['mute']}/end")[1]["ended_by"] == "root"
    duty = {"name": "duty", "shape": "pagerduty", "secret": "env:FENCEPOST_END_DUTY"}
    assert call("POST", "/destinations", duty)[0] == 201
    assert call("POST", "/destinations", duty)[0] in (409, 422)
    assert call("PATCH", "/destinations/duty", {"secret": "plain"})[0] == 422
    assert call("POST", "/destinations/duty/test")[1]["kind"] == "test"
    status, route = call("POST", "/routes", {"destination": "duty", "labels": {"team": "payments"}})
    assert status == 201 and "team=payments" in route["says"]
    assert call("DELETE", f"/routes/{route['route']}")[0] == 200
    rows = call("GET", f"/deliveries?alert={alert.pk}")[1]["items"]
    assert [one["kind"] for one in rows] == ["trigger", "acknowledge"][::-1]
    assert call("POST", f"/deliveries/{rows[-1]['delivery']}/again")[0] == 409
    assert call("POST", "/destinations/duty/turn-off")[1]["is_on"] is False
    assert call("POST", "/destinations/duty/retire")[0] == 200


def test_wide_numbers_arrive_as_they_are_and_again_pressed_twice_sends_once(alert):
    """RC-71, RC-47."""
    Alert.objects.update(number=9007199254740993)
    assert run("alerts", "show", str(alert.pk))[1]["number"] == "9007199254740993"
    row = Delivery.objects.get()
    Delivery.objects.update(state="sent", due_at=None, attempts=1)
    for _ in range(2):
        assert run("destinations", "again", str(row.message_id))[1]["state"] == "waiting"
    assert Delivery.objects.count() == 1


def test_commands_do_the_same(alert):
    code, found = run("alerts", "list")
    assert code == 1 and found["alerts"][0]["about"] == "orders"
    assert run("alerts", "show", str(alert.pk))[1]["history"][0]["change"] == "opened"
    assert run("alerts", "ack", str(alert.pk), "--note", "x")[0] == 2  # without an end
    assert run("alerts", "ack", str(alert.pk), "--note", "x", "--until", soon())[1]["state"] == "acknowledged"
    assert run("alerts", "give-back", str(alert.pk))[0] == 0
    _, mute = run("alerts", "mute", "sink", "sink orders", "--note", "x", "--until", soon())
    assert len(run("alerts", "mutes")[1]["mutes"]) == 1
    assert run("alerts", "unmute", mute["mute"])[0] == 0
    assert run("destinations", "add", "mail", "--shape", "email", "--address", "ada@example.org")[0] == 0
    assert run("destinations", "test", "mail")[1]["kind"] == "test"
    _, route = run("destinations", "route", "mail", "--least", "error", "--label", "team=payments")
    assert [one["destination"] for one in run("destinations", "routes")[1]["routes"]] == ["hook", "mail", "mail"]
    assert run("destinations", "unroute", route["route"])[0] == 0
    rows = run("destinations", "deliveries", "mail")[1]["deliveries"]
    assert run("destinations", "delivery", rows[0]["delivery"])[1]["state"] == "waiting"
    assert run("destinations", "again", rows[0]["delivery"])[0] == 0
    for word in ("off", "on", "retire"):
        assert run("destinations", word, "mail")[0] == 0
    assert run("alerts", "list", "--state", "resolved")[0] == 0


KINDS = [
    *("pipeline created", "audit recorded", "alert opened", "alerting changed", "alert muted", "alerting changed"),
    *("alert unmuted", "alert acknowledged", "audit recorded", "alert broke through", "alert worsened", "alert opened"),
]


def test_timelines_and_a_post_mortem_tell_of_alerts_among_the_events_in_the_order_they_were_written(alert):
    olga, pipeline, now = person("olga", "operator"), alert.pipeline, now_get()
    mute = mute_add("pipeline", "orders", note="Moved", until=now + dt.timedelta(hours=1), actor="ada", now=now)
    evaluate(now_get())
    mute_end(mute, actor="ada", now=now_get())
    evaluate(now_get())
    soon_enough, hour = now_get(), dt.timedelta(hours=1)
    alert_acknowledge(alert, note="I look", until=soon_enough + hour, actor="olga", now=soon_enough)
    judged(pipeline, "owed", now_get(), lost_count=99)
    evaluate(now_get())
    outdated = Observed(Cause.KIT_OUTDATED, Subject(Scope.SINK, pipeline.sink_id), True, now_get(), "It is older.")
    with transaction.atomic():
        Evaluation(now_get(), now_get()).run([outdated])
    other = pipeline_make("other", now_get())
    judged(other, "owed", now_get())
    evaluate(now_get())
    told = run("pipelines", "timeline", "orders")[1]["timeline"]
    assert [one["kind"] for one in told] == KINDS, "an acknowledgement once, and nothing of the other pipeline"
    assert (
        told[4]["says"].startswith("Owed: Every alert of pipeline orders until ") and "by ada: Moved" in told[4]["says"]
    )
    assert told[-1]["says"] == "Sink kit outdated of sink orders: It is older." and told[-1]["pipeline"] is None
    assert {one["alert"] for one in told[:-1] if one["alert"]} == {str(alert.pk)}
    for order in ("oldest", "newest"):
        assert paged(olga, f"/api/v1/timeline?pipeline=orders&limit=2&order={order}") == (
            told if order == "oldest" else told[::-1]
        ), "each once, whatever the page"
    shown = page(olga, "/pipelines/orders/timeline/")[1]
    assert f'<a href="/alerts/{alert.pk}/">alert</a>' in shown and "alert broke through" in shown
    assert "alert muted" in page(olga, "/timeline/?pipeline=orders&kind=alert+muted")[1]
    begun = run("incident", "open", "Owed", "--alert", str(alert.pk), "--actor", "olga")[1]
    assert begun["pipelines"] == ["orders"] and begun["severity"] == "critical"
    assert begun["alerts"] == [str(alert.pk)] and begun["noticed_at"] == alert.first_opened_at.isoformat()
    about_sink = Alert.objects.get(cause="kit_outdated")
    form = page(olga, f"/incidents/?alert={about_sink.pk}")[1]
    assert 'value="Sink kit outdated: orders"' in form and '<option value="orders" selected>' in form
    incident = Incident.objects.get()
    gathered = [one["kind"] for one in run("incident", "timeline", str(incident.pk))[1]["timeline"]]
    assert gathered == [*KINDS, "incident opened"]
    assert [one["kind"] for one in paged(olga, f"/api/v1/incidents/{incident.pk}/timeline?limit=3")] == gathered
    assert "alert worsened" in page(olga, f"/incidents/{incident.pk}/")[1]
    assert "alert opened" in page(olga, f"/incidents/{incident.pk}/?before={told[3]['id']}")[1]
    assert page(olga, f"/incidents/{incident.pk}/?before=x")[0] == 400
    assert "| alert worsened | pager | Owed: " in run("incident", "post-mortem", str(incident.pk))[1]["text"]


def paged(client, address):
    """The rows of every page, in the order they came."""
    rows = []
    while address:
        body = client.get(address).json()
        rows, address = rows + body["items"], body["next"]
    return rows
