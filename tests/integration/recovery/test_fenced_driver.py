"""The driver of a recovery with a fence, over ends in this process's memory: what it looks at before it claims."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from recovery_api.models import Recovery, RecoveryOutcome
from tests.integration.recovery.table_at_hand import memory_history_kind
from tests.stateful.operated_pipeline import OperatedPipeline


@pytest.fixture
def operated(transactional_db: None) -> Iterator[OperatedPipeline]:
    """Three events, of which the first was delivered."""
    with memory_history_kind():
        made = OperatedPipeline(batch_limit=10)
        for _ in range(3):
            made.commit()
        assert made.relay_start() == "started"
        assert made.send(is_held_back=False) == "accepted"
        yield made


def ended(operated: OperatedPipeline, recovery: Recovery) -> Recovery:
    operated.run(recovery.intents.get())
    recovery.refresh_from_db()
    return recovery


def test_what_is_missing_lands_and_is_verified(operated: OperatedPipeline) -> None:
    recovery = ended(operated, operated.request(operated.approve(operated.plan(None))))
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says
    assert operated.missing(3) == set()


def test_a_sink_that_was_restored_since_the_approval_is_not_claimed(operated: OperatedPipeline) -> None:
    backup = operated.backup()
    assert operated.send(is_held_back=False) == "accepted"
    recovery = operated.request(operated.approve(operated.plan(None)))
    operated.restore(backup)
    ended(operated, recovery)
    assert recovery.outcome == RecoveryOutcome.REFUSED, recovery.says
    assert "restored or replaced" in recovery.says
    assert recovery.generation is None and operated.missing(3) == {2, 3}


def test_a_plan_whose_evidence_is_gone_is_refused_before_its_claim(operated: OperatedPipeline) -> None:
    plan = operated.approve(operated.plan(None))
    recovery = operated.request(plan)
    shutil.rmtree(plan.evidence_uri)
    ended(operated, recovery)
    assert recovery.outcome == RecoveryOutcome.REFUSED, recovery.says
    assert "the plan's evidence" in recovery.says
    assert recovery.generation is None, "a claim that could only be refused would fence the relay for it"
