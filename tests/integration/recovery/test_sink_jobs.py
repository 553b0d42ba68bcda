"""Reading a sink's fence and installing its kit, as short jobs of a worker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from django.utils import timezone
from psycopg.conninfo import conninfo_to_dict

from recovery_api.domain.errors import BadInput, Refused
from recovery_api.models import Event, EventKind, IntentState
from recovery_api.services.ends import sink_create
from recovery_api.services.sink_jobs import sink_install_request, sink_read_request
from tests.integration.recovery.world import World, run, world_make
from workers.runners import intent_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def world(database_factory: Callable[[str], str], tmp_path: Path, transactional_db: None) -> World:
    return world_make(database_factory, tmp_path)


def read(world: World) -> dict:
    world.pipeline.sink.refresh_from_db()
    return run(sink_read_request(world.pipeline.sink, actor="ada", now=timezone.now(), wake=False)).result


def test_reading_shows_the_fence_and_the_claims_and_writes_nothing_at_the_sink(world: World) -> None:
    generation = world.sink().generation_allocate("recoverer", "ada").data["generation"]
    world.sink().claim(generation, {"0": {"position": "1", "ordinal": "0"}})
    before = world.record_fingerprint()
    found = read(world)
    assert (found["counter"], found["fence"], found["standing"]) == ("1", "1", "first seen")
    assert [(claim["generation"], claim["state"]) for claim in found["claims"]] == [("1", "open")]
    assert found["open_claim"]["generation"] == "1"
    assert world.record_fingerprint() == before


def test_reading_a_restored_sink_says_so_and_marks_it(world: World, database_factory: Callable[[str], str]) -> None:
    backup = world.sink_backup(database_factory)
    world.sink().begin(world.sink().generation_allocate("relay", "ada").data["generation"])
    assert read(world)["fence"] == "1"
    world.sink_restore(backup)
    found = read(world)
    assert found["standing"] == "sink restored"
    assert found["remembered"]["fence"] == "1" and found["fence"] == "0"
    world.pipeline.sink.refresh_from_db()
    assert world.pipeline.sink.restored_at is not None


def test_sink_without_a_fence_is_not_read(world: World) -> None:
    options = {"connection": "env:X", "table": "mail", "coordinate": ["id"]}
    plain = sink_create("plain", "postgresql_table", options, actor="ada", now=timezone.now())
    with pytest.raises(Refused, match="has no fence"):
        sink_read_request(plain, actor="ada", now=timezone.now())


def test_kit_is_shown_then_installed_as_whoever_may(database_factory: Callable[[str], str], tmp_path: Path) -> None:
    dsn = database_factory("kit")
    (tmp_path / "admin").write_text(dsn)
    login = f"{conninfo_to_dict(dsn)['dbname']}_app"
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {login}".encode())
    asked = {
        "options": {"connection": "env:NOT_SET_ANYWHERE"},
        "connection": f"file:{tmp_path / 'admin'}",
        "grants": {"recoverer": login},
        "actor": "owner",
        "now": timezone.now(),
        "wake": False,
    }
    shown = run(sink_install_request(is_shown_only=True, **asked)).result
    assert shown["sql"].startswith("BEGIN;") and f'TO "{login}";' in shown["sql"]
    assert not Event.objects.filter(kind=EventKind.SINK_INSTALLED).exists()
    installed = run(sink_install_request(is_shown_only=False, **asked)).result
    assert (installed["installed"], installed["granted"]) == (True, {login: "recoverer"})
    assert Event.objects.get(kind=EventKind.SINK_INSTALLED).actor == "owner"
    again = run(sink_install_request(is_shown_only=False, **asked)).result
    assert again["installed"] is False
    assert Event.objects.filter(kind=EventKind.SINK_INSTALLED).count() == 1


def test_install_by_a_login_that_may_not_fails_with_what_to_do(
    database_factory: Callable[[str], str], tmp_path: Path, transactional_db: None
) -> None:
    (tmp_path / "gone").write_text("host=127.0.0.1 port=1 dbname=x user=y password=z connect_timeout=1")
    intent = sink_install_request(
        options={"connection": f"file:{tmp_path / 'missing'}"},
        is_shown_only=True,
        actor="owner",
        now=timezone.now(),
        wake=False,
    )
    intent_run(str(intent.id), "test")
    intent.refresh_from_db()
    assert intent.state == IntentState.FAILED
    assert intent.error["code"] == "access_denied"


def test_what_cannot_be_granted_is_refused_before_anything_is_asked(transactional_db: None) -> None:
    with pytest.raises(BadInput, match="Trades: relay"):
        sink_install_request(
            options={"connection": "env:X"},
            is_shown_only=True,
            grants={"owner": "me"},
            actor="owner",
            now=timezone.now(),
        )
