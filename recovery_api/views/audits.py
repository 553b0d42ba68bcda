"""Audits: asked for, listed, shown; and what each found."""

from __future__ import annotations

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.models import AuditStatus
from recovery_api.rows import audit_as_row
from recovery_api.schema import operation
from recovery_api.selectors.audits import audit_get, audit_list
from recovery_api.selectors.ends import pipeline_get
from recovery_api.serializers.fields import Body, Choice, Flag, Name, Text
from recovery_api.serializers.shapes import AuditShape, EvidenceShape, FindingShape, IntentShape, page_of
from recovery_api.services.audits import audit_request
from recovery_api.views.base import ApiView, accepted, answer, filtered_pipeline, referenced
from recovery_api.views.idempotent import idempotent
from recovery_api.views.paging import LIMIT, PageQuery, cursor_read, page, paged
from recovery_api.views.permission import actor


class AuditsQuery(PageQuery):
    pipeline = Name(help_text="Only of this pipeline.")
    status = Choice(AuditStatus.values)


class AuditBody(Body):
    pipeline = Name()
    frontier = Text(required=False, help_text="In the source's spelling; left out: the safe frontier.")
    is_full = Flag(required=False, help_text="Read the whole history.")


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
        if "status" in self.asked:
            found = found.filter(status=self.asked["status"])
        return page(
            request, self.asked, found, ("-finished_at", "-id"), lambda audit: audit_as_row(audit, has_findings=False)
        )

    @operation(
        "request_audit",
        "Ask for a verdict: an intent whose result names the audit.\n\nReads only. Without a worker it stays queued.",
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
        return answer(audit_as_row(audit_get(audit_id), has_findings=False))


FINDINGS = {
    "audit": serializers.UUIDField(),
    "is_whole": serializers.BooleanField(help_text="Whether these pages are all there is."),
    "evidence": EvidenceShape(help_text="Where the whole is, as Parquet, its digest, and how many rows it has."),
}


class AuditFindings(ApiView):
    query_class = PageQuery

    @operation(
        "list_findings",
        "What the audit found, in order of coordinate.\n\nThe first findings only where there are many: `is_whole` says "
        "so, and `evidence` where the whole is.",
        answer=page_of(FindingShape, **FINDINGS),
        query=PageQuery,
        errors=[404],
        tag="audits",
    )
    def get(self, request: Request, audit_id: str) -> Response:
        audit = audit_get(audit_id)
        begin = int(cursor_read(request, self.asked)[0]) if "cursor" in self.asked else 0
        end = begin + self.asked.get("limit", LIMIT)
        last = [str(end)] if end < len(audit.findings) else None
        row = audit_as_row(audit, has_findings=False)
        more = {"audit": row["audit"], "is_whole": audit.evidence_rows <= len(audit.findings)}
        return paged(request, self.asked, audit.findings[begin:end], last, **more, evidence=row["evidence"])
