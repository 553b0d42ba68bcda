"""A web process's clock that jumps refuses more or less, and neither starts a second recovery nor ends a running one."""

from __future__ import annotations

import pytest

from recovery_api.domain.errors import Refused
from recovery_api.models import PlanState, Recovery
from recovery_api.services.plans import plan_approve, plans_sweep
from recovery_api.services.recoveries import recovery_request


def apply(plan, now):
    return recovery_request(plan.id, "the relay crashed", plan.pipeline.name, "approver", now=now, wake=False)


def test_an_approval_given_by_a_clock_that_is_ahead_holds_for_its_own_plan_only(ready_plan, later):
    plan_approve(ready_plan.id, ready_plan.digest, "approver", later(hours=30))
    assert plans_sweep(later(hours=1)) == 0
    assert apply(ready_plan, later(hours=1)).plan == ready_plan
    ready_plan.refresh_from_db()
    assert ready_plan.state == PlanState.APPLIED


def test_an_approval_lapsed_by_a_clock_that_was_ahead_stays_lapsed(approved_plan, later):
    assert plans_sweep(later(hours=25)) == 1
    with pytest.raises(Refused, match="lapsed"):
        apply(approved_plan, later(hours=1))
    assert not Recovery.objects.exists()


@pytest.mark.parametrize("hours", [-26, 26])
def test_a_recovery_that_was_asked_for_outlives_any_jump_and_is_asked_for_once(approved_plan, later, hours):
    first = apply(approved_plan, later(minutes=1))
    assert plans_sweep(later(hours=hours)) == 0
    again = apply(approved_plan, later(hours=hours))
    assert (again.id, Recovery.objects.count(), first.intents.count()) == (first.id, 1, 1)
    approved_plan.refresh_from_db()
    assert approved_plan.state == PlanState.APPLIED
