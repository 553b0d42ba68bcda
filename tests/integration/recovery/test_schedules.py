"""Left alone: a real pipeline that is audited by itself, on real PostgreSQL and without Spark, as every face shows it.

Time passes by moving everything that the control database remembers into the past; nothing waits.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db.models import F
from django.test import Client
from django.utils import timezone

from recovery_api.domain.schedules import ACTOR
from recovery_api.models import Audit, EvidencePlace, Intent, IntentState, Schedule
from recovery_api.selectors.clock import now_get
from recovery_api.services.tokens import token_create
from tests.integration.recovery.world import OUTBOX, World, world_make
from workers.presence import sweep
from workers.runners import intent_run

WINDOW = timedelta(minutes=10)
PERIOD = timedelta(hours=1)
OPTIONS: dict[str, Any] = {
    "audit_every_seconds": 3600,
    "stale_after_seconds": 7200,
    "in_flight_seconds": 600,
    "acceptance_sla_seconds": 5400,
    "owner": "team mail",
}


@pytest.fixture
def world(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, settings: Any) -> World:
    settings.SECURE_SSL_REDIRECT = False
    return world_make(database_factory, tmp_path, **OPTIONS)


def passes(by: timedelta) -> None:
    """The control database's clock goes on by so much, as seen from everything that it remembers."""
    moments = ("record_read_at", "started_at", "finished_at")
    Audit.objects.update(**{name: F(name) - by for name in moments})
    moments = ("created_at", "finished_at", "taken_at")
    Intent.objects.update(**{name: F(name) - by for name in moments})
    for row in Schedule.objects.all():
        for name in ("next_due_at", "next_full_at", "due_at", "last_due_at", "waiting_since"):
            moment = getattr(row, name)
            setattr(row, name, moment and moment - by)
        row.pins = [{**pin, "at": _earlier(pin["at"], by)} for pin in row.pins]
        row.waiting = {lane: {**one, "since": _earlier(one["since"], by)} for lane, one in row.waiting.items()}
        row.save()


def _earlier(moment: str, by: timedelta) -> str:
    return (datetime.fromisoformat(moment) - by).isoformat()


def work(world: World) -> None:
    """A worker's sweep, and everything that is queued then."""
    world.until_safe()
    sweep(now_get())
    for intent in Intent.objects.filter(state=IntentState.QUEUED):
        assert intent.created_by == ACTOR
        intent_run(str(intent.id), "worker")
        intent.refresh_from_db()
        assert intent.state == IntentState.DONE, intent.error


def begins(world: World) -> None:
    """Until the first scheduled verdict: the first audit pins a frontier, and a window later it is judged."""
    sweep(now_get())
    passes(4 * PERIOD)
    work(world)
    assert not Audit.objects.exists()
    passes(WINDOW)
    work(world)
    assert Audit.objects.count() == 1


def told(world: World) -> dict[str, Any]:
    """What REST says, once page and command were seen to say the same."""
    root = User.objects.filter(username="root").first() or User.objects.create_superuser("root")
    _, token = token_create(
        root, f"t{timezone.now().timestamp()}", ["viewer"], held=["viewer"], actor="root", now=timezone.now()
    )
    name, client = world.pipeline.name, Client()
    status: dict[str, Any] = client.get(
        f"/api/v1/pipelines/{name}/status", headers={"Authorization": f"Bearer {token}"}
    ).json()
    client.force_login(root)
    for path in (f"/pipelines/{name}/", "/"):
        page = " ".join(client.get(path).content.decode().split())
        assert status["status"].replace("_", " ") in page, path
        assert status["says"].split(";")[0][:60] in page, path
    page = " ".join(client.get(f"/pipelines/{name}/").content.decode().split())
    assert status["schedule"]["says"] in page and "team mail" in page
    assert status["schedule"]["waiting_says"].partition(" at least ")[0] in page
    if status["suspected"] not in (None, "0"):
        some = "event was" if status["suspected"] == "1" else "events were"
        assert f"{status['suspected']} newer {some} not accepted yet" in page
    out = StringIO()
    call_command("pipelines", "show", name, "--json", stdout=out)
    row = json.loads(out.getvalue().splitlines()[-1])["status"]
    assert (row["status"], row["says"], row["schedule"]["says"]) == (
        status["status"],
        status["says"],
        status["schedule"]["says"],
    )
    out = StringIO()
    call_command("schedules", stdout=out)
    assert name in out.getvalue() and status["schedule"]["says"] in out.getvalue()
    return status


