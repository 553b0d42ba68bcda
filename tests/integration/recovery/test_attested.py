"""A table without a fence, from its plan to its honest outcome: what is asked, what is refused, what may be said."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recovery_api.domain.errors import BadInput, Refused
from recovery_api.management.lines import audit_lines
from recovery_api.models import Plan, PlanState, RecoveryOutcome
from recovery_api.rows import audit_as_row, plan_as_row, recovery_as_row
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.services.ends import connection_test_request
from recovery_api.services.omissions import omission_acknowledge, omission_withdraw
from tests.integration.recovery.table_world import MAILS, ONLY, UNIQUE, TableWorld, drained, table_world_make
from tests.integration.recovery.world import run

pytestmark = pytest.mark.spark

KEYS = ["e1", "e2", "e3", "e4"]


@pytest.fixture
def make(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, spark: Any
) -> Callable[..., TableWorld]:
    def made(**more: Any) -> TableWorld:
        world = table_world_make(database_factory, tmp_path, **more)
        world.commit(KEYS)
        world.deliver(["e2"])
        return world

    return made


def condition(plan: Plan, name: str) -> dict[str, Any]:
    (found,) = [one for one in plan.conditions if one["name"] == name]
    return dict(found)


def login(world: TableWorld, rights: LiteralString) -> str:
    """The product's login at the sink from now on: a role with these rights on the table. Its name."""
    role = f"login_{secrets.token_hex(4)}"
    with psycopg.connect(world.sink_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'secret'").format(sql.Identifier(role)))
        connection.execute(sql.SQL("GRANT {} ON mails TO {}").format(sql.SQL(rights), sql.Identifier(role)))
    parts = conninfo_to_dict(world.sink_dsn) | {"user": role, "password": "secret"}
    Path(world.sink_options["connection"].removeprefix("file:")).write_text(make_conninfo(**parts))
    return role


def test_t23_a_plan_on_a_table_that_is_only_the_mark_of_an_effect_says_what_is_owed_and_sends_nothing(
    make: Callable[..., TableWorld],
) -> None:
    world = make(sink_more={"is_effect": False})
    plan = world.plan()
    assert plan.state == PlanState.REFUSED
    assert plan.batch["provably missing"] == "3"
    assert (plan.pins["strategy"], plan.pins["promise"]) == ("read_only", "nothing beyond what an audit finds")
    assert "is_effect" in condition(plan, "P2")["says"]
    with pytest.raises(Refused):
        world.approve(plan)
    assert world.accepted_keys() == ["e2"]


def test_what_is_missing_lands_once_and_the_outcome_names_what_was_attested(make: Callable[..., TableWorld]) -> None:
    world = make()
    plan = world.approve(world.plan())
    assert plan.pins["strategy"] == "attested"
    row = plan_as_row(plan)
    assert [one["name"] for one in row["attestations"]] == ["relay-drained", "only-recoverer"]
    assert "given that the relay was stopped" in row["promise"]
    found = condition(plan, "P2")
    assert found["holds"] is None and not found["blocks"] and "attest" in found["says"]
    recovery = world.ask(plan, drained(), ONLY)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN, recovery.says
    assert world.accepted_keys() == KEYS
    assert (recovery.landed_count, recovery.absorbed_count) == (3, 0)
    assert "given" in recovery.says and "only recoverer" in recovery.says and "by ada" in recovery.says
    certificate = recovery.certificate
    assert certificate["strategy"] == "attested"
    attested = certificate["attestations"]
    assert [one["name"] for one in attested] == ["relay-drained", "only-recoverer"]
    assert attested[0]["by"] == "ada" and attested[0]["since"] and attested[0]["attested_by"] == "ada"
    assert attested == recovery_as_row(recovery, timezone.now())["attested"]
    (previous_run,) = [one for one in certificate["plan"]["conditions"] if one["name"] == "P2"]
    assert "Attested by ada at" in previous_run["says"]
    verified = recovery.audits.get()
    assert verified.status == "exactly_once_given" and verified.exit_code == 4


@pytest.mark.parametrize("given", [[], [ONLY], ["later-events-confirmed"]])
def test_without_a_unique_constraint_a_late_send_must_be_attested_away(
    make: Callable[..., TableWorld], given: list[str]
) -> None:
    world = make()
    plan = world.approve(world.plan())
    with pytest.raises(Refused, match="relay-drained since TIME by NAME"):
        world.ask(plan, *given)
    plan.refresh_from_db()
    assert plan.state == PlanState.APPROVED
    assert world.accepted_keys() == ["e2"]


@pytest.mark.parametrize(
    "text",
    [
        "relay-drained",
        "relay-drained since yesterday by ada",
        "relay-drained since 2026-11-28T10:00 by ada",
        "certainly",
    ],
)
def test_an_attestation_that_does_not_say_what_it_must_is_refused(make: Callable[..., TableWorld], text: str) -> None:
    world = make()
    plan = world.approve(world.plan())
    with pytest.raises((BadInput, Refused)):
        world.ask(plan, text, ONLY, *([drained()] if text == "certainly" else []))
    tomorrow = (timezone.now() + timedelta(days=1)).isoformat()
    with pytest.raises(BadInput, match="has not come yet"):
        world.ask(plan, f"relay-drained since {tomorrow} by ada", ONLY)


def test_a_late_send_is_absorbed_under_a_unique_constraint_which_spares_the_attestation(
    make: Callable[..., TableWorld],
) -> None:
    world = make(sink_sql=f"{MAILS};{UNIQUE}")
    plan = world.approve(world.plan())
    assert plan.pins["attestations"] == ["only-recoverer"]
    with psycopg.connect(world.sink_dsn) as relay:  # a relay that is still there, in the middle of its send
        recovery = world.ask(plan, ONLY)
        run(recovery.intents.get())
        with pytest.raises(psycopg.errors.UniqueViolation):
            world.send(relay, "e1")
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN, recovery.says
    assert "relay" not in recovery.says.partition("given")[2].partition(":")[0]
    assert world.accepted_keys() == KEYS


def test_a_constraint_that_is_gone_by_then_is_not_relied_on(make: Callable[..., TableWorld]) -> None:
    world = make(sink_sql=f"{MAILS};{UNIQUE}")
    recovery = world.ask(world.approve(world.plan()), ONLY)
    world.alter("ALTER TABLE mails DROP CONSTRAINT mails_pkey")
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED
    assert "unique constraint that refused late sends is gone" in recovery.says
    assert world.accepted_keys() == ["e2"]


def test_without_the_right_to_lock_there_is_a_plan_that_says_what_to_grant(make: Callable[..., TableWorld]) -> None:
    world = make()
    role = login(world, "SELECT, INSERT")
    plan = world.plan()
    assert plan.state == PlanState.REFUSED
    assert plan.batch["provably missing"] == "3"
    assert "GRANT" in condition(plan, "P2")["says"] and role in condition(plan, "P2")["says"]


def test_a_right_that_is_lost_before_the_append_weakens_nothing(make: Callable[..., TableWorld]) -> None:
    world = make()
    recovery = world.ask(world.approve(world.plan()), drained(), ONLY)
    sink = world.pipeline.sink
    sink.options = {**sink.options, "is_effect": False}
    sink.save()
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED
    assert "no longer as the plan found it" in recovery.says
    assert world.accepted_keys() == ["e2"]


def test_a_recovery_in_parts_lands_each_in_committed_order(make: Callable[..., TableWorld]) -> None:
    world = make(batch_limit=2)
    world.commit(["e5", "e6"])
    world.alter("ALTER TABLE mails ADD came bigint GENERATED ALWAYS AS IDENTITY")
    recovery = world.redrive(drained(), ONLY)
    assert (recovery.outcome, recovery.batches, recovery.landed_count) == ("exactly_once_given", 3, 5), recovery.says
    with psycopg.connect(world.sink_dsn) as connection:
        came = [key for (key,) in connection.execute('SELECT "key" FROM mails ORDER BY came').fetchall()]
    assert came == ["e2", "e1", "e3", "e4", "e5", "e6"]


def test_a_plan_is_void_once_a_test_shows_that_the_login_may_do_less(make: Callable[..., TableWorld]) -> None:
    world = make()
    role = login(world, "SELECT, INSERT, UPDATE")
    plan = world.approve(world.plan())
    sink = world.pipeline.sink
    run(connection_test_request(sink=sink, actor="ada", now=timezone.now(), wake=False))
    plan.refresh_from_db()
    assert plan.state == PlanState.APPROVED, "the same login may do the same"
    with psycopg.connect(world.sink_dsn) as connection:
        connection.execute(sql.SQL("REVOKE UPDATE ON mails FROM {}").format(sql.Identifier(role)))
    run(connection_test_request(sink=sink, actor="ada", now=timezone.now(), wake=False))
    plan.refresh_from_db()
    sink.refresh_from_db()
    assert (plan.state, sink.capability["strategy"]) == (PlanState.LAPSED, "read_only")
    assert "no recovery runs" in sink.capability["recovery"]
    with pytest.raises(Refused, match="lapsed"):
        world.ask(plan, drained(), ONLY)


def test_a_login_that_lost_its_right_to_read_makes_the_verdict_unknown_and_voids_the_plan(
    make: Callable[..., TableWorld], client: Client, admin_user: Any
) -> None:
    world = make()
    role = login(world, "SELECT, INSERT, UPDATE")
    recovery = world.redrive(drained(), ONLY)
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN, recovery.says
    world.commit(["e5"])
    plan = world.approve(world.plan())
    world.deliver(["e5"])
    assert world.audit().status in ("exactly_once", "exactly_once_given")
    rights = sql.SQL("SELECT ON mails {} {}")
    with psycopg.connect(world.sink_dsn) as connection:
        connection.execute(sql.SQL("REVOKE ") + rights.format(sql.SQL("FROM"), sql.Identifier(role)))
    audit = world.audit()
    assert (audit.status, audit.exit_code) == ("unknown", 3) and "could not be read" in audit.says
    assert pipeline_status(world.pipeline, timezone.now()).status == "unknown"
    plan.refresh_from_db()
    assert plan.state == PlanState.LAPSED
    client.force_login(admin_user)
    for address in (reverse("audit", args=[audit.id]), reverse("pipeline", args=[world.pipeline.name])):
        assert client.get(address, secure=True).status_code == 200
    assert "unknown" in "\n".join(audit_lines(audit_as_row(audit, timezone.now())))
    with psycopg.connect(world.sink_dsn) as connection:
        connection.execute(sql.SQL("GRANT ") + rights.format(sql.SQL("TO"), sql.Identifier(role)))
    assert world.audit().status in ("exactly_once", "exactly_once_given")
    assert pipeline_status(world.pipeline, timezone.now()).status != "unknown"


def test_rc_57_only_what_a_person_acknowledged_by_name_is_left_out_and_can_be_sent_later(
    make: Callable[..., TableWorld],
) -> None:
    world = make()
    acknowledged, now = world.coordinate("e3"), timezone.now()
    omission_acknowledge(world.pipeline, acknowledged, reason="ticket T-12", actor="r.k.", now=now)
    recovery = world.redrive(drained(), ONLY)
    assert recovery.outcome == RecoveryOutcome.COMPLETE_WITH_ACKNOWLEDGED, recovery.says
    assert world.accepted_keys() == ["e1", "e2", "e4"]
    omission_withdraw(world.pipeline, acknowledged, actor="r.k.", now=timezone.now())
    recovery = world.redrive(drained(), ONLY)
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN, recovery.says
    assert world.accepted_keys() == KEYS


def test_rc_62_keys_that_are_null_and_empty_stay_two_and_a_broken_order_is_warned_of(
    make: Callable[..., TableWorld],
) -> None:
    world = make()
    with psycopg.connect(world.source_dsn) as source:
        source.execute('ALTER TABLE outbox ALTER "key" DROP NOT NULL')
        for key in (None, None, ""):
            source.execute('INSERT INTO outbox ("key", content) VALUES (%s, \'{"same": true}\')', [key])
    plan = world.plan()
    found = condition(plan, "order")
    assert found["holds"] is None and "out of order" in found["says"], "e2 is there, and e1 comes behind it"
    recovery = world.ask(world.approve(plan), drained(), ONLY)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN, recovery.says
    assert world.accepted_keys() == [*KEYS, None, None, ""], "two null keys are two events"


def test_rc_70_what_the_source_dropped_is_not_taken_for_delivered(make: Callable[..., TableWorld]) -> None:
    world = make()
    world.source_retention("purges")
    with psycopg.connect(world.source_dsn) as source:
        source.execute("""DELETE FROM outbox WHERE "key" IN ('e1', 'e2', 'e3')""")
    recovery = world.redrive(drained(), ONLY)
    assert recovery.outcome == RecoveryOutcome.UNKNOWN, recovery.says
    assert world.accepted_keys() == ["e2", "e4"], "e1 and e3 are not made up"


def test_nothing_is_appended_to_a_table_that_was_made_anew_since_the_plan(make: Callable[..., TableWorld]) -> None:
    """THEORY section 4, step 9: the sink is no longer the one that was planned for."""
    world = make()
    recovery = world.ask(world.approve(world.plan()), drained(), ONLY)
    with psycopg.connect(world.sink_dsn) as connection:
        connection.execute("ALTER TABLE mails RENAME TO mails_before")
        connection.execute("CREATE TABLE mails (LIKE mails_before INCLUDING ALL)")
        connection.execute("INSERT INTO mails SELECT * FROM mails_before")
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED, recovery.says
    assert "restored or replaced" in recovery.says
    assert world.accepted_keys() == ["e2"]
