"""What leaves: to a real HTTP receiver, signed, in order, at least once; and what does not."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import socket
import threading

import pytest
from django.core import mail

from recovery_api.domain.alerts.addresses import networks_parse
from recovery_api.domain.alerts.outbox import Answer
from recovery_api.domain.alerts.signatures import is_signed
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.models import Alert, Delivery, Destination, Event
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.destinations import deliveries_overdue
from recovery_api.services.alert_quiet import alert_acknowledge
from recovery_api.services.deliveries import deliveries_take, delivery_record
from recovery_api.services.destinations import (
    delivery_send_again,
    destination_add,
    destination_change,
    destination_test,
    destination_turn,
)
from tests.integration.alerts.conftest import evaluate, judged
from tests.integration.pages.fleet import pipeline_make
from workers.alerts.delivering import Deliverer
from workers.alerts.pager import Pager
from workers.alerts.sending import Sender, socket_open

pytestmark = pytest.mark.django_db

SECOND = dt.timedelta(seconds=1)


def add(name, receiver, shape="json", **more):
    secret = {"json": "env:FENCEPOST_END_HOOK_SECRET", "pagerduty": "env:FENCEPOST_END_HOOK_SECRET"}.get(shape, "")
    return destination_add(name, shape, address=receiver.url, secret=secret, actor="root", now=now_get(), **more)


def owed():
    """A pipeline that owes events from now on, evaluated."""
    now = now_get()
    pipeline = pipeline_make("orders", now, options={"is_scheduled": False, "stale_after_seconds": 86_400})
    judged(pipeline, "owed", now)
    evaluate(now_get())
    return pipeline


def deliver_all():
    deliverer = Deliverer("test/1")
    while deliverer.turn(5.0) or deliverer.is_busy:
        pass
    deliverer.close()


def due_now():
    Delivery.objects.filter(state="waiting").update(due_at=now_get())


def test_a_page_arrives_signed_and_its_row_keeps_the_answer(receiver):
    add("hook", receiver)
    owed()
    deliver_all()
    ((_, headers, body),) = receiver.requests
    row = Delivery.objects.get()
    id_, stamp, signature = (headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
    assert is_signed("whsec_c2VjcmV0", id_, stamp, signature, body, now_get())
    assert not is_signed("whsec_c2VjcmV0", id_, stamp, signature, body + b" ", now_get())
    told = json.loads(body)
    assert (told["id"], told["kind"], told["is_page"], told["count"]) == (str(row.message_id), "trigger", True, 1)
    assert told["members"][0]["name"] == "orders" and told["url"].startswith("https://fencepost.example/alerts/")
    assert (row.state, row.attempts, row.answers[0]["status"], row.is_late) == ("sent", 1, 200, False)
    assert "c2VjcmV0" not in json.dumps([row.message, row.answers, list(Event.objects.values_list("data", "says"))])


def test_what_fails_is_tried_again_with_the_same_id_and_pages_the_next_route(receiver, monkeypatch):
    first, second = add("first", receiver), None
    other = type(receiver)(receiver.url + "/second")
    second = add("second", other)
    receiver.status = 503
    owed()
    deliver_all()
    assert not Delivery.objects.filter(destination=second).exists()
    due_now()
    deliver_all()
    row = Delivery.objects.get(destination=first)
    assert row.state == "waiting" and row.spare_at is not None and row.due_at > now_get()
    ids = [headers["webhook-id"] for path, headers, _ in receiver.requests if path == "/"]
    assert ids == [str(row.message_id)] * 2
    spare = Delivery.objects.get(destination=second)
    assert spare.kind == "trigger" and "first does not take it" in spare.message["note"]
    receiver.status = 200
    due_now()
    deliver_all()
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent"}


def test_a_trigger_is_never_tried_again_after_its_resolve_and_the_row_stays(receiver):
    add("hook", receiver)
    receiver.status = 503
    pipeline = owed()
    deliver_all()
    recovered = now_get() + SECOND
    judged(pipeline, "exactly_once", recovered)
    evaluate(recovered)
    judged(pipeline, "exactly_once", recovered + 400 * SECOND)
    evaluate(recovered + 401 * SECOND)
    receiver.status = 200
    due_now()
    deliver_all()
    trigger, resolve = Delivery.objects.order_by("number")
    assert (trigger.state, trigger.superseded_by, trigger.attempts) == ("superseded", resolve.number, 1)
    assert resolve.state == "sent"
    assert [json.loads(body)["kind"] for _, _, body in receiver.requests] == ["trigger", "resolve"]
    with pytest.raises(Refused, match="newer message"):
        delivery_send_again(trigger, actor="ada", now=now_get())


def test_an_answer_that_comes_after_another_pager_took_over_changes_nothing(receiver):
    add("hook", receiver)
    owed()
    (row,) = deliveries_take("a/1", now_get(), 10, 10)
    assert deliveries_take("b/1", now_get(), 10, 10) == []
    after = now_get() + 60 * SECOND
    (again,) = deliveries_take("b/1", after, 10, 10)
    assert again.pk == row.pk
    assert not delivery_record(row, Answer(200), 0.1, after)
    assert delivery_record(again, Answer(200), 0.1, after)


def test_410_turns_the_destination_off_and_the_next_route_is_paged(receiver):
    first = add("first", receiver)
    second = add("second", type(receiver)(receiver.url + "/second"))
    receiver.status = 410
    owed()
    (row,) = deliveries_take("a/1", now_get(), 10, 10)
    from workers.alerts.delivering import deliver

    delivery_record(row, *deliver(row, Sender(networks_parse(["127.0.0.1"]))), now_get())
    first.refresh_from_db()
    assert first.disabled_at is not None and "410" in first.disabled_says
    assert Delivery.objects.get(destination=second).kind == "trigger"
    with pytest.raises(Refused, match="turned off"):
        destination_test(first, actor="ada", now=now_get())
    destination_turn(first, is_on=True, actor="ada", now=now_get())
    receiver.status = 200
    delivery_send_again(row, actor="ada", now=now_get())
    deliver_all()
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent"}


def test_redirects_are_not_followed(receiver):
    receiver.status, receiver.headers = 302, {"Location": f"{receiver.url}/elsewhere"}
    answer = Sender(networks_parse(["127.0.0.1"])).send(receiver.url, b"{}", {})
    assert answer.is_final and "redirects are not followed" in answer.problem
    assert [path for path, _, _ in receiver.requests] == ["/"]


def test_destinations_that_hang_with_much_that_waits_are_in_nobodys_way(receiver):
    receiver.hangs, receiver.hangs_at = threading.Event(), "/hangs"
    secret = "env:FENCEPOST_END_HOOK_SECRET"
    for number in range(6):  # with more than is taken at once
        url = f"{receiver.url}/hangs"
        hanging = destination_add(f"a{number}", "json", address=url, secret=secret, actor="root", now=now_get())
        for _ in range(13):
            destination_test(hanging, actor="ada", now=now_get())
    destination_test(add("well", receiver), actor="ada", now=now_get())
    deliverer = Deliverer("pager")
    for _ in range(20):
        deliverer.turn(0.05)
    assert "/" in [path for path, *_ in receiver.requests]
    receiver.hangs.set()
    deliverer.close()


def test_an_endpoint_that_hangs_is_left_after_its_time(receiver):
    receiver.hangs = threading.Event()
    answer = Sender(networks_parse(["127.0.0.1"]), seconds=0.5).send(receiver.url, b"{}", {})
    assert answer.problem == "did not answer within 0.5 s" and not answer.is_final


def test_an_answer_that_drips_does_not_stretch_the_deadline():
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            opened, _ = listening.accept()
            with opened, contextlib.suppress(OSError):
                opened.sendall(b"HTTP/1.1 200 OK\r\nX-Drip: ")
                for _ in range(30):
                    opened.sendall(b"x")
                    threading.Event().wait(0.1)

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        answer = Sender(networks_parse(["127.0.0.1"]), seconds=0.5).send(url, b"{}", {})
        thread.join()
    assert answer.problem == "did not answer within 0.5 s"


def test_a_private_address_is_refused_at_the_connection_unless_it_is_named(receiver, monkeypatch):
    answer = Sender().send(receiver.url, b"{}", {})
    assert answer.is_final and "private address" in answer.problem and receiver.requests == []
    asked = []

    def resolves(host, port, **_):
        asked.append(host)
        return [(0, 0, 0, "", ("93.184.216.34" if len(asked) == 1 else "127.0.0.1", port))]

    monkeypatch.setattr("socket.getaddrinfo", resolves)
    with pytest.raises(OSError, match="http is not encrypted"):
        socket_open("hooks.example", 80, [], 1.0, True)
    with pytest.raises(OSError, match="private address"):  # the same name a moment later
        socket_open("hooks.example", 443, [], 1.0, False)


def test_a_test_says_that_it_is_one(receiver):
    for name, shape in (("hook", "json"), ("duty", "pagerduty"), ("manager", "alertmanager")):
        destination_test(add(name, receiver, shape), actor="ada", now=now_get())
    deliver_all()
    assert len(receiver.requests) == 3
    assert all(b"Test of the destination" in body for _, _, body in receiver.requests)
    assert {path for path, _, _ in receiver.requests} == {"/", "/api/v2/alerts"}


def test_alertmanager_is_told_again_until_it_is_resolved(receiver):
    add("manager", receiver, "alertmanager")
    pipeline = owed()
    deliver_all()
    row = Delivery.objects.get()
    assert row.state == "sent" and row.due_at is not None
    Delivery.objects.update(due_at=now_get())
    deliver_all()
    first, second = (json.loads(body)[0] for _, _, body in receiver.requests)
    assert first["labels"] == second["labels"] and second["endsAt"] > first["endsAt"]
    now = now_get()
    alert_acknowledge(Alert.objects.get(), note="mine", until=now + 3600 * SECOND, actor="ada", now=now)
    deliver_all()
    assert Delivery.objects.get(kind="acknowledge").due_at is not None  # it is open still, and told again
    receiver.requests.pop()
    for seconds in (1, 400):
        judged(pipeline, "exactly_once", now_get() + seconds * SECOND)
        evaluate(now_get() + seconds * SECOND)
    Delivery.objects.filter(state="waiting").update(due_at=now_get())
    deliver_all()
    row.refresh_from_db()
    assert row.due_at is None and len(receiver.requests) == 3


def test_mail_leaves_through_djangos_backend(settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    destination_add("mail", "email", address="ada@example.org, bob@example.org", actor="root", now=now_get())
    owed()
    deliver_all()
    (message,) = mail.outbox
    assert message.to == ["ada@example.org", "bob@example.org"] and "Owed: orders" in message.subject
    assert Delivery.objects.get().state == "sent"


def test_what_leaves_long_after_it_should_have_is_marked_late(receiver):
    add("hook", receiver)
    owed()
    months = dt.timedelta(days=120)
    Delivery.objects.update(due_since=now_get() - months)
    row = Delivery.objects.get()
    Delivery.objects.update(message={**row.message, "due_since": (now_get() - months).isoformat()})
    deliver_all()
    row.refresh_from_db()
    assert row.is_late and json.loads(receiver.requests[0][2])["is_late"]


def test_a_page_of_four_months_of_an_absent_pager_is_late(receiver):
    add("hook", receiver)
    months_ago = now_get() - dt.timedelta(days=120)
    evaluate(months_ago)
    pipeline = pipeline_make("orders", months_ago, options={"is_scheduled": False})
    judged(pipeline, "owed", months_ago + SECOND)
    evaluate(now_get())
    deliver_all()
    assert Delivery.objects.get().is_late


def test_secrets_and_private_webhooks_are_registered_by_reference_alone(receiver):
    for shape, more, problem in (
        ("json", {"address": "https://x.example/", "secret": "plain"}, "not a reference"),
        ("json", {"address": "https://x.example/"}, "missing"),
        ("slack", {"address": "https://hooks.slack.com/services/T/B/X"}, "a secret"),
        ("json", {"address": "https://me:pw@x.example/", "secret": "env:X"}, "password"),
        ("email", {"address": "no address"}, "e-mail"),
        ("pager", {"address": "https://x.example/"}, "none"),
    ):
        with pytest.raises(BadInput, match=problem):
            destination_add("x", shape, actor="root", now=now_get(), **more)
    assert not Destination.objects.exists()
    add("hook", receiver)
    with pytest.raises(BadInput):
        destination_change(Destination.objects.get(), address="ftp://x", actor="root", now=now_get())


def test_a_reference_that_is_not_set_is_a_problem_of_the_delivery_and_names_it(receiver, monkeypatch):
    monkeypatch.delenv("FENCEPOST_END_HOOK_SECRET")
    add("hook", receiver)
    owed()
    deliver_all()
    row = Delivery.objects.get()
    assert row.state == "waiting" and "FENCEPOST_END_HOOK_SECRET" in row.answers[0]["problem"]


def test_the_heartbeat_leaves_only_after_an_evaluation_and_while_no_page_is_stuck(receiver, settings):
    settings.FENCEPOST_HEARTBEAT_URL = f"{receiver.url}/beat"
    pager = Pager()
    assert not pager.heartbeat().was_sent
    pager.once()
    settings.FENCEPOST_HEARTBEAT_URL = "env:FENCEPOST_END_NOT_SET"
    assert "FENCEPOST_END_NOT_SET" in pager.heartbeat().says
    settings.FENCEPOST_HEARTBEAT_URL = f"{receiver.url}/beat"
    assert pager.heartbeat().was_sent and receiver.requests[-1][0] == "/beat"
    add("hook", receiver)
    owed()
    Delivery.objects.update(created_at=now_get() - dt.timedelta(minutes=5))
    assert deliveries_overdue(now_get(), dt.timedelta(minutes=2)) == 1
    beats = len(receiver.requests)
    assert "reached nobody" in pager.heartbeat().says and len(receiver.requests) == beats
    deliver_all()
    assert pager.heartbeat().was_sent
    pager.deliverer.close()


def test_a_monitor_that_hangs_keeps_no_page_from_leaving(receiver, settings, monkeypatch):
    monkeypatch.setattr("workers.alerts.pager.TURN_SECONDS", 0.05)
    settings.FENCEPOST_HEARTBEAT_URL = f"{receiver.url}/beat"
    receiver.hangs, receiver.hangs_at = threading.Event(), "/beat"
    add("hook", receiver)
    pager = Pager()
    pager.turn()
    assert pager.is_beating  # the turn ended, and the monitor has not answered
    owed()
    for _ in range(20):
        pager.turn()
    assert [path for path, *_ in receiver.requests] == ["/beat", "/"] and pager.is_beating
    receiver.hangs.set()
    pager.stop()
    pager.run()
