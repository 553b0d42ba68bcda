"""Drills of a real kit: what they prove, what they leave, whom they cannot touch, and what a sabotaged kit shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from recovery_api.domain.drills import DrillName, DrillVerdict
from recovery_api.domain.errors import AccessDenied, Refused
from tests.contract.sink_engines import batch_make, kit_make
from workers.connectors.registry import delivery_make
from workers.connectors.sinks.kit import drilling
from workers.connectors.sinks.kit.install import kit_install
from workers.drills.script import drill_play

pytestmark = pytest.mark.slow

LEFT = (
    "SELECT nspname FROM pg_namespace WHERE nspname LIKE %s "
    "UNION ALL SELECT rolname FROM pg_roles WHERE rolname LIKE %s"
)


class Drilled:
    """A kit with one accepted event and an open claim, seen as a superuser."""

    def __init__(self, dsn: str, directory: Path, prepare: str = "", **options: Any) -> None:
        self.dsn, self.directory = dsn, directory
        (directory / "dsn").write_text(dsn)
        self.options: dict[str, Any] = {"connection": f"file:{directory / 'dsn'}", **options}
        self.kit = kit_make(**options)
        self.admin = psycopg.connect(dsn, autocommit=True)
        if prepare:
            self.admin.execute(prepare)  # type: ignore[call-overload]
        kit_install(self.admin, self.kit)
        self.sink = delivery_make("postgresql_kit", self.options)
        self.sink.deliver(0, pa.Table.from_batches([batch_make(1)]))
        generation = int(self.sink.generation_allocate("recoverer", "test").data["generation"])
        assert self.sink.claim(generation, {}).word == "granted"

    def play(self, name: DrillName) -> Any:
        with self.sink.drill_namespace() as namespace:
            return drill_play(name, namespace.sink, namespace.notes)

    def left(self) -> list[str]:
        """Schemas and roles of drills of this database that are there."""
        stem = drilling._stem(self.admin.info.dbname, self.kit.schema)
        return [name for (name,) in self.admin.execute(LEFT, [f"{stem}%", f"{stem}%"]).fetchall()]

    def fingerprint(self) -> str:
        """Everything in the pipeline's schema, its roles and its functions."""
        tables = self.admin.execute(
            "SELECT c.relname, c.relkind = 'S' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relkind IN ('r', 'S') ORDER BY 1",
            [self.kit.schema],
        ).fetchall()
        found: list[Any] = []
        for name, is_sequence in tables:
            what = sql.SQL("last_value, is_called") if is_sequence else sql.SQL("t::text")
            place = sql.Identifier(self.kit.schema, name)
            query = sql.SQL("SELECT {} FROM {} t ORDER BY 1").format(what, place)
            found.append((name, self.admin.execute(query).fetchall()))
        rows = self.admin.execute(
            "SELECT p.oid::regprocedure::text, md5(p.prosrc), p.proacl::text, p.proowner::regrole::text FROM pg_proc p "
            "WHERE p.pronamespace = %s::regnamespace ORDER BY 1",
            [self.kit.schema],
        ).fetchall()
        roles = self.admin.execute(
            "SELECT r.rolname, r.rolcanlogin, ARRAY(SELECT m.member::regrole::text FROM pg_auth_members m "
            "WHERE m.roleid = r.oid ORDER BY 1) FROM pg_roles r WHERE r.rolname LIKE %s ORDER BY 1",
            [f"{self.admin.info.dbname}%"],
        ).fetchall()
        return repr((found, rows, roles))

    def sabotage(self, function: str, find: str, put: str) -> None:
        """What somebody does who thinks a check is in the way: edits the installed function."""
        definition = self.one("SELECT pg_get_functiondef(%s::regproc)", f"{self.kit.schema}.{function}")
        assert find in definition
        self.admin.execute(definition.replace(find, put))

    def one(self, query: str, *arguments: Any) -> Any:
        row = self.admin.execute(query, arguments).fetchone()  # type: ignore[call-overload]
        assert row is not None
        return row[0]


@pytest.fixture
def drilled(database_factory: Callable[[str], str], tmp_path: Path) -> Iterator[Drilled]:
    made = Drilled(database_factory("drilled"), tmp_path)
    yield made
    made.admin.close()


@pytest.fixture
def make(database_factory: Callable[[str], str], tmp_path: Path) -> Iterator[Callable[..., Drilled]]:
    made: list[Drilled] = []

    def one(**options: Any) -> Drilled:
        made.append(Drilled(database_factory("drilled"), tmp_path, **options))
        return made[-1]

    yield one
    for each in made:
        each.admin.close()


def test_every_drill_passes_and_neither_touches_the_record_nor_leaves_anything(drilled: Drilled) -> None:
    before = drilled.fingerprint()
    for name in DrillName:
        result = drilled.play(name)
        assert result.verdict is DrillVerdict.PASSED, result
        assert result.notes == ()
    assert drilled.fingerprint() == before
    assert drilled.left() == []


def test_a_drill_does_not_reach_the_target_its_sink_applies_events_to(make: Callable[..., Drilled]) -> None:
    drilled = make(
        prepare='CREATE TABLE mail ("key" text PRIMARY KEY, content jsonb)',
        target="mail",
        target_key="key",
        target_content="content",
    )
    before = drilled.admin.execute("SELECT * FROM mail ORDER BY 1").fetchall()
    result = drilled.play(DrillName.CRASH_INSIDE_RECOVERY)
    assert result.verdict is DrillVerdict.PASSED, result
    assert result.notes == ()
    assert drilled.admin.execute("SELECT * FROM mail ORDER BY 1").fetchall() == before != []


