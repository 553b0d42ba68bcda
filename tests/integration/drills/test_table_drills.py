"""Drills of a table without a fence: what they prove on its copy, what they leave, and what they do not touch."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.utils import timezone
from psycopg import sql
from psycopg.conninfo import make_conninfo

from recovery_api.domain.abilities import Ability
from recovery_api.domain.drills import DrillName, DrillVerdict
from recovery_api.domain.errors import AccessDenied
from recovery_api.services.ends import sink_create
from workers.connectors.protocols.delivery import Answer
from workers.connectors.registry import delivery_make
from workers.drills.appended import SCRIPT, drill_append

pytestmark = pytest.mark.slow

UNIQUE = """
CREATE TABLE orders (entry bigserial, id bigint PRIMARY KEY, event uuid, op text, key text, content jsonb);
INSERT INTO orders (id, key) VALUES (1, 'the pipeline''s own');
"""
LOOSE = UNIQUE.replace(" PRIMARY KEY", " NOT NULL")


class Drilled:
    def __init__(self, dsn: str, directory: Path) -> None:
        self.dsn, self.directory = dsn, directory
        self.admin = psycopg.connect(dsn, autocommit=True)
        self.admin.execute("DROP TABLE IF EXISTS orders CASCADE")

    def make(self, table: str) -> None:
        self.admin.execute(table)  # type: ignore[call-overload]

    def sink(self, dsn: str | None = None, **options: Any) -> Any:
        (self.directory / "dsn").write_text(dsn or self.dsn)
        mapped = {"coordinate": ["id"], "event_id": "event", "op": "op", "key": "key", "content": "content"}
        given = {"connection": f"file:{self.directory / 'dsn'}", "table": "orders", "is_effect": True}
        return delivery_make("postgresql_table", {**given, **mapped, **options}, Ability.DRILLED)

    def play(self, name: DrillName, **options: Any) -> Any:
        with self.sink(**options).drill_namespace() as namespace:
            return drill_append(name, namespace)

    def left(self) -> list[str]:
        return [name for (name,) in self.admin.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE '%drill%'")]

    def untouched(self) -> bool:
        found = self.admin.execute("SELECT id, key, (SELECT last_value FROM orders_entry_seq) FROM orders").fetchall()
        return found == [(1, "the pipeline's own", 1)]


@pytest.fixture
def drilled(database_factory: Callable[[str], str], tmp_path: Path) -> Any:
    made = Drilled(database_factory("drilled"), tmp_path)
    yield made
    made.admin.close()


def test_a_table_with_a_constraint_passes_every_drill_and_is_not_touched(drilled: Drilled) -> None:
    drilled.make(UNIQUE)
    for name in DrillName:
        result = drilled.play(name)
        assert result.verdict is DrillVerdict.PASSED, (name, result.says)
        assert len(result.steps) > 3
    assert drilled.left() == [] and drilled.untouched()


def test_without_a_constraint_a_late_send_comes_in_twice_and_the_drill_shows_it(drilled: Drilled) -> None:
    drilled.make(LOOSE)
    for name in SCRIPT:
        result = drilled.play(name)
        if name is DrillName.IN_FLIGHT_STRAGGLER:
            assert result.verdict is DrillVerdict.FAILED
            assert "expected refused, and the sink said accepted" in result.says
        else:
            assert result.verdict is DrillVerdict.PASSED, (name, result.says)


class Careless:
    """A sink whose recoverer sends what it once read, without a lock and without looking again."""

    def __init__(self, namespace: Any) -> None:
        self.hold_snapshot, self.read_accepted = namespace.sink.hold_snapshot, namespace.sink.read_accepted
        self.append_ability, self.driven = namespace.sink.append_ability, namespace.driven

    def append(self, content: Any, wait_seconds: float = 5.0) -> Answer:
        (batch,) = content
        with self.driven.send_held(batch, wait_seconds):
            return Answer("appended", {"landed_count": batch.num_rows})


@pytest.mark.parametrize("name", [DrillName.SPLIT_BRAIN_WORKER, DrillName.CHECKPOINT_CRASH])
def test_a_recoverer_that_does_not_look_again_fails(drilled: Drilled, name: DrillName) -> None:
    drilled.make(LOOSE)
    with drilled.sink().drill_namespace() as namespace:
        result = drill_append(name, replace(namespace, sink=Careless(namespace)))
    assert result.verdict is DrillVerdict.FAILED and "already there" in result.says
    assert drilled.left() == []


def test_triggers_are_left_out_of_the_copy_and_said(drilled: Drilled) -> None:
    drilled.make(UNIQUE)
    drilled.make(
        "CREATE FUNCTION tells() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$told$$; END';"
        "CREATE TRIGGER tells AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION tells()"
    )
    result = drilled.play(DrillName.SPLIT_BRAIN_WORKER)
    assert result.verdict is DrillVerdict.PASSED and any("'tells'" in note for note in result.notes)


def test_a_table_that_takes_no_synthetic_event_proves_nothing(drilled: Drilled) -> None:
    drilled.make(UNIQUE)
    drilled.make("ALTER TABLE orders ADD CHECK (content IS NULL OR content ? 'cents')")
    result = drilled.play(DrillName.SPLIT_BRAIN_WORKER)
    assert result.verdict is DrillVerdict.UNKNOWN and "no synthetic event" in result.says


def test_what_a_crashed_drill_left_is_taken_away_by_the_next(drilled: Drilled) -> None:
    drilled.make(UNIQUE)
    manager = drilled.sink().drill_namespace()
    crashed = manager.__enter__()
    assert drilled.left() == [crashed.name]
    with drilled.sink().drill_namespace() as next_:
        assert drilled.left() == [next_.name]
    assert drilled.left() == []


def test_a_login_that_may_make_no_schema_is_told_what_to_grant(drilled: Drilled) -> None:
    drilled.make(UNIQUE)
    role = f"{drilled.admin.info.dbname}_weak"
    drilled.admin.execute(
        sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'p'; GRANT SELECT ON orders TO {}").format(*[sql.Identifier(role)] * 2)
    )
    weak = drilled.sink(make_conninfo(drilled.dsn, user=role, password="p"))
    with pytest.raises(AccessDenied, match="GRANT CREATE ON DATABASE"), weak.drill_namespace():
        pass
    (drilled.directory / "strong").write_text(drilled.dsn)
    strong = {"dsn": make_conninfo(drilled.dsn, user=role, password="p")}
    result = drilled.play(DrillName.CHECKPOINT_CRASH, **strong, drill_connection=f"file:{drilled.directory / 'strong'}")
    assert result.verdict is DrillVerdict.PASSED


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("table, straggler", [(UNIQUE, "passed"), (LOOSE, "not_applicable")])
def test_the_command_drills_a_table_and_says_what_each_proves(drilled: Drilled, table: str, straggler: str) -> None:
    drilled.make(table)
    drilled.sink()
    mapped = {"coordinate": ["id"], "event_id": "event", "op": "op", "key": "key", "content": "content"}
    given = {"connection": f"file:{drilled.directory / 'dsn'}", "table": "orders", "is_effect": True}
    sink_create("orders", "postgresql_table", {**given, **mapped}, actor="owner", now=timezone.now())
    printed = io.StringIO()
    call_command("drill", "orders", "--here", "--json", stdout=printed)
    body = json.loads(printed.getvalue().strip().splitlines()[-1])
    verdicts = {result["name"]: result["verdict"] for result in body["results"]}
    assert body["state"] == "passed"
    assert verdicts.pop("in_flight_straggler") == straggler
    assert set(verdicts.values()) == {"passed"} and drilled.untouched()
