"""Two hundred lanes in one pipeline: what an audit costs the control database does not grow with them, and what is shown
stays short, the troubled lanes first."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.views.lanes import LISTED_BRIEFLY
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.frontiers import coordinate_as_row
from recovery_api.management.lines import LANES, audit_lines
from recovery_api.models import Audit, Pipeline, Plan
from recovery_api.rows import audit_as_row
from recovery_api.selectors.grounds import proven_by_lane
from recovery_api.selectors.headroom_seen import audits_seen
from recovery_api.selectors.purging import purge_check
from recovery_api.services.audits import audit_request
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.plans import plan_approve, plan_request
from recovery_api.services.recoveries import recovery_request
from tests.integration.recovery.table_at_hand import memory_history_kind
from tests.integration.recovery.world import run
from tests.stateful.memory_source import HISTORIES, batch_of, commit
from workers.connectors.sinks.memory import Memory
from workers.recovery.ends import safe_from_row

MANY, FEW, EVENTS = 200, 10, 5
OWING = {"7": 3, "150": 1}
"""By lane how many of its last events were not accepted."""
DOUBTFUL = "42"
"""Its first event was accepted with another content."""


@pytest.fixture(autouse=True)
def _kind() -> Iterator[None]:
    with memory_history_kind():
        yield


def lanes_make(name: str, count: int) -> Pipeline:
    """A pipeline of so many lanes, each with a few events, all of which arrived but those of OWING and one of DOUBTFUL."""
    now = timezone.now()
    source = source_create(name, "memory_history", {"name": name}, actor="ada", now=now)
    sink = sink_create(f"{name}-sink", "memory", {"name": name, "batch_limit": 1000}, actor="ada", now=now)
    for number in range(count):
        for _ in range(EVENTS):
            commit(name, str(number))
    arrived = [row for row in HISTORIES[name] if row["position"] <= EVENTS - OWING.get(row["lane"], 0)]
    sent = [
        {**row, "content": '{"altered": true}'} if (row["lane"], row["position"]) == (DOUBTFUL, 1) else row
        for row in arrived
    ]
    Memory({"name": name, "batch_limit": 1000}).deliver(0, batch_of(sent))
    return pipeline_create(name, source, sink, actor="ada", now=now)


def audit(pipeline: Pipeline) -> Audit:
    intent = audit_request(pipeline, actor="ada", now=timezone.now(), wake=False)
    run(intent)
    return Audit.objects.get(intent=intent)


def planned(pipeline: Pipeline) -> Plan:
    plan, intent = plan_request(pipeline, actor="ada", now=timezone.now(), wake=False)
    run(intent)
    plan.refresh_from_db()
    return plan


def audited_twice(pipeline: Pipeline) -> tuple[Audit, int]:
    """The second audit, and how many statements it sent to the control database."""
    audit(pipeline)
    with CaptureQueriesContext(connection) as asked:
        found = audit(pipeline)
    return found, len(asked)


def proven_before(newest: Audit) -> datetime:
    """Audits of the days before, the newest first, by how far lane 7 was proven and what else was so. When the furthest that
    counts was first found."""
    said = [
        (EVENTS, "c", {}),
        (EVENTS, "c", {}),
        (EVENTS + 4, "of another catalogue", {}),
        (EVENTS + 4, "c", {"void_since": newest.finished_at}),
        (1, "c", {"late": "1 row"}),
        (EVENTS + 4, "c", {}),  # of before a late row was found
    ]
    found = []
    for days, (reached, catalogue, so) in enumerate(said, 1):
        lanes = json.loads(json.dumps(newest.lanes if days < 3 else {"7": newest.lanes["7"], "8": newest.lanes["8"]}))
        for row in lanes.values():
            at = coordinate_as_row(Coordinate(reached))
            row["safe_frontier"] |= {"standing": "proven", "incarnation": "i", "catalogue": catalogue, "coordinate": at}
        lanes["8"]["late"] = so.get("late")
        found.append(audit_like(newest, newest.finished_at - timedelta(days=days), lanes, so.get("void_since")))
    Audit.objects.bulk_create(found)
    return found[1].finished_at


def audit_like(newest: Audit, at: datetime, lanes: dict[str, Any], void_since: datetime | None) -> Audit:
    fields = {one.attname: getattr(newest, one.attname) for one in Audit._meta.concrete_fields}
    made = {"id": uuid4(), "intent_id": None, "is_standing": False, "void_since": void_since, "lanes": lanes}
    made |= dict.fromkeys(("started_at", "finished_at", "record_read_at"), at)
    return Audit(**fields | made)


def taken(read: Callable[[], Any]) -> tuple[Any, int]:
    """What it gives, and how much it held at most, in bytes."""
    tracemalloc.start()
    try:
        return read(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class Rows(HTMLParser):
    """The row headers of a page's tables, and how many sections it has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.headers: list[str] = []
        self.sections = 0
        self._is_header = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sections += tag == "section"
        self._is_header |= tag == "th" and ("scope", "row") in attrs

    def handle_endtag(self, tag: str) -> None:
        self._is_header &= tag != "th"

    def handle_data(self, data: str) -> None:
        if self._is_header and data.strip():
            self.headers.append(data.strip())


