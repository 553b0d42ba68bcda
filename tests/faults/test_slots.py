"""A slot that its server really takes away, because of its size and because nobody reads it: said on every face."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from django.test import Client
from psycopg.conninfo import make_conninfo

from tests.chaos.servers import Server
from tests.integration.recovery.test_headroom import ROOM, client, command, looked, slot_of, source_run
from tests.integration.recovery.world import World, world_make
from workers.embedded.postgres import PostgreSQL

__all__ = ["client"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
SEGMENTS = 4
"""Of WAL, 16 MB each: more than the slot may keep."""


@pytest.fixture
def world(transactional_db: None, tmp_path: Path) -> Iterator[World]:
    """Both ends on a server of their own, whose settings are changed here; the relay's slot is made."""
    home = Path(tempfile.mkdtemp(prefix="fencepost-slots-"))
    home.chmod(0o755)
    server = Server(PostgreSQL, home / "server")
    try:
        server.start()

        def database(hint: str) -> str:
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {hint}".encode())
            return make_conninfo(server.url, dbname=hint)

        made = world_make(database, tmp_path, source_more={"slot": "relay", **ROOM}, sink_more=ROOM)
        made.commit(["a"])
        yield made
    finally:
        server.close()
        shutil.rmtree(home, ignore_errors=True)


def slot_made(world: World, *settings: LiteralString) -> None:
    for statement in (*settings, "SELECT pg_reload_conf()"):
        source_run(world, statement)
    source_run(world, "SELECT pg_create_logical_replication_slot('relay', 'pgoutput')")


def is_gone_everywhere(client: Client, says: str) -> None:
    row = client.get("/api/v1/pipelines/orders-mail/headroom").json()
    assert (row["headroom"], row["is_expired"], row["last_start"]) == ("gone", True, None)
    by_command, code = command("headroom", "orders-mail")
    assert (by_command["headroom"], code) == ("gone", 1)
    assert says in client.get("/pipelines/orders-mail/").content.decode()


def test_a_slot_that_outgrows_its_limit_is_unreserved_then_lost_on_every_face(client: Client, world: World) -> None:
    slot_made(world, "ALTER SYSTEM SET max_slot_wal_keep_size = '16MB'")
    seen, found = looked(world)
    assert seen.slot is not None and seen.slot.wal_status == "reserved"
    assert seen.slot.room_bytes is not None and found.found.standing != "gone"
    for _ in range(SEGMENTS):
        source_run(world, "SELECT pg_logical_emit_message(false, 'filler', 'x')")
        source_run(world, "SELECT pg_switch_wal()")
    seen, found = looked(world)
    assert seen.slot is not None and seen.slot.wal_status == "unreserved"
    assert found.found.standing == "gone" and "is unreserved: the next checkpoint may take its WAL" in slot_of(found)[1]
    source_run(world, "CHECKPOINT")
    seen, found = looked(world)
    assert seen.slot is not None and (seen.slot.wal_status, seen.slot.lost_because) == ("lost", "wal_removed")
    assert slot_of(found)[0] == "gone" and found.found.standing == "gone"
    is_gone_everywhere(client, "The slot relay is lost (wal_removed): the WAL that it kept is gone.")


def test_a_slot_that_nobody_reads_is_invalidated_and_that_was_told_before(client: Client, world: World) -> None:
    slot_made(world, "ALTER SYSTEM SET idle_replication_slot_timeout = '3s'")
    seen, found = looked(world)
    assert seen.slot is not None and seen.slot.idle is not None and seen.slot.idle_limit is not None
    assert seen.slot.idle_limit.total_seconds() == 3
    (idle,) = [one.term for one in found.found.terms if one.term.forgets == "slot_idle"]
    assert idle.expires_at is not None and idle.expires_at <= seen.read_at + seen.slot.idle_limit
    state: Any = (None,)
    for _ in range(100):  # the server looks at each checkpoint
        source_run(world, "CHECKPOINT")
        with psycopg.connect(world.source_dsn) as connection:
            state = connection.execute("SELECT invalidation_reason FROM pg_replication_slots").fetchone()
        if state != (None,):
            break
        threading.Event().wait(0.1)
    assert state == ("idle_timeout",)
    seen, found = looked(world)
    assert slot_of(found)[0] == "gone"
    is_gone_everywhere(client, "The slot relay is lost (idle_timeout): the WAL that it kept is gone.")
