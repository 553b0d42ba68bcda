"""Findings: groups by cause and range, and the listing page by page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from dashboard.views.errors import errors_shown
from dashboard.views.events import event_url
from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_parse
from recovery_api.domain.errors import BadInput
from recovery_api.domain.findings import FindingWord
from recovery_api.domain.words import words
from recovery_api.models import Audit
from recovery_api.retention_rows import gone_says
from recovery_api.rows import finding_as_row
from recovery_api.selectors.audits import audit_get
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.findings import FindingFilter, finding_page
from recovery_api.selectors.findings_named import FindingShown, findings_shown

PAGE = 200
FILTERS = ("finding", "cause", "lane", "from", "to", "after")


@require_GET
@errors_shown
def finding_list(request: HttpRequest, audit_id: UUID) -> HttpResponse:
    """Groups first; then the listing, filtered by what the address says and turned by keyset."""
    audit = audit_get(audit_id)
    spelling = source_spelling(audit.pipeline.source)
    asked, after = _filter_read(request, spelling)
    rows = finding_page(audit, asked, after=after, limit=PAGE + 1)
    query = {name: value for name in FILTERS if name != "after" and (value := request.GET.get(name, ""))}
    following = f"?{urlencode({**query, 'after': rows[PAGE - 1].number})}#listing" if len(rows) > PAGE else ""
    return render(
        request,
        "findings/list.html",
        {
            "audit": audit,
            "pipeline": audit.pipeline,
            "groups": groups_shown(audit),
            "rows": [_row(audit, one, spelling) for one in findings_shown(audit.pipeline, rows[:PAGE])],
            "query": query,
            "from": query.get("from", ""),
            "first_url": f"?{urlencode(query)}#listing" if after >= 0 else "",
            "following": following,
            "causes": sorted({group["cause"] for group in audit.groups if group["cause"]}),
            "kinds": words(FindingWord),
            "may_hold_lost": query.get("finding", FindingWord.LOST) == FindingWord.LOST
            and audit.lost_count > audit.acknowledged_count
            and audit.pipeline.retired_at is None,
            "gone_says": gone_says(audit.evidence_gone_at) if audit.evidence_gone_at else "",
            "unlisted_count": max(audit.evidence_rows - audit.listed_count, 0),
            "unlisted_says": f"{audit.listed_count:,} of {audit.evidence_rows:,} findings are listed here.",
        },
    )


def groups_shown(audit: Audit) -> list[dict[str, Any]]:
    """Each group with the address that lists it, and each of its runs with its own."""
    page = reverse("findings", args=[audit.id])
    shown = []
    for group in audit.groups:
        query = {name: group[name] for name in ("finding", "cause", "lane") if group[name]}
        runs = [
            {**run, "url": f"{page}?{urlencode({**query, 'from': run['first_says'], 'to': run['last_says']})}#listing"}
            for run in group["runs"]
        ]
        unshown = int(group["runs_count"]) - len(runs)
        shown.append(
            {**group, "url": f"{page}?{urlencode(query)}#listing", "runs": runs, "runs_unshown_count": unshown}
        )
    return shown


def _filter_read(request: HttpRequest, spelling: Spelling) -> tuple[FindingFilter, int]:
    """What the address asks for. Raises: BadInput for a filter that is unknown or cannot be read."""
    for name in request.GET:
        if name not in FILTERS:
            raise BadInput(name, "is no filter of findings", f"Known: {', '.join(FILTERS)}.")
    given = {name: request.GET.get(name, "").strip() for name in FILTERS}
    after = given["after"] or "-1"
    digits = after.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 15:
        raise BadInput("after", f"{after[:40]!r} is not a row's number", "Follow the page's own link.")

    def place(name: str) -> Coordinate | None:
        return coordinate_parse(given[name], spelling, name) if given[name] else None

    asked = FindingFilter(given["finding"], given["cause"], given["lane"], place("from"), place("to"))
    return asked, int(after)


def _row(audit: Audit, one: FindingShown, spelling: Spelling) -> dict[str, Any]:
    shown = finding_as_row(spelling, one)
    event = {
        "url": event_url({"audit": str(audit.id)}, one.finding.lane, shown["coordinate"]),
        "committed_at": one.named.committed_at,
    }
    return {**shown, **event, "left": one.left}
