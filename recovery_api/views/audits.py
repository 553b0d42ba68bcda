"""Audits: asked for, listed, shown; and what each found."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.coordinates import coordinate_parse
from recovery_api.domain.errors import BadInput
from recovery_api.domain.findings import Cause, FindingWord
from recovery_api.domain.words import words
from recovery_api.models import Audit, AuditStatus
from recovery_api.rows import audit_as_row, finding_as_row
from recovery_api.schema import operation
from recovery_api.selectors.audits import audit_get, audit_list, audits_reading
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get, source_spelling
from recovery_api.selectors.findings import FindingFilter, finding_list
from recovery_api.selectors.findings_named import findings_shown
from recovery_api.serializers.fields import Body, Choice, Flag, Name, Text
from recovery_api.serializers.members import WideField
from recovery_api.serializers.retention import EvidenceShape
from recovery_api.serializers.shapes import AuditShape, FindingShape, page_of
from recovery_api.serializers.work import IntentShape
from recovery_api.services.audits import audit_request
from recovery_api.views.base import ApiView, accepted, answer, filtered_pipeline, referenced
from recovery_api.views.idempotent import idempotent
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor


class AuditsQuery(PageQuery):
    pipeline = Name(help_text="Only of this pipeline.")
    status = Choice(AuditStatus.values)


class AuditBody(Body):
    pipeline = Name()
    frontier = Text(required=False, help_text="In the source's spelling; left out: the safe frontier.")
    is_full = Flag(
        required=False, help_text="In full, by name: take what both ends hold now as the new base of what was seen."
    )


class Audits(ApiView):
    query_class = AuditsQuery

    @operation(
        "list_audits",
        "Audits, newest first.",
        answer=page_of(AuditShape),
        query=AuditsQuery,
        errors=[422],
        tag="audits",
    )
    def get(self, request: Request) -> Response:
        found = audit_list(filtered_pipeline(self.asked)).defer("findings")
        now = now_get()
        if "status" in self.asked:
            found = audits_reading(found, self.asked["status"], now)
        return page(
            request,
            self.asked,
            found,
            ("-finished_at", "-id"),
            lambda audit: audit_as_row(audit, now, has_findings=False),
        )

    @operation(
        "request_audit",
        "Ask for a verdict: an intent whose result names the audit.\n\nReads only. Without a worker it stays queued. "
        "Where an equal audit is queued and not begun, the answer is that one (`created_by` says whose).",
        answer=IntentShape,
        status=202,
        body=AuditBody,
        request_example={"pipeline": "orders-mail"},
        tag="audits",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = AuditBody.read(request.data)
        pipeline = referenced("pipeline", pipeline_get, given.pop("pipeline"))
        return accepted(audit_request(pipeline, actor=actor(request), now=timezone.now(), **given))


class AuditOne(ApiView):
    @operation("show_audit", "One audit: verdict, counts, evidence.", answer=AuditShape, errors=[404], tag="audits")
    def get(self, request: Request, audit_id: str) -> Response:
        return answer(audit_as_row(audit_get(audit_id), now_get(), has_findings=False))


FINDINGS = {
    "audit": serializers.UUIDField(),
    "is_whole": serializers.BooleanField(help_text="Whether these pages are all there is."),
    "listed": WideField(help_text="How many rows these pages have, without filters."),
    "evidence": EvidenceShape(help_text="Where the whole is, as Parquet, its digest, and how many rows it has."),
}


class FindingsQuery(PageQuery):
    finding = Choice(words(FindingWord))
    cause = Choice(words(Cause), help_text="Of a premature one.")
    lane = Text(help_text="Only of this lane.")
    low = Text(help_text="From this coordinate on, in the source's spelling.")
    high = Text(help_text="Up to this coordinate, in the source's spelling.")


class AuditFindings(ApiView):
    query_class = FindingsQuery

    @operation(
        "list_findings",
        "What the audit found, in order of lane and coordinate.\n\nThe listing is bounded, and kept for the newest audits: "
        "`is_whole` says whether it is all, and `evidence` where the whole is.",
        answer=page_of(FindingShape, **FINDINGS),
        query=FindingsQuery,
        errors=[404, 422],
        tag="audits",
    )
    def get(self, request: Request, audit_id: str) -> Response:
        audit = audit_get(audit_id)
        found = finding_list(audit, _filter(audit, self.asked))
        row = audit_as_row(audit, now_get(), has_findings=False)
        more = {"audit": row["audit"], "is_whole": audit.evidence_rows <= audit.listed_count}
        spelling = source_spelling(audit.pipeline.source)
        return page(
            request,
            self.asked,
            found,
            ("number",),
            lambda finding: finding_as_row(spelling, finding),
            look_up=lambda findings: findings_shown(audit.pipeline, findings),
            **more,
            listed=audit.listed_count,
            evidence=row["evidence"],
        )


def _filter(audit: Audit, asked: Mapping[str, str]) -> FindingFilter:
    """Raises: BadCoordinate; BadInput for a reversed range, compared as coordinates are, never as texts."""
    spelling = source_spelling(audit.pipeline.source)
    ends = {name: coordinate_parse(asked[name], spelling, name) for name in ("low", "high") if name in asked}
    if len(ends) == 2 and ends["low"] > ends["high"]:
        remedy = "Give the lower coordinate as low."
        raise BadInput("low", f"{asked['low']} lies above high, {asked['high']}: the range is reversed", remedy)
    return FindingFilter(
        finding=asked.get("finding", ""),
        cause=asked.get("cause", ""),
        lane=asked.get("lane", ""),
        low=ends.get("low"),
        high=ends.get("high"),
    )
