"""A runbook's places, filled from one pipeline, and what is so of it now."""

from __future__ import annotations

from recovery_api.domain.frontiers import frontier_format
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.domain.runbooks import runbook_of
from recovery_api.models import WAITING_STATES, Pipeline, Plan
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.fleet import PipelineStatus
from recovery_api.selectors.pairs import restored_of


def runbook_values(pipeline: Pipeline, status: PipelineStatus) -> dict[str, str]:
    """By place; what is not known is left out. COORDINATE: the frontier of the newest audit, where there is one lane."""
    plan = Plan.objects.filter(pipeline=pipeline, state__in=WAITING_STATES).order_by("-created_at").first()
    audit = status.audit
    found = {
        "PIPELINE": pipeline.name,
        "SOURCE": pipeline.source.name,
        "SINK": pipeline.fired_into.name,
        "OWNER": str(pipeline_options_parse(pipeline.options)["owner"] or "nobody is named"),
        "PLAN": str(plan.id) if plan else "",
        "DIGEST": plan.digest if plan else "",
        "COORDINATE": frontier_format(audit.frontier, source_spelling(pipeline.source))
        if audit and len(audit.frontier) == 1
        else "",
    }
    return {place: value for place, value in found.items() if value}


def pipeline_runbook(status: PipelineStatus) -> str:
    """The name of the one to open first."""
    recovery = status.recovery
    return runbook_of(
        status.status,
        is_overdue=status.status == "unknown" and status.schedule.overdue_since is not None,
        is_restored=restored_of(status.pipeline) is not None,
        is_unsettled=recovery is not None and recovery.finished_at is None and bool(recovery.problem),
    )