def test_u12_left_alone_with_everything_well_it_stays_exactly_once_for_a_week(world: World) -> None:
    """Every four hours something is delivered, and something newer is still on its way when the audit looks."""
    world.pipeline.options = {**OPTIONS, "audit_every_seconds": 4 * 3600, "stale_after_seconds": 8 * 3600}
    world.pipeline.save()
    world.commit(["first"])
    world.deliver(["first"])
    begins(world)
    pending = ["first"]
    for turn in range(1, 7 * 6):
        world.commit([f"a{turn}", f"b{turn}"])
        world.deliver([*pending, f"a{turn}"])
        pending = [f"b{turn}"]
        passes(4 * PERIOD)
        work(world)
        if turn % 6 == 0 or turn < 3:
            status = told(world)
            assert (status["status"], status["suspected"]) == ("exactly_once", "1"), (turn, status["says"])
            assert not status["schedule"]["is_past_sla"]
    assert set(Audit.objects.values_list("status", flat=True)) == {"exactly_once"}
    assert Audit.objects.count() < 10, "what said nothing new is kept for a day"
    assert EvidencePlace.objects.filter(released_at__isnull=True).count() == Audit.objects.count()


def test_u12_left_alone_with_its_relay_stopped_it_goes_from_exactly_once_to_owed(world: World) -> None:
    world.commit(["k0", "k1"])
    world.deliver(["k0", "k1"])
    begins(world)
    assert told(world)["status"] == "exactly_once"
    world.commit(["k2", "k3", "k4"])  # and no relay
    passes(PERIOD)
    work(world)
    status = told(world)
    assert (status["status"], status["suspected"], status["exit_code"]) == ("exactly_once", "3", 0)
    assert "3 events that were not accepted yet; they may be on their way" in status["says"]
    passes(PERIOD)
    work(world)
    status = told(world)
    assert (status["status"], status["suspected"], status["exit_code"]) == ("owed", "0", 1)
    assert "3 of 5 events" in status["says"]
    waited = status["schedule"]["waiting_says"]
    assert waited.startswith("The oldest event that was not accepted has been waiting for at least 1 h;"), waited
    passes(PERIOD)
    work(world)
    assert "longer than the 90 min promised. Owner: team mail." in told(world)["schedule"]["waiting_says"]
    world.deliver(["k2", "k3", "k4"])
    passes(PERIOD)
    work(world)
    status = told(world)
    assert (status["status"], status["schedule"]["waiting_says"]) == ("exactly_once", "")


def test_u12_nobody_works_and_it_is_overdue_on_every_face(world: World) -> None:
    world.commit(["k0"])
    world.deliver(["k0"])
    begins(world)
    world.pipeline.options = {**OPTIONS, "stale_after_seconds": 10 * 86_400}
    world.pipeline.save()
    passes(3 * PERIOD)
    status = told(world)
    assert status["status"] == "unknown" and status["says"].startswith("Overdue since 20")
    assert status["schedule"]["overdue_since"] is not None and status["exit_code"] == 3
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("schedules", "--overdue", stdout=out)
    assert ended.value.code == 3 and "was not made" in out.getvalue()
    work(world)
    assert told(world)["status"] == "exactly_once"


def test_a_persons_audit_stays_at_the_safe_frontier_and_the_next_scheduled_one_takes_it_back(world: World) -> None:
    world.commit(["k0"])
    world.deliver(["k0"])
    begins(world)
    world.commit(["k1"])
    found = world.audit()
    assert (found.status, found.is_scheduled) == ("owed", False)
    world.deliver(["k1"])
    passes(PERIOD)
    work(world)
    assert told(world)["status"] == "exactly_once"


def test_rc02_a_gap_that_is_open_is_neither_owed_nor_passed_over(world: World) -> None:
    """What commits late, at a lower number than what is accepted, had no window yet: it is suspected first, then owed."""
    world.commit(["k201"])
    world.deliver(["k201"])
    with psycopg.connect(world.source_dsn) as late:
        late.execute("INSERT INTO outbox (\"key\", content) VALUES ('k203', '1')")
        world.commit(["k204"])
        world.deliver(["k204"])
        sweep(now_get())
        passes(PERIOD)
        sweep(now_get())
        _run_queued()
        passes(WINDOW)
        sweep(now_get())
        _run_queued()
        status = told(world)
        assert (status["status"], status["suspected"]) == ("exactly_once", "0")
    passes(PERIOD)  # committed as the connection closed, just before the audit
    work(world)
    status = told(world)
    assert (status["status"], status["suspected"]) == ("exactly_once", "1")
    passes(PERIOD)
    work(world)
    assert told(world)["status"] == "owed"


def test_rc60_a_frontier_of_the_table_before_says_nothing_of_the_one_that_took_its_name(world: World) -> None:
    world.commit([f"k{number}" for number in range(9)])
    world.deliver([f"k{number}" for number in range(9)])
    begins(world)
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("DROP TABLE outbox")
        connection.execute(OUTBOX)
    world.commit(["n0", "n1"])
    passes(PERIOD)
    work(world)
    status = told(world)
    assert status["status"] != "exactly_once"
    newest = Audit.objects.order_by("-finished_at")[0]
    assert newest.status in ("unknown", "hazard") and "before every commit" in newest.says
    assert newest.lost_count == 0  # n0 and n1 had no window yet


def _run_queued() -> None:
    for intent in Intent.objects.filter(state=IntentState.QUEUED):
        intent_run(str(intent.id), "worker")
        intent.refresh_from_db()
        assert intent.state == IntentState.DONE, intent.error