SABOTAGES = [
    ("admit", "IF generation < fence_now THEN", "IF false THEN", DrillName.IN_FLIGHT_STRAGGLER, "fenced"),
    ("admit", "ELSIF is_recoverers AND EXISTS", "ELSIF false AND EXISTS", DrillName.IN_FLIGHT_STRAGGLER, "paused"),
    (
        "claim_lock",
        "refusal := 'fenced';",
        "refusal := NULL;",
        DrillName.SPLIT_BRAIN_WORKER,
        "fenced",
    ),
    (
        "fire",
        "staged_count <> held.armed_count OR staged_digest <> held.armed_digest",
        "false",
        DrillName.CRASH_INSIDE_RECOVERY,
        "mismatch",
    ),
    (
        "relay_must_wait",
        "c.state = 'open'",
        "c.state = 'never'",
        DrillName.IN_FLIGHT_STRAGGLER,
        "wait",
    ),
]


@pytest.mark.parametrize(("function", "find", "put", "name", "word"), SABOTAGES)
def test_a_sabotaged_kit_fails_with_the_step_and_the_function(
    drilled: Drilled, function: str, find: str, put: str, name: DrillName, word: str
) -> None:
    drilled.sabotage(function, find, put)
    before = drilled.fingerprint()
    result = drilled.play(name)
    assert result.verdict is DrillVerdict.FAILED, result
    assert word in result.says and not result.steps[-1]["holds"]
    assert any(function in note for note in result.notes)
    assert drilled.fingerprint() == before
    assert drilled.left() == []


def test_a_function_changed_to_write_to_the_pipelines_own_record_is_refused_there(drilled: Drilled) -> None:
    drilled.sabotage("fence_raise", "BEGIN\n", "BEGIN\n    UPDATE fencepost . standing SET fence = fence + 100;\n")
    before = drilled.fingerprint()
    result = drilled.play(DrillName.CHECKPOINT_CRASH)
    assert result.verdict is DrillVerdict.FAILED and "SQLSTATE 42501" in result.says, result
    assert drilled.fingerprint() == before


def test_a_drill_in_the_pipelines_own_schema_or_in_any_that_exists_is_refused(drilled: Drilled) -> None:
    before = drilled.fingerprint()
    with pytest.raises(Refused, match="the pipeline's own record"):
        drilling.namespace_make(drilled.admin, drilled.kit, drilled.kit.schema)
    with pytest.raises(Refused, match="exists already"):
        drilling.namespace_make(drilled.admin, drilled.kit, "public")
    assert drilled.fingerprint() == before


def test_the_next_drill_takes_away_what_a_crashed_one_left_and_nothing_else(drilled: Drilled) -> None:
    stem = drilling._stem(drilled.admin.info.dbname, drilled.kit.schema)
    drilling.namespace_make(drilled.admin, drilled.kit, f"{stem}_0123abcd")  # and dies
    drilled.admin.execute(f'CREATE SCHEMA "{stem}_somebody_else"')
    drilled.admin.execute(f'CREATE SCHEMA "{stem}_11111111"')  # no mark: somebody's own
    assert len(drilled.left()) == 7
    assert drilled.play(DrillName.CHECKPOINT_CRASH).verdict is DrillVerdict.PASSED
    assert sorted(drilled.left()) == [f"{stem}_11111111", f"{stem}_somebody_else"]


@pytest.fixture
def weak(drilled: Drilled) -> Iterator[str]:
    """A login that recovers through the kit and may make nothing."""
    login = f"{drilled.admin.info.dbname}_weak"
    drilled.admin.execute(
        sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'weak' IN ROLE {}").format(
            sql.Identifier(login), sql.Identifier(f"{drilled.admin.info.dbname}_fencepost_recoverer")
        )
    )
    yield make_conninfo(drilled.dsn, user=login, password="weak")


def test_a_login_that_may_make_no_namespace_is_told_what_to_grant(drilled: Drilled, weak: str) -> None:
    (drilled.directory / "dsn").write_text(weak)
    with pytest.raises(AccessDenied) as refused:
        drilled.play(DrillName.CHECKPOINT_CRASH)
    assert "GRANT CREATE ON DATABASE" in str(refused.value) and "CREATEROLE" in str(refused.value)
    assert "drill_connection" in str(refused.value)
    (drilled.directory / "stronger").write_text(drilled.dsn)
    options = {**drilled.options, "drill_connection": f"file:{drilled.directory / 'stronger'}"}
    drilled.sink = delivery_make("postgresql_kit", options)
    assert drilled.play(DrillName.CHECKPOINT_CRASH).verdict is DrillVerdict.PASSED


def test_a_login_with_just_the_named_grants_can_drill(drilled: Drilled, weak: str) -> None:
    login = f"{drilled.admin.info.dbname}_weak"
    drilled.admin.execute(f'GRANT CREATE ON DATABASE "{drilled.admin.info.dbname}" TO "{login}"')
    drilled.admin.execute(f'ALTER ROLE "{login}" CREATEROLE')
    (drilled.directory / "dsn").write_text(weak)
    before = drilled.fingerprint()
    for name in (DrillName.SPLIT_BRAIN_WORKER, DrillName.CHECKPOINT_CRASH):
        result = drilled.play(name)
        assert result.verdict is DrillVerdict.PASSED, result
    assert (drilled.fingerprint(), drilled.left()) == (before, [])
