"""May this be purged, on real PostgreSQL: what forbids it, and what the printed transaction does when it is run."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from django.core.management import call_command
from django.utils import timezone

from recovery_api.models import AcknowledgedOmission, Audit
from recovery_api.selectors.purging import LaneAnswer, purge_check
from recovery_api.services.ends import sink_create, sink_update, source_create
from recovery_api.services.omissions import omission_acknowledge, omission_withdraw
from recovery_api.services.pipelines import pipeline_create
from tests.integration.recovery.world import World, run, world_make


@pytest.fixture
def drawn(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    """Coordinates are one drawn number; rows of another kind are filtered out."""
    more = {"coordinate": ["id"], "coordinate_spelling": "bigint", "grace_seconds": 0, "filter": "op <> 'note'"}
    return world_make(database_factory, tmp_path, source_more=more)


def check(world: World, below: str) -> LaneAnswer:
    (lane,) = purge_check(world.pipeline.source, below).lanes
    return lane


def rows(world: World) -> list[str]:
    with psycopg.connect(world.source_dsn) as connection:
        return [key for (key,) in connection.execute('SELECT "key" FROM outbox ORDER BY tx, id')]


def deliver_drawn(world: World, keys: list[str]) -> None:
    """As `World.deliver`, at coordinates of one number."""
    batch = world.batch(keys)
    numbers = batch["ordinal"]
    at = batch.schema.get_field_index
    batch = batch.set_column(at("position"), "position", numbers)
    batch = batch.set_column(at("ordinal"), "ordinal", pa.array([0] * batch.num_rows, pa.int64()))
    world.sink().deliver(0, batch)


def run_transaction(world: World, text: str) -> None:
    with psycopg.connect(world.source_dsn, autocommit=True) as connection:
        connection.execute(text)  # type: ignore[call-overload]  # as psql runs it: text, no parameters


def test_what_every_pipeline_has_delivered_may_go_and_the_transaction_deletes_it(world: World) -> None:
    world.commit(["a", "b"])
    world.deliver(["a", "b"])
    below = world.coordinate("b")
    world.audit()
    found = check(world, below)
    assert (found.answer, found.highest, found.counted) == ("yes", below, 2), found.said
    world.commit(["c"])
    run_transaction(world, found.transaction)
    assert rows(world) == ["b", "c"], "the newest that was counted stays, and shows that nothing newer went"
    world.deliver(["c"])
    audit = world.audit()
    assert audit.status == "exactly_once", audit.says


def test_a_late_row_makes_the_transaction_roll_back(world: World) -> None:
    world.commit(["a", "b"])
    world.deliver(["a", "b"])
    world.audit()
    found = check(world, world.coordinate("b"))
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute(
            'INSERT INTO outbox (tx, id, "key", content) OVERRIDING SYSTEM VALUE SELECT min(tx), 0, %s, %s FROM outbox',
            ["late", "{}"],
        )
    with pytest.raises(psycopg.errors.RaiseException, match="Nothing was deleted"):
        run_transaction(world, found.transaction)
    assert sorted(rows(world)) == ["a", "b", "late"]


def test_a_row_in_the_place_of_another_makes_it_roll_back_though_their_number_is_the_same(drawn: World) -> None:
    drawn.commit(["a", "b", "c"])
    deliver_drawn(drawn, ["a", "b", "c"])
    drawn.audit(is_safe=False)
    with psycopg.connect(drawn.source_dsn) as connection:
        connection.execute("DELETE FROM outbox WHERE id = 1")
        connection.execute(
            'INSERT INTO outbox (id, "key", content) OVERRIDING SYSTEM VALUE VALUES (-7, %s, %s)', ["x", "{}"]
        )
    found = check(drawn, "3")
    assert found.counted == 3
    with pytest.raises(psycopg.errors.RaiseException, match="3 rows lie at or below 3"):
        run_transaction(drawn, found.transaction)
    assert len(rows(drawn)) == 3


def test_what_is_lost_forbids_it_until_it_is_acknowledged_and_again_once_that_is_withdrawn(world: World) -> None:
    for key in ("a", "b", "c"):
        world.commit([key])
    world.deliver(["a", "c"])
    world.audit(world.coordinate("a"))
    world.audit()
    below = world.coordinate("c")
    found = check(world, below)
    assert found.answer == "no" and f"Event {world.coordinate('b')} is lost." in found.said[0].says
    assert (found.highest, found.counted) == (world.coordinate("a"), 1), "up to there an audit counted, and it may go"
    now = timezone.now()
    omission_acknowledge(world.pipeline, world.coordinate("b"), reason="poison", actor="ada", now=now)
    assert check(world, below).answer == "yes"
    world.audit()
    assert check(world, below).answer == "yes"
    omission_withdraw(world.pipeline, world.coordinate("b"), actor="ada", now=timezone.now())
    assert check(world, below).answer == "no"


def test_one_that_ended_by_itself_forbids_it_again(world: World) -> None:
    world.commit(["a"])
    now = timezone.now()
    omission_acknowledge(
        world.pipeline, world.coordinate("a"), reason="x", actor="ada", now=now, until=now + dt.timedelta(hours=1)
    )
    world.audit()
    assert check(world, world.coordinate("a")).answer == "yes"
    past = {"acknowledged_at": now - dt.timedelta(hours=2), "until": now - dt.timedelta(seconds=1)}
    AcknowledgedOmission.objects.update(**past)
    assert check(world, world.coordinate("a")).answer == "no"


def test_an_open_plan_forbids_what_it_would_send_and_its_recovery_lets_it_go(world: World) -> None:
    world.commit(["a", "b"])
    world.deliver(["a"])
    plan = world.plan()
    found = check(world, world.coordinate("b"))
    assert found.answer == "no"
    recovery = world.request(world.approve(plan))
    assert check(world, world.coordinate("b")).answer == "no"
    run(recovery.intents.get())
    assert check(world, world.coordinate("b")).answer == "yes"


def test_without_an_audit_that_reached_it_or_with_a_stale_or_void_one_it_is_unknown(world: World) -> None:
    world.commit(["a"])
    world.deliver(["a"])
    below = world.coordinate("a")
    assert check(world, below).answer == "unknown"
    world.audit()
    assert check(world, below).answer == "yes"
    past = timezone.now() - dt.timedelta(hours=1)
    Audit.objects.update(record_read_at=past)
    found = check(world, below)
    assert found.answer == "unknown" and "stale" in found.said[0].says and found.highest is None
    Audit.objects.update(record_read_at=timezone.now(), void_since=timezone.now())
    assert check(world, below).answer == "unknown"


def test_every_active_pipeline_is_asked_and_of_none_nothing_is_known(world: World) -> None:
    world.commit(["a"])
    world.deliver(["a"])
    below = world.coordinate("a")
    world.audit()
    now = timezone.now()
    options = {**world.sink_options, "schema": "second"}
    sink = sink_create("second", "postgresql_kit", options, actor="ada", now=now)
    other = pipeline_create("second", world.pipeline.source, sink, actor="ada", now=now)
    found = check(world, below)
    assert (found.answer, [one.answer for one in found.said]) == ("unknown", ["yes", "unknown"])
    assert found.highest is None and found.transaction == ""
    other.retired_at = now
    other.save()
    assert check(world, below).answer == "yes"
    lonely = source_create("lonely", "postgresql_outbox", world.source_options, actor="ada", now=now)
    (lane,) = purge_check(lonely, below).lanes
    assert lane.answer == "unknown" and "No active pipeline" in lane.said[0].says


def test_a_sink_that_may_be_restored_keeps_the_rows_until_an_audit_is_as_old(world: World) -> None:
    world.commit(["a"])
    world.deliver(["a"])
    below = world.coordinate("a")
    world.audit()
    sink = sink_update(
        world.pipeline.sink, {**world.sink_options, "restore_window_seconds": 600}, actor="ada", now=timezone.now()
    )
    world.pipeline.sink = sink
    found = check(world, below)
    assert found.answer == "no" and found.said[0].until is not None
    Audit.objects.update(record_read_at=timezone.now() - dt.timedelta(minutes=11))
    assert check(world, below).answer == "yes", "stale only after 15 minutes"


def test_rows_that_the_filter_leaves_out_stay(drawn: World) -> None:
    drawn.commit(["a"])
    with psycopg.connect(drawn.source_dsn) as connection:
        connection.execute("INSERT INTO outbox (op, \"key\", content) VALUES ('note', 'n', '{}')")
    drawn.commit(["b"])
    deliver_drawn(drawn, ["a", "b"])
    drawn.audit(is_safe=False)
    found = check(drawn, "3")
    assert (found.answer, found.counted) == ("yes", 2)
    run_transaction(drawn, found.transaction)
    assert rows(drawn) == ["n", "b"]


def test_the_command_exits_by_the_answer_and_waits_no_longer_than_it_is_told(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.commit(["a"])
    below = world.coordinate("a")

    def exits(*more: str) -> int:
        try:
            call_command("purge_check", "orders", "--below", below, *more, stderr=io.StringIO())
        except SystemExit as ended:
            return int(ended.code or 0)
        return 0

    assert exits() == 3
    world.audit()
    assert exits("--wait-until-safe", "--timeout", "0") == 1
    world.deliver(["a"])
    world.audit()
    capsys.readouterr()
    assert exits("--wait-until-safe") == 0
    assert f"Highest coordinate that may go: {below}" in capsys.readouterr().out
    assert exits("--sql") == 0
    run_transaction(world, capsys.readouterr().out)
    assert rows(world) == ["a"]
