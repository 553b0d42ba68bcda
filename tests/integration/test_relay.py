"""The reference relay against a real outbox and the real sink kit."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from recovery_api.domain.kinds import options_parse
from recovery_api.domain.kinds.postgresql_kit import KIND, kit_options
from tests.integration.relay_world import RelayWorld
from workers.connectors.sinks.kit import names_get
from workers.connectors.sinks.kit.install import kit_install
from workers.relay import Position, Spelling
from workers.wire import wire_hold, wire_release

pytestmark = pytest.mark.slow


@pytest.fixture
def relay_world(database_factory: Callable[[str], str], tmp_path: Path) -> Iterator[RelayWorld]:
    """A fresh source and a fresh sink with the kit installed, and a login that is a relay and nothing more."""
    source, sink = database_factory("relay_source"), database_factory("relay_sink")
    name = str(conninfo_to_dict(sink)["dbname"])
    kit = kit_options(options_parse(KIND, {"connection": "env:UNUSED", "schema": RelayWorld.kit_schema}))
    with psycopg.connect(sink) as connection:
        kit_install(connection, kit)
        login = f"{name}_login"
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(login), login))
        connection.execute(
            sql.SQL("GRANT {} TO {}").format(sql.Identifier(names_get(kit, name).relay), sql.Identifier(login))
        )
    with ExitStack() as stack:
        yield RelayWorld(source, sink, login, tmp_path, stack)


@pytest.fixture
def socket_path() -> Iterator[Path]:
    """Short enough for a Unix socket, which pytest's own temporary directories are not everywhere."""
    with tempfile.TemporaryDirectory(prefix="wire-") as directory:
        yield Path(directory) / "wire"


def test_a_naive_cursor_skips_an_id_that_commits_late(relay_world: RelayWorld) -> None:
    relay = relay_world.relay(reading="naive")
    relay.start()
    with relay_world.writer() as slow, relay_world.writer() as fast:
        late = relay_world.insert(slow, "slow")
        early = relay_world.insert(fast, "fast")
        fast.commit()
        assert relay.step().words == {"accepted": 1}
        slow.commit()
    assert late < early
    assert relay.step().said == "empty"
    assert relay.cursor == Position(early)
    assert relay_world.accepted() == [early]


def test_a_safe_reading_of_a_bigint_stays_behind_an_open_insert(relay_world: RelayWorld) -> None:
    relay = relay_world.relay(reading="safe")
    relay.start()
    with relay_world.writer() as slow, relay_world.writer() as fast:
        late = relay_world.insert(slow, "slow")
        early = relay_world.insert(fast, "fast")
        fast.commit()
        assert relay.step().said == "busy"
        slow.commit()
    assert relay.step().words == {"accepted": 2}
    assert relay_world.accepted() == [late, early]


def test_a_safe_reading_by_transaction_id_stops_below_the_oldest_open_one(relay_world: RelayWorld) -> None:
    relay = relay_world.relay(reading="safe", spelling=Spelling.XID8_BIGINT)
    relay.start()
    with relay_world.writer() as before, relay_world.writer() as slow, relay_world.writer() as fast:
        first = relay_world.insert(before, "before")
        before.commit()
        relay_world.insert(slow, "slow")
        relay_world.insert(fast, "fast")
        fast.commit()
        assert relay.step().words == {"accepted": 1}
        assert relay_world.accepted("ordinal") == [first]
        slow.commit()
    assert relay.step().words == {"accepted": 2}
    assert relay.step().said == "empty"


def test_a_naive_reading_by_transaction_id_still_skips_a_transaction_that_commits_late(relay_world: RelayWorld) -> None:
    relay = relay_world.relay(reading="naive", spelling=Spelling.XID8_BIGINT)
    relay.start()
    with relay_world.writer() as slow, relay_world.writer() as fast:
        relay_world.insert(slow, "slow")
        passed = relay_world.insert(fast, "fast")
        fast.commit()
        relay.step()
        slow.commit()
    assert relay.step().said == "empty"
    assert relay_world.accepted("ordinal") == [passed]


