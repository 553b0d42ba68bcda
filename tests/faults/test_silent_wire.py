"""L1: a wire that swallows packets without a reset, anywhere in a recovery: the recovery ends by itself, and right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recovery_api.domain.errors import NoAnswer
from recovery_api.models import Intent, IntentState, RecoveryOutcome
from recovery_api.postgresql.base import DatabaseWrapper
from tests.faults.proxy import Proxy, Wire
from tests.integration.recovery.world import World, world_make
from workers.runners import intent_run

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(180)]

CLAIM, FIRE, COMMIT = rb'"fencepost"\.claim(_open)?\(', rb'"fencepost"\.fire\(', b"COMMIT"
RECORD = rb'FROM "fencepost"\.accepted a WHERE'


@pytest.fixture
def proxy(postgres_admin_dsn: str) -> Iterator[Proxy]:
    parts = conninfo_to_dict(postgres_admin_dsn)
    with Proxy(str(parts["host"]), int(str(parts["port"]))) as proxy:
        yield proxy


@pytest.fixture
def world(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, spark: Any, proxy: Proxy
) -> World:
    """The product reaches the sink through the proxy; the test looks at it without one."""
    made = world_make(database_factory, tmp_path, sink_more={"answer_timeout_seconds": 2})
    (tmp_path / "sink.dsn").write_text(make_conninfo(made.sink_dsn, host="127.0.0.1", port=proxy.port))
    return made


def ended(intent: Intent) -> list[str]:
    """Runs the intent until it is done; the codes of what it was put off for."""
    codes: list[str] = []
    while intent.state != IntentState.DONE:
        assert len(codes) < 6, intent.error
        Intent.objects.filter(id=intent.id).update(not_before=None)
        intent_run(str(intent.id), "test")
        intent.refresh_from_db()
        if intent.state != IntentState.DONE:
            assert intent.state == IntentState.QUEUED, intent.error
            codes.append(intent.error["code"])
    return codes


@pytest.mark.parametrize(
    ("wire", "after", "is_for_all"),
    [
        pytest.param(Wire.REQUEST_SWALLOWED, (CLAIM,), False, id="the_claim"),
        pytest.param(Wire.REPLY_SWALLOWED, (CLAIM, COMMIT), True, id="the_claims_reply_and_every_connection"),
        pytest.param(Wire.REPLY_SWALLOWED, (RECORD,), False, id="the_records_read"),
        pytest.param(Wire.REQUEST_SWALLOWED, (FIRE, COMMIT), False, id="the_fires_commit"),
        pytest.param(Wire.REQUEST_SWALLOWED, (FIRE, COMMIT), True, id="the_fires_commit_and_every_connection"),
        pytest.param(Wire.REPLY_SWALLOWED, (FIRE, COMMIT), False, id="the_fires_commits_reply"),
    ],
)
def test_l1_a_recovery_ends_by_itself_whatever_a_silent_wire_swallows(
    world: World, proxy: Proxy, wire: Wire, after: tuple[bytes, ...], is_for_all: bool
) -> None:
    world.commit(["e1", "e2", "e3"])
    world.deliver(["e2"])
    recovery = world.request(world.approve(world.plan()))
    broken = proxy.break_at(wire, *after, is_for_all=is_for_all)
    intent = recovery.intents.get()
    intent_run(str(intent.id), "test")
    intent.refresh_from_db()
    assert broken.came.is_set(), "the wire was never broken"
    proxy.mend()
    assert intent.error is not None and intent.error["code"] == NoAnswer.code, intent.error
    ended(intent)
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 2), recovery.says
    assert sorted(world.accepted_keys()) == ["e1", "e2", "e3"]


def test_l1_a_cut_reply_of_the_fires_commit_is_settled(world: World, proxy: Proxy) -> None:
    world.commit(["e1", "e2"])
    recovery = world.request(world.approve(world.plan()))
    broken = proxy.break_at(Wire.REPLY_CUT, FIRE, COMMIT)
    ended(recovery.intents.get())
    recovery.refresh_from_db()
    assert broken.came.is_set()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 2), recovery.says


def test_l1_a_backend_at_work_is_waited_for_past_the_deadline(world: World, proxy: Proxy) -> None:
    """Its deadline is two seconds; the fire takes five, at work all the time, and is asked for once."""
    with psycopg.connect(world.sink_dsn) as sink:
        sink.execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " WHILE clock_timestamp() < statement_timestamp() + interval '5 s' LOOP END LOOP; RETURN NULL; END $$"
        )
        sink.execute("CREATE TRIGGER slow AFTER INSERT ON fencepost.accepted EXECUTE FUNCTION slow()")
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    assert ended(recovery.intents.get()) == []
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.generations.count()) == (RecoveryOutcome.EXACTLY_ONCE, 1), recovery.says


def test_l1_a_silent_control_database_is_given_up(transactional_db: None, proxy: Proxy) -> None:
    through = {"HOST": "127.0.0.1", "PORT": proxy.port, "ANSWER_SECONDS": 1.0}
    control = DatabaseWrapper({**connection.settings_dict, **through}, alias="through a proxy")
    try:
        with control.cursor() as cursor:
            cursor.execute("SELECT 1")
        broken = proxy.break_at(Wire.REPLY_SWALLOWED, b"SELECT 2")
        with pytest.raises(OperationalError), control.cursor() as cursor:
            cursor.execute("SELECT 2")
        assert broken.came.is_set()
        control.close_if_unusable_or_obsolete()
        with control.cursor() as cursor:
            cursor.execute("SELECT 3")
            assert cursor.fetchone() == (3,)
    finally:
        control.close()
