"""One pipeline: its status with its ground, what to do next, and everything known of its two ends."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from dashboard.access import actor
from dashboard.views.advice import advice_of
from dashboard.views.errors import error_page, gone_page
from dashboard.views.headroom import headroom_context
from dashboard.views.history import history_context, span_read
from dashboard.views.images import image_context
from dashboard.views.lanes import LISTED_BRIEFLY, frontier_few, lane_table, lanes_of
from dashboard.views.saved_filters import changes_seen
from dashboard.views.sink_readings import reading_context
from recovery_api.archive_rows import archive_shown
from recovery_api.domain.errors import FencepostError, NotFound
from recovery_api.domain.frontiers import frontier_format
from recovery_api.domain.headroom.evidence import lanes_read, word_read
from recovery_api.domain.kinds import retention_of
from recovery_api.domain.pipelines import OPTIONS, pipeline_options_parse
from recovery_api.ledger_rows import item_as_row, ledger_lane_as_row
from recovery_api.models import WAITING_STATES, Intent, IntentAction, Pipeline, Recovery
from recovery_api.retention_rows import retention_shown
from recovery_api.selectors.audits import audit_list, certified_by_lane
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.drills import pipeline_passed_at
from recovery_api.selectors.ends import pipeline_get, source_spelling
from recovery_api.selectors.fleet import PipelineStatus, pipeline_status
from recovery_api.selectors.freezes import freeze_of
from recovery_api.selectors.generations import claim_list, generation_list
from recovery_api.selectors.intents import Waiting, intent_waiting
from recovery_api.selectors.ledger import ledger_items_open, ledger_lane_rows
from recovery_api.selectors.omissions import omission_list
from recovery_api.selectors.pairs import pipeline_allows, restored_of
from recovery_api.selectors.plans import plan_list
from recovery_api.selectors.recoveries import recovery_list
from recovery_api.selectors.registry import live_work, pipeline_history
from recovery_api.selectors.runbooks import pipeline_runbook
from recovery_api.selectors.workers import presence_once
from recovery_api.services.audits import audit_request
from recovery_api.services.plans import plan_request

SHOWN = 5
SHOWN_GENERATIONS = 20
SHOWN_ITEMS = 6


def pipeline(request: HttpRequest, name: str) -> HttpResponse:
    try:
        found = pipeline_get(name)
    except NotFound as error:
        return gone_page(request, Pipeline, name, error)
    try:
        span = span_read(request.GET)
    except FencepostError as error:
        return error_page(request, error)
    now = now_get()
    status = pipeline_status(found, now)
    work = live_work(found)
    history = _history(found, now)
    waiting = next((plan for plan in history["plans"] if plan.state in WAITING_STATES), None)
    context = {
        "pipeline": found,
        "status": status,
        "freeze": freeze_of(found.pk),
        "runbook": pipeline_runbook(status),
        "advice": advice_of(status, now, waiting),
        "work": _with_waiting(work, now),
        "audit_unless": _under_way(work, IntentAction.AUDIT),
        "plan_unless": _plan_unless(status, work),
        **_evidence(found, status, now),
        **history,
        "headroom": headroom_context(found, now),
        "history": history_context(found, span, now),
        "restored": restored_of(found),
        "allows": pipeline_allows(found),
        "archive": archive_shown(found),
        "kept": retention_shown(found, now),
        "image": image_context(found, work),
        "since": changes_seen(request, found),
        **reading_context(found.fired_into, found),
    }
    return render(request, "pipelines/pipeline.html", context)


def work_of(request: HttpRequest, name: str) -> HttpResponse:
    """The live region of the page: what is queued or running now. Asked again while there is some."""
    try:
        found = pipeline_get(name)
    except NotFound as error:
        return error_page(request, error)
    work = _with_waiting(live_work(found), timezone.now())
    return render(request, "pipelines/_work.html", {"pipeline": found, "work": work, "was_polled": True})


def audit(request: HttpRequest, name: str) -> HttpResponse:
    """Asks for an audit and goes to its work."""
    try:
        intent = audit_request(
            pipeline_get(name),
            actor=actor(request),
            now=timezone.now(),
            frontier=_frontier(request),
            is_full=request.POST.get("is_full") == "yes",
        )
    except FencepostError as error:
        return error_page(request, error, back=request.path.removesuffix("audit/"))
    joined = f"{intent.created_by} asked for the same audit before, and no worker has begun it: this is that one."
    says = joined if intent.is_joined else "The audit is queued."
    messages.info(request, f"{says} Its verdict appears on the pipeline's page.")
    return redirect("work", intent.id)


def plan(request: HttpRequest, name: str) -> HttpResponse:
    """Asks for a plan and goes to its page, which fills as it is computed."""
    try:
        planned, _ = plan_request(
            pipeline_get(name), actor=actor(request), now=timezone.now(), frontier=_frontier(request)
        )
    except FencepostError as error:
        return error_page(request, error, back=request.path.removesuffix("plan/"))
    return redirect("plan", planned.id)


def _with_waiting(work: list[Intent], now: datetime) -> list[tuple[Intent, Waiting | None]]:
    """Each piece of work with what to say of it while it gives no answer."""
    presence = presence_once(now)
    return [(intent, intent_waiting(intent, now, presence)) for intent in work]


def _frontier(request: HttpRequest) -> str | None:
    return request.POST.get("frontier", "").strip() or None


def _under_way(work: list[Intent], action: str) -> str:
    """Why the same is not asked for again. Empty: nothing of the kind is under way."""
    asked = any(one.action == action and not one.arguments.get("is_scheduled") for one in work)
    return "One is queued or running already; see below." if asked else ""


def _plan_unless(status: PipelineStatus, work: list[Intent]) -> str:
    if restored_of(status.pipeline) is not None:
        return "The sink was restored: settle it first."
    if status.recovery is not None and status.recovery.finished_at is None:
        return "A recovery is unfinished: let it end, or settle it."
    return _under_way(work, IntentAction.PLAN)


def _evidence(found: Pipeline, status: PipelineStatus, now: datetime) -> dict[str, Any]:
    """The last audit's lanes and grounds, and what is known of how long its evidence lasts."""
    spelling = source_spelling(found.source)
    lanes = []
    if status.audit is not None:
        lanes = lanes_of(status.audit, spelling, certified_by_lane(found), _starts(status.recovery), now)
    audit_ = status.audit
    return {
        "audit": audit_,
        "frontier": frontier_few(frontier_format(audit_.frontier, spelling)) if audit_ else "",
        "lanes": lanes,
        "lane_table": lane_table(lanes_read(audit_.lanes, audit_.evidence_until, now), LISTED_BRIEFLY)
        if audit_
        else None,
        "drawn_findings": len(audit_.findings) if audit_ else 0,
        "retention": retention_of(found.source.kind, found.source.options).value,
        "drill_passed_at": pipeline_passed_at(found),
    }


