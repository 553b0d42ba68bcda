from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.evidence_classes import kept_back
from recovery_api.domain.outcomes import exit_code_worst
from recovery_api.management.base import DONE, OWED, UNKNOWN, FencepostCommand, Shown
from recovery_api.management.lines import plan_lines
from recovery_api.management.waiting import intent_await, intent_problem, is_waiting, wait_arguments
from recovery_api.models import PlanState
from recovery_api.rows import intent_as_row, plan_as_row
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.plans import is_id, plan_get
from recovery_api.services.plans import plan_request

CODES = {PlanState.NOTHING_OWED: DONE, PlanState.READY: OWED, PlanState.APPROVED: OWED, PlanState.APPLIED: OWED}


class Command(FencepostCommand):
    help = "Plan a recovery: what would be sent, on which evidence. Inert. Exits 0 nothing owed, 1 owed, 3 refused or unknown, 4 nothing owed, given what is named."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("pipeline", help="the pipeline to plan for, or the id of a plan to show")
        parser.add_argument("--frontier", help="plan at this coordinate (left out: at the safe frontier)")
        wait_arguments(parser)

    def answer(self, now: datetime, **options: Any) -> Shown:
        if is_id(options["pipeline"]):
            return plan_shown(options["pipeline"])
        plan, intent = plan_request(
            pipeline_get(options["pipeline"]),
            actor=options["actor"],
            now=now,
            frontier=options["frontier"],
            wake=not options["here"],
        )
        follow = f"Look again: manage.py plan {plan.id}"
        if not is_waiting(options):
            lines = [f"Plan {plan.id} is queued.", follow]
            return Shown({**intent_as_row(intent), "plan": str(plan.id)}, lines, UNKNOWN)
        ended = intent_await(intent, options, self.stderr)
        if (problem := intent_problem(ended, follow)) is not None:
            return Shown({**problem.body, "plan": str(plan.id)}, problem.lines, problem.code)
        return plan_shown(str(plan.id))


def plan_shown(plan_id: str) -> Shown:
    plan = plan_get(plan_id)
    row = plan_as_row(plan)
    code = CODES.get(PlanState(plan.state), UNKNOWN)
    if code == DONE and kept_back(plan.batch):
        code = OWED
    if code == DONE and plan.audit is not None:  # nothing to send is as well as the reading that found it
        code = exit_code_worst([code, plan.audit.exit_code])
    return Shown(row, plan_lines(row), code)
