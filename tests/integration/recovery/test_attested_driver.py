"""The driver of a recovery without a fence, step by step over a history at hand and a real table: what each step checks."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.domain.errors import Refused
from recovery_api.models import EventKind, PlanState, RecoveryOutcome
from recovery_api.services.intents import intents_sweep
from recovery_api.services.recoveries import recovery_want
from tests.integration.recovery.table_at_hand import (
    MAILS,
    UNIQUE,
    Died,
    TableAtHand,
    driven,
    ended,
    memory_history_kind,
    step_or_refuse,
    table_at_hand,
)
from tests.integration.recovery.table_world import ONLY, drained
from workers.evidence.canonical import content_digest, content_parse, payload_digest
from workers.heart import Report

EVERY = [1, 2, 3, 4]


@pytest.fixture
def make(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> Iterator[Any]:
    with memory_history_kind():
        yield lambda **more: table_at_hand(database_factory, tmp_path, **more)


@pytest.fixture
def table(make: Callable[..., TableAtHand]) -> TableAtHand:
    return make()


def prepared(recovery: Any) -> bool:
    return bool(recovery.events.filter(kind=EventKind.ARMED).exists())


def test_what_was_attested_is_given_even_where_the_source_proves_everything(table: TableAtHand) -> None:
    """This source's ground is proven: whatever is given comes from the strategy alone."""
    table.deliver(1, 3, 4)
    assert table.audit().status == "exactly_once"
    table.alter("DELETE FROM mails WHERE id <> 2")
    recovery = ended(table.asked())
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN, recovery.says
    assert table.accepted() == EVERY
    verified = recovery.audits.get()
    assert (verified.status, verified.exit_code) == ("exactly_once_given", 4)
    assert any("only recoverer" in one for one in verified.givens) and any("by ada" in one for one in verified.givens)
    assert "only recoverer" in recovery.says and "was stopped" in recovery.says


def test_a_plan_asks_for_what_must_be_attested_and_is_not_applied_without(table: TableAtHand) -> None:
    plan = table.plan()
    assert plan.pins["attestations"] == ["relay-drained", "only-recoverer"]
    with pytest.raises(Refused, match="relay-drained since TIME by NAME"):
        table.ask(plan, ONLY)
    plan.refresh_from_db()
    assert plan.state == PlanState.APPROVED


def test_nothing_is_appended_to_a_table_that_was_made_anew_since_the_plan(table: TableAtHand) -> None:
    """THEORY section 4, step 9: the sink is no longer the one that was planned for."""
    recovery = table.asked()
    table.alter("ALTER TABLE mails RENAME TO mails_before; CREATE TABLE mails (LIKE mails_before INCLUDING ALL)")
    table.alter("INSERT INTO mails SELECT * FROM mails_before")
    ended(recovery)
    assert recovery.outcome == RecoveryOutcome.REFUSED, recovery.says
    assert "restored or replaced" in recovery.says
    assert table.accepted() == [2] and not prepared(recovery)


def test_a_table_made_anew_while_a_part_landed_makes_its_verification_unknown(table: TableAtHand) -> None:
    recovery = table.asked()
    with driven(recovery) as driver:
        driver.step()
        table.alter("ALTER TABLE mails RENAME TO mails_before; CREATE TABLE mails (LIKE mails_before INCLUDING ALL)")
        table.alter("INSERT INTO mails SELECT * FROM mails_before")
        step_or_refuse(driver)
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.UNKNOWN, recovery.says
    assert "could not be verified" in recovery.says and "restored or replaced" in recovery.says


def test_a_sink_that_may_be_appended_to_no_more_is_not_read_for_it(table: TableAtHand) -> None:
    recovery = table.asked()
    sink = table.pipeline.sink
    sink.options = {**sink.options, "is_effect": False}
    sink.save()
    ended(recovery)
    assert recovery.outcome == RecoveryOutcome.REFUSED, recovery.says
    assert "no longer as the plan found it" in recovery.says
    assert table.accepted() == [2] and not prepared(recovery)


def test_a_constraint_that_is_gone_before_the_append_is_not_relied_on(make: Callable[..., TableAtHand]) -> None:
    table = make(sink_sql=f"{MAILS};{UNIQUE}")
    recovery = table.ask(table.plan(), ONLY)
    table.alter("ALTER TABLE mails DROP CONSTRAINT mails_pkey")
    ended(recovery)
    assert recovery.outcome == RecoveryOutcome.REFUSED, recovery.says
    assert "unique constraint that refused late sends is gone" in recovery.says
    assert table.accepted() == [2]


