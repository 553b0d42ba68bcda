"""May this be purged, on real PostgreSQL: what forbids it, and what the printed transaction does when it is run."""

from __future__ import annotations

import contextlib
import datetime as dt
import html
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from recovery_api.domain.purging import Uncleared
from recovery_api.models import AcknowledgedOmission, Audit, Finding, Plan, PlanState, Schedule
from recovery_api.selectors.purging import LaneAnswer, purge_check
from recovery_api.services.audits import audit_record
from recovery_api.services.ends import sink_create, sink_update, source_create
from recovery_api.services.omissions import omission_acknowledge, omission_withdraw
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.plans import plan_request
from recovery_api.services.tokens import token_create
from tests.integration.recovery.world import World, run, world_make


@pytest.fixture
def drawn(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    """Coordinates are one drawn number; rows of another kind are filtered out."""
    more = {"coordinate": ["id"], "coordinate_spelling": "bigint", "grace_seconds": 0, "filter": "op <> 'note'"}
    return world_make(database_factory, tmp_path, source_more=more)


def check(world: World, below: str) -> LaneAnswer:
    (lane,) = purge_check(world.pipeline.source, below).lanes
    return lane


def told(world: World, below: str, settings: Any) -> tuple[str, str, str | None]:
    """Answer, ground and *until* of the only pipeline, once page, REST and command were seen to say the same."""
    settings.SECURE_SSL_REDIRECT = False
    root = User.objects.filter(username="root").first() or User.objects.create_superuser("root")
    now = timezone.now()
    _, token = token_create(root, f"t{now.timestamp()}", ["viewer"], held=["viewer"], actor="root", now=now)
    client = Client()
    asked = client.get(
        "/api/v1/sources/orders/purge-check", {"below": below}, headers={"Authorization": f"Bearer {token}"}
    ).json()
    (said,) = asked["lanes"][0]["pipelines"]
    client.force_login(root)
    page = " ".join(client.get("/sources/orders/", {"below": below}).content.decode().split())
    out = io.StringIO()
    with contextlib.suppress(SystemExit):
        call_command("purge_check", "orders", "--below", below, stdout=out)
    for text in (said["says"], said["remedy"], asked["lanes"][0]["uncleared_says"]):
        assert text in html.unescape(page) and text in out.getvalue(), text
    assert f"go? {said['answer']}" in out.getvalue()
    return said["answer"], said["says"], said["until"]


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
    assert found.uncleared == Uncleared(2, 2), "RC-76: b is lost, and c lies above it"
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


def test_an_event_that_the_ledger_has_open_forbids_it_on_every_face(world: World, settings: Any) -> None:
    """Whatever the audits' own rows say: the ledger remembers it until something settles it."""
    for key in ("a", "b"):
        world.commit([key])
    world.deliver(["a"])
    audit = world.audit()
    below, first = world.coordinate("b"), world.coordinate("a")
    omission_acknowledge(world.pipeline, below, reason="poison", actor="ada", now=timezone.now())
    Finding.objects.filter(audit=audit).delete()
    Audit.objects.filter(pk=audit.pk).update(groups=[], listed_count=0, evidence_rows=0)
    assert check(world, below).answer == "yes"
    omission_withdraw(world.pipeline, below, actor="ada", now=timezone.now())
    answer, says, until = told(world, below, settings)
    assert (answer, until) == ("no", None)
    (event_id,) = world.batch(["b"])["event_id"].to_pylist()
    assert says.startswith(f"Event {below} (event id {event_id}) is owed: an audit saw it at ")
    assert check(world, first).answer == "yes"
    world.deliver(["b"])
    world.audit()
    assert check(world, below).answer == "yes"


def test_a_plan_that_has_not_ended_forbids_what_it_sends_though_it_arrived_by_itself(
    world: World, settings: Any
) -> None:
    for key in ("a", "b", "c"):
        world.commit([key])
    world.deliver(["a"])
    plan = world.plan()
    world.deliver(["b", "c"])
    assert world.audit().lost_count == 0
    Plan.objects.filter(pk=plan.pk).update(state=PlanState.READY)  # as it stands where nothing made it lapse
    below = world.coordinate("c")
    answer, says, until = told(world, below, settings)
    assert (answer, until) == ("no", None)
    assert says == f"Event {world.coordinate('b')} is still to be sent by plan {plan.pk}."
    assert check(world, world.coordinate("a")).answer == "yes"
    world.approve(plan)
    answer, says, until = told(world, below, settings)
    assert answer == "no" and says.endswith(f"by plan {plan.pk}.")
    plan.refresh_from_db()
    assert plan.approved_at is not None
    assert until == (plan.approved_at + dt.timedelta(days=1)).isoformat()


def test_a_plan_that_is_being_made_forbids_everything_until_it_is_known_what_it_sends(
    world: World, settings: Any
) -> None:
    world.commit(["a"])
    world.deliver(["a"])
    world.audit()
    plan, intent = plan_request(world.pipeline, actor="ada", now=timezone.now(), wake=False)
    below = world.coordinate("a")
    answer, says, _ = told(world, below, settings)
    assert (answer, says) == ("no", f"Plan {plan.pk} is being made: what it sends is not known yet.")
    run(intent)
    assert told(world, below, settings)[0] == "yes"


def test_an_overdue_pipeline_and_one_whose_last_audit_could_not_read_forbid_it(world: World, settings: Any) -> None:
    world.commit(["a"])
    world.deliver(["a"])
    world.audit()
    below, now = world.coordinate("a"), timezone.now()
    assert told(world, below, settings)[0] == "yes"
    Schedule.objects.filter(pipeline=world.pipeline).delete()
    Schedule.objects.create(
        pipeline=world.pipeline, next_due_at=now - dt.timedelta(minutes=14), next_full_at=now, due_at=None
    )
    Audit.objects.update(record_read_at=now - dt.timedelta(minutes=14, seconds=30))
    answer, says, _ = told(world, below, settings)
    assert (answer, says.partition(":")[0]) == ("unknown", "It is overdue")
    audit = world.audit()
    assert told(world, below, settings)[0] == "yes"
    at = timezone.now()
    audit_record(world.pipeline, status="unknown", exit_code=3, now=at, started_at=at, is_full=False, says="denied")
    assert audit.record_read_at < at
    answer, says, _ = told(world, below, settings)
    assert (answer, says) == ("unknown", "Its newest audit could not tell.")


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
    Audit.objects.update(record_read_at=timezone.now(), evidence_until=timezone.now())
    found = check(world, below)
    assert found.answer == "unknown" and "expired at" in found.said[0].says
    Audit.objects.update(evidence_until=None, void_since=timezone.now())
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
