"""Headroom of a real pipeline: it runs out by itself in seconds, and its clocks, its table and its slot are really read."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.test import Client

from recovery_api.domain.headroom.observed import LEAST_INTERVAL
from recovery_api.domain.headroom.seen import EndSeen, end_seen_from_row
from recovery_api.models import Recovery
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.headroom import PipelineHeadroom, pipeline_headroom
from tests.integration.recovery.world import World, world_make

KEPT = timedelta(seconds=20)
EXPIRED = "unknown (evidence expired)"
ROOM = {"disk_free_bytes": 2**50, "disk_growth_bytes_per_hour": 2**20}


@pytest.fixture
def client(transactional_db: None, settings: Any) -> Client:
    settings.SECURE_SSL_REDIRECT = False
    person = get_user_model().objects.create_user("viewer")
    person.groups.add(Group.objects.get_or_create(name="viewer")[0])
    made = Client()
    made.force_login(person)
    return made


def command(*words: str) -> tuple[Any, int]:
    out, code = io.StringIO(), 0
    try:
        call_command(*words, "--json", stdout=out)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return json.loads(out.getvalue()), code


def told(client: Client, recovery: Recovery) -> tuple[str, str, bool]:
    """Status, headroom and whether the certificate expired, by REST. Command and page are asked later, when it is worse, if
    anything."""
    name = recovery.pipeline.name
    status = client.get(f"/api/v1/pipelines/{name}/status").json()
    is_expired = client.get(f"/api/v1/recoveries/{recovery.pk}/certificate").json()["certificate_is_expired"]
    return status["status"], status["headroom"]["headroom"], is_expired


def test_real_pipeline_left_alone_runs_out_of_headroom_by_itself(
    client: Client, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    """1,000 events are re-driven, one more is committed, and then nobody does anything: rows go after 20 s."""
    world = world_make(database_factory, tmp_path, sink_more=ROOM, margin_seconds=1, operator_delay_seconds=8)
    world.commit(["first"])
    first = world.audit()
    source = world.pipeline.source
    source.options = {**source.options, "retention": "purges", "purges_after_seconds": KEPT.seconds}
    source.save()
    world.commit([f"k{number}" for number in range(1_000)])
    recovery = world.recover()
    issued = recovery.certificate_evidence_until
    assert recovery.outcome == "exactly_once" and issued is not None, recovery.says
    assert issued < now_get() + KEPT, "from what it read, not from when it ended"
    deadline, pause = time.monotonic() + 120, threading.Event()
    while now_get() < first.record_read_at + LEAST_INTERVAL:  # two audits that are nearer show no rate of arrivals
        pause.wait(0.2)
    world.commit(["late"])
    assert world.audit().status == "owed"

    seen = [told(client, recovery)]
    while not (seen[-1][1] == "gone" and seen[-1][2]):
        assert time.monotonic() < deadline, seen
        pause.wait(0.7)
        seen.append(told(client, recovery))
    assert {status for status, _, _ in seen} == {"owed"}, "the record keeps every row, so what is lost stays known"
    words = list(dict.fromkeys(word for _, word, _ in seen))
    assert words == ["ok", "low", "gone"]
    assert [is_expired for _, _, is_expired in seen] == sorted(is_expired for _, _, is_expired in seen)

    body, code = command("headroom", "orders-mail")
    assert (body["headroom"], body["last_start"], code) == ("gone", None, 1)
    body, code = command("recovery", str(recovery.pk))
    assert (body["certificate_is_expired"], body["outcome"], code) == (True, "exactly_once", 3)
    sheet = client.get(f"/recoveries/{recovery.pk}/certificate/").content.decode()
    page = client.get("/pipelines/orders-mail/").content.decode()
    assert EXPIRED in sheet and EXPIRED in page
    recovery.refresh_from_db()
    assert recovery.certificate_evidence_until == issued


def source_run(world: World, statement: LiteralString) -> None:
    with psycopg.connect(world.source_dsn, autocommit=True) as connection:
        connection.execute(statement)


def looked(world: World) -> tuple[EndSeen, PipelineHeadroom]:
    """What a further audit saw of the source, and the headroom with it."""
    seen = end_seen_from_row(world.audit().ends_seen["source"])
    assert seen is not None
    return seen, pipeline_headroom(pipeline_get("orders-mail"), now_get())


def slot_of(found: PipelineHeadroom) -> tuple[str, str]:
    (one,) = [one for one in found.found.terms if one.term.forgets == "slot"]
    return one.term.reach, one.term.says


def test_audit_reads_clocks_and_sizes_and_the_slot_that_is_named(
    client: Client, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    world = world_make(database_factory, tmp_path, source_more={"slot": "relay", **ROOM}, sink_more=ROOM)
    elsewhere = database_factory("elsewhere")
    world.commit(["a"])

    seen, found = looked(world)
    assert seen.clock is not None and abs(seen.clock.ahead) <= seen.clock.error + timedelta(seconds=5)
    assert seen.table_bytes and seen.wal_position
    assert slot_of(found) == ("unknown", "There is no slot relay at the source. Name the one that the relay reads by.")

    with psycopg.connect(elsewhere, autocommit=True) as connection:
        connection.execute("SELECT pg_create_logical_replication_slot('relay', 'pgoutput')")
    _, found = looked(world)
    assert slot_of(found)[0] == "unknown" and "it is somebody else's" in slot_of(found)[1]
    with psycopg.connect(elsewhere, autocommit=True) as connection:
        connection.execute("SELECT pg_drop_replication_slot('relay')")

    source_run(world, "SELECT pg_create_physical_replication_slot('relay')")
    _, found = looked(world)
    assert slot_of(found)[0] == "unknown" and "is a physical one" in slot_of(found)[1]
    source_run(world, "SELECT pg_drop_replication_slot('relay')")

    source_run(world, "SELECT pg_create_logical_replication_slot('relay', 'pgoutput')")
    seen, found = looked(world)
    assert seen.slot is not None and (seen.slot.wal_status, seen.slot.room_bytes) == ("reserved", None)
    assert slot_of(found)[0] == "known" and "keeps WAL without limit, so the disk is what ends" in slot_of(found)[1]

    source_run(world, "SELECT pg_drop_replication_slot('relay')")
    _, found = looked(world)
    assert slot_of(found)[0] == "gone" and found.found.standing == "gone"
    row = client.get("/api/v1/pipelines/orders-mail/headroom").json()
    assert (row["headroom"], row["is_expired"]) == ("gone", True)
    assert command("headroom", "orders-mail")[1] == 1
    assert "The slot relay is gone: somebody dropped it" in client.get("/pipelines/orders-mail/").content.decode()
