"""Plans: what would be sent and under which conditions, approved by digest, applied with a reason."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from dashboard.access import actor
from dashboard.views.audits import RETIRED
from dashboard.views.errors import errors_shown, refused
from dashboard.views.headroom import HeadroomCell, cell_of
from dashboard.views.lanes import frontier_few
from recovery_api.domain.attestations import KINDS as ATTESTATIONS
from recovery_api.domain.commands import command_line
from recovery_api.domain.errors import BadInput, Frozen, Refused
from recovery_api.domain.evidence_classes import owed_count
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.domain.spreadsheets import cell_write
from recovery_api.models import LIVE_STATES, WAITING_STATES, Plan, PlanState
from recovery_api.retention_rows import keeping_says
from recovery_api.rows import finding_as_row, plan_as_row
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.findings import plan_findings
from recovery_api.selectors.findings_named import findings_shown
from recovery_api.selectors.freezes import freeze_of, freeze_says
from recovery_api.selectors.headroom import pipeline_headroom
from recovery_api.selectors.intents import intent_waiting
from recovery_api.selectors.plans import approval_ends_at, plan_attestations_asked, plan_estimate, plan_get
from recovery_api.selectors.recoveries import plan_strategy, recovery_of_plan
from recovery_api.selectors.retention import plan_kept
from recovery_api.services import plans, recoveries

COMPUTING = (PlanState.DRAFT, PlanState.COMPUTING)
COLUMNS = {
    "coordinate": "coordinate",
    "lane": "lane",
    "evidence class": "evidence_class",
    "payload digest": "history_digest",
    "key": "key",
    "event id": "event_id",
    "committed at": "committed_at",
}
"""Of the CSV file, by their heading. The third and fourth tell who reads it again (domain.dead_letters) that it is ours."""
NAMED_AT_ONCE = 2000
"""So many findings' names are looked up with one query."""


@require_GET
@errors_shown
def plan_show(request: HttpRequest, plan_id: UUID) -> HttpResponse:
    plan = plan_get(plan_id)
    is_computing = plan.state in COMPUTING
    if request.htmx:
        if not is_computing:
            return HttpResponse(headers={"HX-Refresh": "true"})
        return render(request, "plans/_computing.html", _context(request, plan))
    return render(request, "plans/plan.html", _context(request, plan))


@require_POST
@errors_shown
def plan_approve(request: HttpRequest, plan_id: UUID) -> HttpResponse:
    """Approve the digest the page showed. Another one by now is refused, and the page says how to look again."""
    try:
        plans.plan_approve(plan_id, request.POST.get("digest", ""), actor(request), timezone.now())
    except Refused as refusal:
        return _again(request, plan_id, refusal)
    return redirect(f"{reverse('plan', args=[plan_id])}#apply")  # what is done next


@require_POST
@errors_shown
def plan_apply(request: HttpRequest, plan_id: UUID) -> HttpResponse:
    """Start the recovery of an approved plan. A double click and a second person land on the same recovery."""
    try:
        recovery = recoveries.recovery_request(
            plan_id,
            request.POST.get("reason", ""),
            request.POST.get("confirm", "").strip(),
            actor(request),
            now=timezone.now(),
            attestations=attested(request.POST),
        )
    except (Refused, BadInput, Frozen) as refusal:
        return _again(request, plan_id, refusal)
    return redirect("recovery", recovery.id)


