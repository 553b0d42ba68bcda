"""The demo's world and its incident, without the product: is what it makes what it says?"""

from __future__ import annotations

import io
import secrets
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from recovery_api.domain.errors import Refused
from recovery_api.domain.grounds import Standing
from tests.demo_worlds import world_drop
from tests.pins import pin
from workers.connectors.credentials import credential_resolve
from workers.connectors.registry import delivery_make, source_make
from workers.demo.business import trade
from workers.demo.incident import IMPORTED, SLOW_REQUESTS, highest_committed, incident_make
from workers.demo.narrator import Narrator
from workers.demo.oracle import letters_differ, opinion_form
from workers.demo.recover import Operator
from workers.demo.world import ROLES, World, world_build
from workers.wire import wire_drop

pytestmark = pytest.mark.slow


@pytest.fixture
def prefix(postgres_admin_dsn: str) -> Iterator[str]:
    name = f"t_{secrets.token_hex(3)}_"
    yield name
    world_drop(postgres_admin_dsn, name)


@pytest.fixture
def world(postgres_admin_dsn: str, prefix: str, tmp_path: Path) -> World:
    """Built, with the sink kit installed by the command that users have."""
    world = world_build(postgres_admin_dsn, tmp_path / "credentials", prefix)
    Operator(world, Narrator(io.StringIO())).install()
    return world


def connect(world: World, role: str) -> psycopg.Connection:
    return psycopg.connect(credential_resolve(world.reference(role)), autocommit=True)


def test_a_second_world_is_a_new_incident_beside_the_first(
    world: World, postgres_admin_dsn: str, prefix: str, tmp_path: Path
) -> None:
    trade(world, seed=1, writers=2, transactions=2)
    written = highest_committed(world)
    second = world_build(postgres_admin_dsn, tmp_path / "credentials", prefix)
    assert (world.incident, second.incident) == (1, 2)
    assert highest_committed(second) == 0
    assert highest_committed(world) == written > 0
    assert second.pipeline != world.pipeline


def test_t17_the_demos_ground_is_proven_and_its_target_closed(world: World) -> None:
    """T17: nobody but a superuser can give an outbox row its number, or write a letter past the fence."""
    trade(world, seed=1, writers=1, transactions=2)
    safe = pin(source_make("postgresql_outbox", world.source_options())).lanes["0"].safe
    assert (safe.standing, safe.weakness) == (Standing.PROVEN, None)
    paths = delivery_make("postgresql_kit", world.sink_options()).undisciplined_paths()
    assert {path for path, _, _ in paths} == {"superuser"}


def test_a_database_that_is_not_the_demos_is_left_alone(postgres_admin_dsn: str, prefix: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_admin_dsn, autocommit=True) as cluster:
        cluster.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(f"{prefix}orders")))
    with pytest.raises(Refused, match="is not the demo's"):
        world_build(postgres_admin_dsn, tmp_path, prefix)


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        ("orders_app", "UPDATE {orders}.outbox SET key = 'x'"),
        ("orders_app", "SELECT content FROM {orders}.outbox"),
        ("orders_relay", "INSERT INTO {orders}.outbox (op, key) VALUES ('insert', 'x')"),
        ("orders_relay", "SELECT * FROM {orders}.orders"),
        ("orders_auditor", "DELETE FROM {orders}.outbox"),
        ("orders_auditor", "UPDATE {orders}.relay_cursor SET position = 0"),
        ("mail_relay", "SELECT * FROM {mail}.claim(1, '{{}}')"),
        ("mail_relay", "INSERT INTO {post}.letters (number) VALUES ('x')"),
        ("mail_recoverer", "SELECT {mail}.deliver_many(0, '[]')"),
        ("mail_recoverer", "DELETE FROM {mail}.accepted"),
    ],
)
def test_a_role_may_do_no_more_than_its_trade(world: World, role: str, statement: str) -> None:
    with connect(world, role) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(
            statement.format(orders=world.schema, mail=world.kit_schema, post=world.post_schema)  # type: ignore[arg-type]
        )


def test_no_password_stands_where_others_may_read_it(world: World) -> None:
    files = list(world.credentials.iterdir())
    assert len(files) == len(ROLES)
    assert {file.stat().st_mode & 0o077 for file in files} == {0}


def test_the_incident_leaves_a_skipped_stretch_an_ambiguous_window_and_a_send_in_flight(world: World) -> None:
    with tempfile.TemporaryDirectory(prefix="wire-") as directory:
        wire = Path(directory) / "wire"
        try:
            incident = incident_make(world, wire, seed=5)
        finally:
            wire_drop(wire)
    assert incident.killed_by == signal.SIGKILL
    assert incident.crashed_generation > incident.first_generation > 0
    opinion = opinion_form(world, highest_committed(world))
    behind = [id_ for id_ in opinion.lost if id_ <= incident.cursor]
    assert set(incident.skipped_ids) <= set(behind)
    assert len(incident.skipped_ids) == IMPORTED + SLOW_REQUESTS
    with psycopg.connect(world.mail, autocommit=True) as mail:
        query = sql.SQL("SELECT position FROM {} WHERE generation = %s ORDER BY position").format(
            sql.Identifier(world.kit_schema, "accepted")
        )
        accepted = [row[0] for row in mail.execute(query, (incident.crashed_generation,))]
    assert accepted and min(accepted) > incident.cursor
    in_flight = [id_ for id_ in opinion.lost if min(accepted) < id_ < max(accepted)]
    assert len(in_flight) == 1
    assert (opinion.duplicates, opinion.premature) == (0, 0)


def test_the_opinion_counts_what_is_lost_doubled_and_premature(world: World) -> None:
    trade(world, seed=2, writers=1, transactions=6)
    head = highest_committed(world)
    everything = opinion_form(world, head)
    assert len(everything.lost) == everything.obligations > 3
    record, outbox = sql.Identifier(world.kit_schema, "accepted"), sql.Identifier(world.schema, "outbox")
    with psycopg.connect(world.orders, autocommit=True) as orders, psycopg.connect(world.mail) as mail:
        events = orders.execute(
            sql.SQL("SELECT id, op, key, content::text FROM {} ORDER BY id").format(outbox)
        ).fetchall()
        row = mail.execute(
            sql.SQL("SELECT generation FROM {}.relay_start('test')").format(sql.Identifier(world.kit_schema))
        ).fetchone()
        assert row is not None
        deliver = sql.SQL("SELECT {}.deliver(%s, '0', %s, 0, 'e', %s, %s, %s::jsonb)").format(
            sql.Identifier(world.kit_schema)
        )
        for id_, op, key, content in events:
            mail.execute(deliver, (row[0], id_, op, key, content))
        mail.commit()
        assert opinion_form(world, head).is_exactly_once
        assert letters_differ(world) == []

        mail.execute(deliver, (row[0], head + 1000, "insert", "never committed", "{}"))
        mail.execute(sql.SQL("ALTER TABLE {} DROP CONSTRAINT coordinate_is_accepted_once").format(record))
        columns = "lane, position, ordinal, generation, accepted_at, admitted_in, payload_digest, op, event_id, key"
        copy = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE position = %s")
        mail.execute(copy.format(record, sql.SQL(columns), sql.SQL(columns), record), (events[0][0],))
        mail.commit()
    opinion = opinion_form(world, head)
    assert (opinion.lost, opinion.duplicates, opinion.premature) == ((), 1, 1)
    assert letters_differ(world) == ["never committed"]