def test_content_reaches_the_sink_as_the_source_printed_it(relay_world: RelayWorld) -> None:
    numbers = '{"big": 9223372036854775809.25, "tiny": 0.10, "text": "é\\u0007\\"", "none": null}'
    relay_world.insert_committed("numbers", numbers)
    relay_world.insert_committed("gone", None, op="delete")
    relay = relay_world.relay(reading="naive")
    relay.start()
    assert relay.step().words == {"accepted": 2}
    assert relay_world.digests() == relay_world.digests_expected()


def test_an_event_delivered_twice_is_absorbed(relay_world: RelayWorld) -> None:
    relay_world.insert_committed("one")
    for word in ("accepted", "absorbed"):
        relay = relay_world.relay(reading="naive")
        relay.start()
        relay.cursor = Position(0)
        assert relay.step().words == {word: 1}


def test_a_death_between_acceptance_and_checkpoint_leaves_the_cursor_behind_the_sink(
    relay_world: RelayWorld, tmp_path: Path
) -> None:
    ids = [relay_world.insert_committed(f"order-{number}") for number in range(5)]
    marker = tmp_path / "died"
    dead = relay_world.relay_process("--drain", crash=f"relay.accepted:{marker}")
    assert dead.returncode == -signal.SIGKILL
    assert relay_world.accepted() == ids
    assert relay_world.cursor() < ids[0]

    replaced = relay_world.relay_process("--drain", crash=f"relay.accepted:{marker}")
    assert replaced.returncode == 0, replaced.stderr
    assert '"absorbed": 5' in replaced.stdout
    assert relay_world.accepted() == ids
    assert relay_world.cursor() == ids[-1]


def test_a_relay_asks_no_generation_while_a_claim_is_open(relay_world: RelayWorld) -> None:
    claim = relay_world.claim()
    relay = relay_world.relay()
    assert relay.start() == "wait"
    assert relay.generation is None
    relay_world.release(claim)
    assert relay.start() == "started"
    assert relay.generation is not None and relay.generation > claim


def test_a_fenced_relay_delivers_nothing_keeps_its_cursor_and_asks_again(relay_world: RelayWorld) -> None:
    id_ = relay_world.insert_committed("one")
    relay = relay_world.relay()
    relay.start()
    cursor = relay.cursor
    claim = relay_world.claim()
    assert relay.step().said == "fenced"
    assert (relay.cursor, relay_world.accepted()) == (cursor, [])
    relay_world.release(claim)
    assert relay.start() == "started"
    assert relay.step().words == {"accepted": 1}
    assert relay_world.accepted() == [id_]


def test_an_older_run_of_a_relay_cannot_move_the_newer_runs_cursor(relay_world: RelayWorld) -> None:
    older, newer = relay_world.relay(), relay_world.relay()
    older.start()
    newer.start()
    id_ = relay_world.insert_committed("one")
    newer.step()
    older.cursor = Position(-5)
    older.checkpoint()
    assert relay_world.cursor() == id_


@pytest.mark.parametrize("lower_by", [3, -2], ids=["behind the cursor", "ahead of the cursor"])
def test_a_relay_starts_from_the_hand_over_whatever_its_cursor_says(relay_world: RelayWorld, lower_by: int) -> None:
    ids = [relay_world.insert_committed(f"order-{number}") for number in range(4)]
    relay = relay_world.relay()
    relay.start()
    relay.step()
    relay_world.hand_over(ids[-1] - lower_by)
    relay.start()
    assert relay.cursor == Position(ids[-1] - lower_by)


def test_a_hand_over_moves_a_relay_once(relay_world: RelayWorld) -> None:
    ids = [relay_world.insert_committed(f"order-{number}") for number in range(4)]
    relay_world.hand_over(ids[0])
    relay = relay_world.relay()
    relay.start()
    assert relay.step().words == {"accepted": 3}
    relay.start()
    assert relay.cursor == Position(ids[-1])