@require_GET
@errors_shown
def plan_events(request: HttpRequest, plan_id: UUID) -> HttpResponse:
    """The plan's events as CSV, with what they are called where an audit looked that up. No content."""
    plan = plan_get(plan_id)
    response = StreamingHttpResponse(_lines(plan), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="plan-{plan.id}.csv"'
    return response


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


def _lines(plan: Plan) -> Iterator[str]:
    """Every cell in quotes: a spreadsheet that parts cells at semicolons would make two of one else."""
    writer = csv.writer(_Echo(), quoting=csv.QUOTE_ALL)
    yield writer.writerow([*COLUMNS])
    spelling, found = source_spelling(plan.pipeline.source), plan_findings(plan)
    while some := list(islice(found, NAMED_AT_ONCE)):
        for shown in findings_shown(plan.pipeline, [one for one in some if one.evidence_class]):
            row = finding_as_row(spelling, shown)
            yield writer.writerow([cell_write(row[name] or "") for name in COLUMNS.values()])


def attested(form: QueryDict) -> list[str]:
    """What the form attests, as it is written: a box that is checked, with its details behind it where it has some."""
    given = []
    for name in form.getlist("attest"):
        details = f" since {form.get('since', '').strip()}+00:00 by {form.get('by', '').strip()}"
        given.append(f"{name}{details}" if name in ATTESTATIONS and ATTESTATIONS[name].has_details else name)
    return given


def _again(request: HttpRequest, plan_id: UUID, refusal: Refused | BadInput | Frozen) -> HttpResponse:
    """The page as it is now, with why not (at the field that is at fault), and what the form held."""
    context = {
        **_context(request, plan_get(plan_id)),
        **refused(refusal),
        "given": {name: request.POST.get(name, "") for name in ("reason", "confirm", "since", "by")},
    }
    return render(request, "plans/plan.html", context, status=422 if isinstance(refusal, BadInput) else 409)


def _context(request: HttpRequest, plan: Plan) -> dict[str, Any]:
    now = timezone.now()
    intent = plan.intents.filter(state__in=LIVE_STATES).first() if plan.state in COMPUTING else None
    freeze = freeze_of(plan.pipeline_id) if plan.state == PlanState.APPROVED else None
    later = plan.pins.get("later_keys") or {"count": "0", "first": []}
    row = plan_as_row(plan)
    asked = plan_attestations_asked(plan)
    return {
        "plan": plan,
        "pipeline": plan.pipeline,
        "row": row,
        "is_computing": plan.state in COMPUTING,
        "is_waiting": plan.state in WAITING_STATES,
        "intent": intent,
        "waiting": intent_waiting(intent, now) if intent else None,
        "is_author_barred": plan.pipeline.requires_other_approver and actor(request) == plan.author,
        "estimate": plan_estimate(plan) if plan.state in WAITING_STATES else None,
        "headroom": _headroom(plan),
        "approval_ends_at": approval_ends_at(plan),
        "approval_seconds": pipeline_options_parse(plan.pipeline.options)["approval_seconds"],
        "retired_says": RETIRED if plan.pipeline.retired_at else "",
        "recovery": recovery_of_plan(plan.id) if plan.state == PlanState.APPLIED else None,
        "frozen_says": freeze_says(freeze) if freeze else "",
        "applying_says": plan_strategy(plan).applying,
        "redrive_line": command_line(
            *("redrive", plan.id, "--reason", "…", "--confirm", plan.pipeline.name),
            *(word for name in asked for word in ("--attest", ATTESTATIONS[name].form)),
            "--wait",
        ),
        "attestations": [ATTESTATIONS[name] for name in asked],
        "later": later,
        "frontier_says": frontier_few(row["frontier"] or "the safe frontier"),
        "unlisted_count": max((plan.batch_count or 0) - plan.listed_count, 0),
        "weaknesses": plan.pins.get("weaknesses", []),
        "classes": row["classes"],
        "owed_count": owed_count(plan.batch),
        "conditions": sorted(plan.conditions, key=lambda condition: condition["holds"] is True),
        "parts_count": len(plan.pins.get("parts", [])) or 1,
        "parts_says": keeping_says(plan_kept(plan), timezone.now()),
    }


def _headroom(plan: Plan) -> HeadroomCell | None:
    """How long it may still wait, while it can be sent."""
    is_asked = plan.state in WAITING_STATES and plan.pipeline.retired_at is None
    return cell_of(pipeline_headroom(plan.pipeline, now_get())) if is_asked else None