@pytest.fixture
def sign_in(transactional_db: None) -> Callable[..., Client]:
    def make(*roles: str, name: str) -> Client:
        person = get_user_model().objects.create(username=name)
        person.groups.set([Group.objects.get_or_create(name=role)[0] for role in roles])
        client = Client()
        client.force_login(person)
        return client

    return make


@pytest.mark.django_db(transaction=True)
def test_two_hundred_lanes_are_audited_shown_and_recovered(
    settings: Any, tmp_path: Path, sign_in: Callable[..., Client]
) -> None:
    settings.REDIS_URL = ""
    settings.FENCEPOST_EVIDENCE_DIR = tmp_path / "evidence"
    few, many = lanes_make("few", FEW), lanes_make("many", MANY)
    (_, of_few), (found, of_many) = audited_twice(few), audited_twice(many)
    assert of_many <= of_few + 5, "the control database is asked more for each lane"
    first = proven_before(found)
    proven, held = taken(lambda: proven_by_lane(many.source))
    seen, held_too = taken(lambda: audits_seen([many])[many.pk])
    purge, held_as_well = taken(lambda: purge_check(many.source, f"7={EVENTS}"))
    assert max(held, held_too, held_as_well) < 2 * 2**20, "all that audits say of all lanes was held at once"
    assert "Event 7=3 is lost." in purge.lanes[0].said[0].says, "the lowest of three that lane 7 lacks"
    assert len(seen[0].heads) == MANY and seen[0].owed == 5
    assert len(proven) == MANY and {at for _, at in proven.values()} == {first}
    assert safe_from_row(proven["7"][0]).coordinate == Coordinate(EVENTS)
    Audit.objects.filter(intent=None).delete()
    assert (found.status, found.lost_count, found.obligation_count) == ("hazard", 5, MANY * EVENTS)
    assert len(found.lanes) == MANY and len(found.says) < 1_000, found.says
    lines = audit_lines(audit_as_row(found, timezone.now()))
    shown = [line for line in lines if re.match(r"  lane \d+: safe", line)]
    assert len(shown) == LANES and [line.split()[1] for line in shown[:3]] == ["42:", "7:", "150:"]
    assert f"  and {MANY - LANES} more lanes, none of them worse: --json tells all" in lines

    operator = sign_in("operator", name="ada")
    for address, count in ((f"/pipelines/{many.name}/", LISTED_BRIEFLY), (f"/audits/{found.id}/", MANY)):
        response = operator.get(address, secure=True)
        assert response.status_code == 200, address
        page = Rows(response.content.decode())
        listed = [name for name in page.headers if name.isdigit()]
        assert listed[:4] == ["42", "7", "150", "0"] and len(listed) == count
        assert page.sections < 30
        assert "197=5" not in response.content.decode(), "a sentence names each lane"
    status = operator.get(f"/api/v1/pipelines/{many.name}/status", secure=True).json()
    assert status["status"] == "hazard", status
    assert len(operator.get(f"/api/v1/pipelines/{many.name}/frontiers", secure=True).json()["lanes"]) == MANY

    plan = planned(many)
    assert (plan.state, plan.batch_count) == ("ready", 4), plan.says
    plan_approve(plan.id, plan.digest, "grace", timezone.now())
    recovery = recovery_request(plan.id, "the relay crashed", many.name, "ada", now=timezone.now(), wake=False)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.landed_count == 4, recovery.says
    after = audit(many)
    assert (after.status, after.lost_count) == ("hazard", 1)
