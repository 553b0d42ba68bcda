"""An audit: its verdict, and the ground it stands on."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from dashboard.views.errors import errors_shown
from dashboard.views.findings import groups_shown
from dashboard.views.lanes import DRAWN_LANES, cursor_stops, lane_table
from recovery_api.domain.headroom.evidence import EXPIRED
from recovery_api.domain.lane_order import lanes_by_trouble
from recovery_api.retention_rows import keeping_says
from recovery_api.rows import audit_as_row
from recovery_api.selectors.audits import audit_get
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.retention import audit_kept

RETIRED = "The pipeline is retired; what was done stays to be looked at."


@require_GET
@errors_shown
def audit_show(request: HttpRequest, audit_id: UUID) -> HttpResponse:
    audit = audit_get(audit_id)
    row = audit_as_row(audit, now_get(), has_findings=False)
    return render(
        request,
        "audits/audit.html",
        {
            "audit": audit,
            "word": EXPIRED if row["is_expired"] else audit.status,
            "says": row["says"],
            "pipeline": audit.pipeline,
            "lanes": [
                (name, {**lane, "cursor_stops": cursor_stops(lane, row["status"]) if lane.get("cursor") else []})
                for name, lane in lanes_by_trouble(row["lanes"])[:DRAWN_LANES]
            ],
            "lane_table": lane_table(row["lanes"]),
            "groups": groups_shown(audit),
            "parts_says": keeping_says(audit_kept(audit), timezone.now()),
            "retired_says": RETIRED if audit.pipeline.retired_at else "",
        },
    )