def test_one_place_handed_over_by_another_recovery_moves_a_relay_again(relay_world: RelayWorld) -> None:
    """A relay whose cursor ran past what the sink has is put back by each recovery, be the place the same."""
    ids = [relay_world.insert_committed(f"order-{number}") for number in range(4)]
    relay_world.hand_over(ids[0])
    relay = relay_world.relay()
    relay.start()
    relay.cursor = Position(ids[-1])  # a checkpoint before the delivery: three events are lost
    relay.checkpoint()
    relay_world.hand_over(ids[0])
    relay.start()
    assert relay.cursor == Position(ids[0])
    assert relay.step().words == {"accepted": 3}
    relay.start()
    assert relay.cursor == Position(ids[-1])


def test_a_send_held_back_in_flight_is_fenced_when_it_arrives_after_a_claim(
    relay_world: RelayWorld, socket_path: Path
) -> None:
    ids = [relay_world.insert_committed(f"order-{number}") for number in range(5)]
    dead = relay_world.relay_process(
        "--drain", "--hold-back", str(socket_path), crash=f"relay.accepted:{socket_path}.died"
    )
    assert dead.returncode == -signal.SIGKILL
    held = ids[2]
    assert relay_world.accepted() == [id_ for id_ in ids if id_ != held]
    relay_world.claim()
    assert wire_release(socket_path) == "fenced"
    assert held not in relay_world.accepted()


def test_a_send_held_back_in_flight_lands_where_nobody_fenced_it(relay_world: RelayWorld, socket_path: Path) -> None:
    relay = relay_world.relay()
    relay.start()
    assert relay.generation is not None
    event = '{"position": "7", "op": "insert", "key": "late", "content": {"n": 1}}'
    held = wire_hold(socket_path, relay_world.sink_reference, relay_world.settings.door, relay.generation, event)
    assert relay_world.accepted() == []
    assert wire_release(socket_path) == "accepted"
    assert relay_world.accepted() == [7]
    held.finish()
    assert not socket_path.exists()


def test_the_relays_login_can_neither_claim_nor_arm_nor_fire_nor_write_the_record(relay_world: RelayWorld) -> None:
    schema = relay_world.kit_schema
    for statement in (
        f"SELECT {schema}.claim(1, '{{}}')",
        f"SELECT {schema}.arm(1, 0, '0:0:0:0', '{{}}')",
        f"SELECT {schema}.fire(1, 1, '{{}}')",
        f"DELETE FROM {schema}.accepted",
        f"UPDATE {schema}.standing SET fence = 0",
    ):
        with relay_world.sink_as_relay() as sink, pytest.raises(psycopg.errors.InsufficientPrivilege):
            sink.execute(statement)


def test_the_readmes_relay_delivers_starts_from_the_hand_over_and_waits_for_a_claim(relay_world: RelayWorld) -> None:
    text = (Path(__file__).resolve().parent.parent.parent / "README.md").read_text(encoding="utf-8")
    code = compile(text.partition("```python\n")[2].partition("```")[0], "README.md", "exec")
    written: list[int] = []

    def run(*rows: tuple[int, str, str, str, str]) -> list[int]:
        """What it read above which cursor, once it has ended."""
        asked: list[int] = []

        def rows_above(cursor: int) -> Iterator[tuple[int, str, str, str, str]]:
            asked.append(cursor)
            yield from rows

        names: dict[str, Any] = {"SINK": relay_world.sink_dsn, "rows_above": rows_above}
        names |= {"cursor_read": lambda: 0, "cursor_write": written.append}
        try:
            exec(code, names)
        finally:
            names["sink"].close()
        return asked

    assert run((5, "e5", "insert", "a", '{"n": 1.50}'), (6, "e6", "delete", "a", "null")) == [0]
    assert (relay_world.accepted(), written) == ([5, 6], [5, 6])
    relay_world.hand_over(6)
    assert run() == [6]
    claim = relay_world.claim()
    with pytest.raises(SystemExit):
        run((7, "e7", "insert", "b", "{}"))
    relay_world.release(claim)
    assert relay_world.accepted() == [5, 6]
