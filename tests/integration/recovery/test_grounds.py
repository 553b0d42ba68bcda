"""What a verdict's ground means over a pipeline's life: remembered while it stands, refuted by a late row."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.models import PlanState, RecoveryOutcome
from recovery_api.services.audits import audit_request
from recovery_api.services.ends import source_update
from tests.integration.recovery.world import World, run, world_make
from workers.faults import Point
from workers.runners import intent_run

NUMBERED = {
    "coordinate": ["id"],
    "coordinate_spelling": "bigint",
    "share_lock": True,
    "lock_timeout_ms": 50,
    "lock_tries": 2,
}


@pytest.fixture
def numbered(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    """The outbox with its number alone as the coordinate, under the share lock; a superuser owns it."""
    world = world_make(database_factory, tmp_path, source_more=NUMBERED)
    source(world, "ALTER TABLE outbox DROP CONSTRAINT outbox_pkey, ADD PRIMARY KEY (id)")
    return world


def source(world: World, text: str) -> None:
    with psycopg.connect(world.source_dsn, autocommit=True) as connection:
        connection.execute(text.encode())


def deliver(world: World, keys: list[str]) -> None:
    """As a relay that reads the outbox by its number."""
    batch = world.batch(keys)
    position = batch.column_names.index("position")
    numbers = batch.set_column(position, batch.schema.field(position), batch["ordinal"])
    ordinal = batch.column_names.index("ordinal")
    zeros = [0] * batch.num_rows
    rows = numbers.set_column(ordinal, batch.schema.field(ordinal), [zeros])
    assert set(world.sink().deliver(0, rows)) == {"accepted"}


def late_row(world: World, number: int, key: str) -> None:
    """What only a superuser can still do: a row below the frontier."""
    source(
        world, f"""INSERT INTO outbox (id, "key", content) OVERRIDING SYSTEM VALUE VALUES ({number}, '{key}', '{{}}')"""
    )


def safe_of(audit: Any) -> dict[str, Any]:
    found: dict[str, Any] = audit.lanes["0"]["safe_frontier"]
    return found


def test_t19_a_frontier_once_proven_stays_proven_while_a_writer_is_open(numbered: World) -> None:
    """T19: one writer holds a transaction open; the frontier proven before is judged, and asked for, and said."""
    numbered.commit(["a"])
    deliver(numbered, ["a"])
    first = numbered.audit(is_safe=False)
    assert (safe_of(first)["standing"], safe_of(first)["says"]) == ("proven", "1")
    with psycopg.connect(numbered.source_dsn) as writer:
        writer.execute("""INSERT INTO outbox ("key", content) VALUES ('open', '{}')""")
        numbered.commit(["c"])
        for frontier in (None, "1"):
            again = numbered.audit(frontier, is_safe=False)
            assert (again.status, safe_of(again)["standing"], safe_of(again)["says"]) == ("exactly_once", "proven", "1")
            assert "Proven before" in safe_of(again)["because"] and "Newer is not safe yet" in safe_of(again)["because"]
            assert safe_of(again)["waits_for"]
        with pytest.raises(AssertionError, match="Waits for"):
            numbered.audit("3", is_safe=False)
        writer.rollback()
    assert safe_of(numbered.audit(is_safe=False))["says"] == "3"


def test_t19_another_catalogue_or_table_is_not_the_one_that_was_proven(numbered: World) -> None:
    options = {**numbered.source_options, "grace_seconds": 1}  # what is assumed from then on waits for its grace
    numbered.pipeline.source = source_update(numbered.pipeline.source, options, actor="ada", now=timezone.now())
    numbered.commit(["a"])
    numbered.audit(is_safe=False)
    role = "t19_" + numbered.source_dsn.rsplit("dbname=", 1)[-1].split()[0][-12:]
    source(numbered, f'CREATE ROLE "{role}"; GRANT INSERT ON outbox TO "{role}"')
    try:
        with psycopg.connect(numbered.source_dsn) as writer:
            writer.execute("""INSERT INTO outbox ("key", content) VALUES ('open', '{}')""")
            intent = audit_request(numbered.pipeline, actor="ada", now=timezone.now(), frontier="1", wake=False)
            intent_run(str(intent.id), "test")
            intent.refresh_from_db()
            assert intent.error["code"] == "frontier_refused"
            writer.rollback()
    finally:
        source(numbered, f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')


def test_t6_a_later_grant_ends_the_proof_of_a_plan_that_waits(numbered: World) -> None:
    """T6: the catalogue's digest is compared at each use."""
    numbered.commit(["a", "b"])
    plan = numbered.approve(numbered.plan())
    assert plan.pins["safe"]["0"]["standing"] == "proven"
    role = "t6_" + numbered.source_dsn.rsplit("dbname=", 1)[-1].split()[0][-12:]
    source(numbered, f'CREATE ROLE "{role}"; GRANT INSERT ON outbox TO "{role}"')
    try:
        recovery = numbered.request(plan)
        run(recovery.intents.get())
        verified = recovery.audits.get()
        assert safe_of(verified)["standing"] == "assumed"
        assert "has changed since" in safe_of(verified)["weakness"]
    finally:
        source(numbered, f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')


def test_t6_a_row_that_commits_after_the_approval_is_named_at_the_verification(
    numbered: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T6: *exactly once*, and then the row commits and is missing: incomplete at f, naming it."""
    numbered.commit(["a"])
    source(numbered, "SELECT nextval('outbox_id_seq')")
    numbered.commit(["c"])
    recovery = numbered.request(numbered.approve(numbered.plan()))
    gate = tmp_path / "gate"
    os.mkfifo(tmp_path / "gate.reached")

    def commit() -> None:
        with (tmp_path / "gate.reached").open("rb"):
            late_row(numbered, 2, "late")
        gate.touch()

    monkeypatch.setenv("FENCEPOST_PAUSE", f"{Point.BEFORE_VERIFY}:{gate}")
    writer = threading.Thread(target=commit)
    writer.start()
    run(recovery.intents.get())
    writer.join()
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.INCOMPLETE
    assert "1 row at or below 3 was committed after the plan was made (2; not at the sink: 2)" in recovery.says
    assert safe_of(recovery.audits.get())["standing"] == "assumed"


def test_t6_a_late_row_voids_what_was_certified_at_or_above_it(numbered: World) -> None:
    numbered.commit(["a"])
    source(numbered, "SELECT nextval('outbox_id_seq')")
    numbered.commit(["c"])
    deliver(numbered, ["a"])
    below = numbered.audit("1", is_safe=False)
    recovery = numbered.recover()
    late_row(numbered, 2, "late")
    found = numbered.audit(is_safe=False)
    assert (found.status, found.lost_count, safe_of(found)["standing"]) == ("owed", 1, "assumed")
    assert "(2; not at the sink: 2)" in found.says
    recovery.refresh_from_db()
    assert recovery.certificate_void_since is not None and "refuted" in recovery.certificate_void_says
    verified = recovery.audits.get()
    assert verified.void_since is not None and "refuted" in verified.void_says
    below.refresh_from_db()
    assert below.void_since is None


def test_t6_a_late_row_that_the_relay_delivered_still_ends_the_proof(numbered: World) -> None:
    numbered.commit(["a"])
    source(numbered, "SELECT nextval('outbox_id_seq')")
    numbered.commit(["c"])
    deliver(numbered, ["a", "c"])
    assert safe_of(numbered.audit(is_safe=False))["standing"] == "proven"
    late_row(numbered, 2, "late")
    deliver(numbered, ["late"])
    found = numbered.audit(is_safe=False)
    assert found.lost_count == 0 and safe_of(found)["standing"] == "assumed"
    assert "Late: 1 row" in found.says and "not at the sink" not in found.says
    again = numbered.audit(is_safe=False)
    assert safe_of(again)["standing"] == "proven"  # anew: the lock was held, and nothing came since


def test_rows_that_retention_dropped_are_not_taken_for_late_ones(numbered: World) -> None:
    numbered.commit(["a", "b", "c"])
    deliver(numbered, ["a", "b", "c"])
    numbered.audit(is_safe=False)
    source(numbered, "DELETE FROM outbox WHERE id = 1; UPDATE outbox SET created_at = now()")
    found = numbered.audit(is_safe=False)
    assert found.lanes["0"]["late"] is None and safe_of(found)["standing"] == "proven"


def test_t5_an_owners_word_is_named_with_who_gave_it(numbered: World) -> None:
    """T5, T6: attested, by whom and when."""
    numbered.commit(["a"])
    role = "t5_" + numbered.source_dsn.rsplit("dbname=", 1)[-1].split()[0][-12:]
    source(numbered, f'CREATE ROLE "{role}"; GRANT INSERT ON outbox TO "{role}"')
    try:
        options = {**numbered.source_options, "numbers_are_drawn_in_insert": True}
        source_update(numbered.pipeline.source, options, actor="grace hopper", now=timezone.now())
        numbered.pipeline.refresh_from_db()
        safe = safe_of(numbered.audit(is_safe=False))
        assert safe["standing"] == "attested"
        assert "The word was given by grace hopper on" in safe["weakness"] and role in safe["weakness"]
    finally:
        source(numbered, f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')


def test_t5_a_gap_is_called_benign_only_where_that_is_proven(numbered: World) -> None:
    """T5: a pooled sequence; the sentence about gaps and the weakness agree."""
    source(numbered, "ALTER SEQUENCE outbox_id_seq CACHE 20")
    options = {**numbered.source_options, "grace_seconds": 0}
    source_update(numbered.pipeline.source, options, actor="ada", now=timezone.now())
    numbered.pipeline.refresh_from_db()
    numbered.commit(["a"])
    numbered.commit(["b"])
    found = numbered.audit(is_safe=False)
    assert safe_of(found)["standing"] == "assumed" and found.lanes["0"]["gaps"] == "19"
    assert "never committed" not in found.says and "which only the ground rules out" in found.says


def test_a_plan_lapses_where_a_late_row_refutes_its_ground(numbered: World) -> None:
    numbered.commit(["a"])
    source(numbered, "SELECT nextval('outbox_id_seq')")
    numbered.commit(["c"])
    plan = numbered.approve(numbered.plan())
    numbered.audit(is_safe=False)
    late_row(numbered, 2, "late")
    numbered.audit(is_safe=False)
    plan.refresh_from_db()
    assert plan.state == PlanState.LAPSED
