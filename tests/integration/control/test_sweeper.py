"""The sweep of a worker's main process: it needs no broker, no beat, and takes no sleeper for a dead one."""

from __future__ import annotations

from recovery_api.models import IntentState, Worker
from recovery_api.services.audits import audit_request
from recovery_api.services.intents import intent_heartbeat, intent_take
from recovery_api.services.workers import worker_say_present, workers_forget
from workers.presence import sweep


def test_l1_a_machine_that_slept_offers_nothing_before_the_living_could_beat(pipeline, now, later):
    """A laptop's sleep: every heartbeat is hours old at once, and every worker alive."""
    alive, dead = (audit_request(pipeline, actor="ada", now=now, frontier=str(n)) for n in (1, 2))
    held = intent_take(alive.id, "host/1", now)
    intent_take(dead.id, "host/2", now)
    sweep(later(hours=8), has_slept=True)
    assert set(type(alive).objects.values_list("state", flat=True)) == {IntentState.TAKEN}
    intent_heartbeat(held, later(hours=8, seconds=5))
    sweep(later(hours=8, seconds=10))
    alive.refresh_from_db()
    dead.refresh_from_db()
    assert (alive.state, dead.state) == (IntentState.TAKEN, IntentState.QUEUED)


def test_a_worker_killed_long_ago_is_forgotten(db, now, later):
    worker_say_present("host/1", ["spark"], now)
    worker_say_present("host/1", ["spark", "default"], later(seconds=10))
    worker = Worker.objects.get()
    assert (worker.started_at, worker.seen_at) == (now, later(seconds=10))
    assert workers_forget(later(hours=23)) == 0
    assert workers_forget(later(hours=25)) == 1