def test_a_constraint_that_goes_after_the_append_makes_the_verification_unknown(
    make: Callable[..., TableAtHand],
) -> None:
    """What a stopped relay still sends could come in twice from then on, and nobody attested that nothing will."""
    table = make(sink_sql=f"{MAILS};{UNIQUE}")
    recovery = table.ask(table.plan(), ONLY)
    with driven(recovery) as driver:
        driver.step()
        assert table.accepted() == EVERY
        table.alter("ALTER TABLE mails DROP CONSTRAINT mails_pkey")
        step_or_refuse(driver)
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.UNKNOWN, recovery.says
    assert "could not be verified" in recovery.says and "refused late sends is gone" in recovery.says


def test_an_attested_relay_needs_no_constraint(make: Callable[..., TableAtHand]) -> None:
    table = make(sink_sql=f"{MAILS};{UNIQUE}")
    recovery = table.ask(table.plan(), drained(), ONLY)
    table.alter("ALTER TABLE mails DROP CONSTRAINT mails_pkey")
    assert ended(recovery).outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN, recovery.says


def test_a_batch_that_is_not_the_approved_one_is_not_appended(table: TableAtHand) -> None:
    recovery = table.asked()
    changed = table.history[2]
    changed["content"] = '{"number": "another"}'
    digest = content_digest(content_parse(changed["content"]), changed["op"])
    changed["payload_digest"] = payload_digest(changed["op"], changed["key"], digest)
    ended(recovery)
    assert recovery.outcome == RecoveryOutcome.REFUSED, recovery.says
    assert "approved" in recovery.says
    assert table.accepted() == [2]


def test_a_plan_whose_evidence_is_gone_is_refused_before_anything_is_read(table: TableAtHand) -> None:
    plan = table.plan()
    recovery = table.ask(plan, drained(), ONLY)
    shutil.rmtree(plan.evidence_uri)
    ended(recovery)
    assert recovery.outcome == RecoveryOutcome.REFUSED, recovery.says
    assert "the plan's evidence" in recovery.says
    assert not recovery.events.filter(kind=EventKind.STEP, says__startswith="Reading").exists()
    assert table.accepted() == [2]


class Mortal(Report):
    """Of a worker that dies at the first thing it would write down once `is_over`."""

    def __init__(self, intent: Any, is_over: Callable[[], bool]) -> None:
        super().__init__(intent)
        self.is_over = is_over

    def check_held(self) -> None:
        super().check_held()
        if self.is_over():
            raise Died


def died_once_appended(table: TableAtHand) -> Any:
    """A recovery whose only part has landed, which nobody wrote down: its worker is gone. Its intent is offered again."""
    recovery = table.asked()
    with (
        pytest.raises(Died),
        driven(recovery, lambda intent: Mortal(intent, lambda: table.accepted() == EVERY)) as driver,
    ):
        driver.step()
    assert recovery.events.filter(kind=EventKind.FIRED).count() == 0
    assert intents_sweep(timezone.now() + dt.timedelta(seconds=31)).offered_count == 1
    return recovery


def test_a_successor_finds_what_landed_and_adds_nothing(table: TableAtHand) -> None:
    recovery = ended(died_once_appended(table))
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN, recovery.says
    assert (recovery.landed_count, recovery.absorbed_count) == (0, 3)
    assert "What an attempt that ended early had added counts as already present." in recovery.says
    assert table.accepted() == EVERY


@pytest.mark.parametrize("ends_by", ["stop", "refusal"])
def test_a_part_that_may_have_landed_never_ends_as_if_nothing_had(table: TableAtHand, ends_by: str) -> None:
    recovery = died_once_appended(table)
    if ends_by == "stop":
        recovery_want(recovery, "stop", actor="ada", now=timezone.now(), reason="enough", wake=False)
    else:
        shutil.rmtree(recovery.plan.evidence_uri)
    ended(recovery)
    assert recovery.outcome == RecoveryOutcome.UNKNOWN, recovery.says
    assert "may have landed" in recovery.says


def test_an_append_that_is_refused_is_written_down_as_having_landed_nothing(table: TableAtHand) -> None:
    recovery = table.asked()
    with psycopg.connect(table.sink_dsn) as connection:
        connection.execute("ALTER TABLE mails ADD CHECK (id <> 3)")
    ended(recovery)
    assert recovery.outcome == RecoveryOutcome.REFUSED, recovery.says
    assert recovery.events.filter(kind=EventKind.FIRE_REFUSED).count() == 1
    assert table.accepted() == [2]