def _starts(recovery: Recovery | None) -> dict[str, Any]:
    return dict(recovery.start or {}) if recovery else {}


def _history(found: Pipeline, now: datetime) -> dict[str, Any]:
    omissions = list(omission_list(found)[:SHOWN])
    items = list(ledger_items_open(found)[:SHOWN_ITEMS])
    items_count = ledger_items_open(found).count() if len(items) == SHOWN_ITEMS else len(items)
    options = pipeline_options_parse(found.options)
    return {
        "audits": [
            (one, word_read(one.status, one.evidence_until, now))
            for one in audit_list(found).defer("findings", "lanes", "verified")[:SHOWN]
        ],
        "plans": list(
            plan_list(found)
            .select_related(None)
            .only("id", "state", "says", "batch_count", "author", "created_at")[:SHOWN]
        ),
        "recoveries": [
            (one, word_read(one.outcome or "", one.certificate_evidence_until, now))
            for one in recovery_list(found).defer("certificate")[:SHOWN]
        ],
        "omissions": [(one, _spelled(one, found)) for one in omissions],
        "items": [(one, item_as_row(one)) for one in items],
        "all_items": f"All {items_count:,} of them" if items_count > SHOWN_ITEMS else "",
        "ledger_lanes": [ledger_lane_as_row(one) for one in ledger_lane_rows(found)[:SHOWN]],
        "generations": list(generation_list(found)[:SHOWN_GENERATIONS]),
        "claims": list(claim_list(found).select_related("recovery")[:SHOWN_GENERATIONS]),
        "events": list(pipeline_history(found)[:SHOWN]),
        "options": [(option, options[option.name], option.name in found.options) for option in OPTIONS.options],
    }


def _spelled(omission: Any, found: Pipeline) -> str:
    row = {omission.lane: {"position": str(omission.position), "ordinal": str(omission.ordinal)}}
    return frontier_format(row, source_spelling(found.source))
