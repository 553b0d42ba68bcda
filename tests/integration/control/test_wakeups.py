"""Waking a worker: a message after commit, a log line where it cannot be sent, and never more."""

from __future__ import annotations

import json
import logging
import socket

import pytest
import redis
from django.db import transaction

from recovery_api.models import Intent
from recovery_api.services.audits import audit_request
from recovery_api.services.intents import intents_sweep
from recovery_api.services.wakeups import intent_wake


@pytest.fixture
def refusing_url():
    """An address of this machine where nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"redis://127.0.0.1:{held.getsockname()[1]}/0"


@pytest.fixture
def own_broker(redis_url, settings):
    """A Redis database of this test's own, emptied afterwards."""
    url = redis_url.rsplit("/", 1)[0] + "/9"
    settings.REDIS_URL = url
    with redis.Redis.from_url(url) as client:
        client.flushdb()
        yield client
        client.flushdb()


def test_unreachable_broker_is_only_logged(
    pipeline, now, settings, refusing_url, caplog, django_capture_on_commit_callbacks
):
    settings.REDIS_URL = refusing_url
    with caplog.at_level(logging.WARNING), django_capture_on_commit_callbacks(execute=True):
        intent = audit_request(pipeline, actor="on-call", now=now)
    assert Intent.objects.get(id=intent.id).state == "queued"
    assert f"no worker woken for intent {intent.id}" in caplog.text and refusing_url not in caplog.text


def test_sweep_stops_waking_once_the_broker_is_away(pipeline, now, later, settings, refusing_url, caplog):
    intents = [audit_request(pipeline, actor="on-call", now=now, frontier=str(n)) for n in range(3)]
    settings.REDIS_URL = refusing_url
    assert intents_sweep(later(minutes=1)).woken_count == 0
    assert len(caplog.records) == 1 and len(intents) == 3


@pytest.mark.django_db(transaction=True)
def test_worker_is_woken_by_name_after_commit_and_never_for_what_was_rolled_back(pipeline, now, own_broker):
    with transaction.atomic():
        intent = audit_request(pipeline, actor="on-call", now=now)
        assert own_broker.llen("spark") == 0
    with pytest.raises(RuntimeError), transaction.atomic():
        audit_request(pipeline, actor="on-call", now=now)
        raise RuntimeError("rolled back")
    assert own_broker.llen("spark") == 1
    message = json.loads(own_broker.lpop("spark"))
    assert message["headers"]["task"] == "workers.tasks.intent_run"
    assert str(intent.id) in message["headers"]["argsrepr"]


@pytest.mark.django_db(transaction=True)
def test_l7_the_sweep_sends_no_second_wake_up_while_the_first_lies_at_the_broker(pipeline, now, later, own_broker):
    """1,000 queued audits and one worker left 6,627 messages at the broker, by 200 every ten seconds."""
    for number in range(300):
        audit_request(pipeline, actor="on-call", now=now, frontier=str(number))
    assert own_broker.llen("spark") == 300
    assert [intents_sweep(later(seconds=15 * sweep)).woken_count for sweep in range(1, 6)] == [0] * 5
    assert own_broker.llen("spark") == 300


@pytest.mark.django_db(transaction=True)
def test_l7_the_sweep_sends_again_what_the_broker_lost(pipeline, now, later, own_broker):
    for number in range(3):
        audit_request(pipeline, actor="on-call", now=now, frontier=str(number))
    own_broker.lpop("spark")
    assert intents_sweep(later(seconds=5)).woken_count == 1
    own_broker.flushdb()
    assert intents_sweep(later(seconds=15)).woken_count == 3
    assert own_broker.llen("spark") == 3


def test_without_a_broker_nobody_is_woken(settings):
    settings.REDIS_URL = ""
    assert not intent_wake("00000000-0000-0000-0000-000000000000", "audit")
