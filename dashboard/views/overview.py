"""The first screen: is anything owed, doubled, unverifiable, or running?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.charts.history import Spark
from dashboard.views.advice import Advice, advice_of
from dashboard.views.errors import error_page
from dashboard.views.filters import filters_read, page_read, query_of
from dashboard.views.headroom import HeadroomCell, headroom_cells
from dashboard.views.history import sparks
from dashboard.views.saved_filters import changes_seen, filters_kept
from recovery_api.domain.errors import FencepostError
from recovery_api.domain.frontiers import frontier_format
from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.outcomes import CLEAN
from recovery_api.models import Plan
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.fleet import PipelineStatus
from recovery_api.selectors.fleet_pages import (
    TROUBLE,
    FleetEntry,
    clean_until,
    fleet_entries,
    fleet_select,
    ready_plans_of,
    statuses_of,
)
from recovery_api.selectors.freezes import freeze_says, freezes_standing
from recovery_api.selectors.headroom_figures import Figure, fleet_figures
from recovery_api.selectors.workers import START_A_WORKER, worker_presence

PAGE = 50
OWNERS_SHOWN = 100
HEADROOMS = tuple(one.value for one in Standing)
FILTERS = {
    "status": TROUBLE,
    "headroom": HEADROOMS,
    "plan": ("waiting",),
    "owner": (),
    "label": (),
    "q": (),
    "page": (),
}
TILES = (
    # (what it counts, filter, tone where it is not zero)
    ("owed", "status=owed", "warn"),
    ("hazards", "status=hazard", "bad"),
    ("unknown or stale", "status=unknown", "unsure"),
    ("given", "status=exactly_once_given", "given"),
    ("running", "status=running", "busy"),
    ("awaiting approval", "plan=waiting", "warn"),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One pipeline of the table."""

    status: PipelineStatus
    frontier: str
    plan: Plan | None
    headroom: HeadroomCell
    spark: Spark | None
    advice: Advice | None
    """What to do next; None where nothing is wrong."""
    clean_until: datetime | None
    """Until when it was last seen clean; None: it is clean, or was never seen so."""
    owner: str
    labels: str

    @property
    def hazards(self) -> int:
        audit = self.status.audit
        return audit.premature_count + audit.duplicate_count if audit else 0


def overview(request: HttpRequest) -> HttpResponse:
    """Tiles, and the fleet sorted by trouble; filters and page in the address."""
    now = now_get()
    try:
        given = filters_read(request, FILTERS)
        number = page_read(given)
    except FencepostError as error:
        return error_page(request, error)
    fleet = fleet_entries(now)
    try:
        found = fleet_select(
            fleet,
            status=given.get("status"),
            text=given.get("q", ""),
            is_awaiting_approval="plan" in given,
            owner=given.get("owner"),
            label=given.get("label"),
        )
    except FencepostError as error:
        return error_page(request, error)
    if "headroom" in given:
        found = headroom_select(found, given["headroom"], now)
    page = Paginator(found, PAGE).get_page(number)
    context = {
        "given": given,
        "total": len(fleet),
        "tiles": tiles(fleet, given),
        "page": page,
        "lines": lines(list(page.object_list), now),
        "query": query_of(given, "page"),
        "words": TROUBLE,
        "headrooms": HEADROOMS,
        "owners": sorted({entry.owner for entry in fleet if entry.owner})[:OWNERS_SHOWN],
        "is_empty": not fleet,
        "frozen": freezes_shown(),
        "worker_missing": worker_presence(now).says(now),
        "start_a_worker": START_A_WORKER,
        "kept": filters_kept(request, given),
        "since": changes_seen(request),
    }
    return render(request, "overview.html", context)


def freezes_shown() -> tuple[str, frozenset[int]]:
    """What is said of a freeze of everything (empty: there is none), and which pipelines are frozen by themselves."""
    standing = list(freezes_standing())
    whole = next((one for one in standing if one.pipeline_id is None), None)
    own = frozenset(one.pipeline_id for one in standing if one.pipeline_id is not None)
    return freeze_says(whole) if whole else "", own


def headroom_select(entries: Sequence[FleetEntry], word: str, now: datetime) -> list[FleetEntry]:
    """Those whose headroom this is, least time to decide first; in the fleet's order where no time is known."""
    found = fleet_figures([entry.pk for entry in entries], now)
    kept = [entry for entry in entries if entry.pk in found and found[entry.pk].standing == word]
    return sorted(kept, key=lambda entry: _decides(found[entry.pk]))


def _decides(one: Figure) -> float:
    return one.decide_by.timestamp() if one.decide_by else inf


def tiles(fleet: Sequence[FleetEntry], given: dict[str, str]) -> list[dict[str, Any]]:
    """Each tile with its number and address; the tone only where there is something to look at."""
    words = Counter(entry.word for entry in fleet)
    awaiting = sum(entry.is_awaiting_approval for entry in fleet)
    numbers = (
        words["owed"],
        words["hazard"],
        words["unknown"],
        words["exactly_once_given"],
        words["running"],
        awaiting,
    )
    chosen = {f"{name}={value}" for name, value in given.items()}
    return [
        {
            "says": says,
            "query": query,
            "number": number,
            "tone": tone if number else "quiet",
            "is_here": query in chosen,
        }
        for (says, query, tone), number in zip(TILES, numbers, strict=True)
    ]


def lines(entries: Sequence[FleetEntry], now: datetime) -> list[Line]:
    plans = ready_plans_of(entries)
    statuses = statuses_of(entries, now)
    pipelines = [status.pipeline for status in statuses]
    cells, drawn = headroom_cells(pipelines, now), sparks(pipelines, now)
    wrong = [one for one in statuses if one.status not in CLEAN]
    until = clean_until([one.pipeline for one in wrong])
    known = {entry.pk: entry for entry in entries}
    return [
        Line(
            status,
            frontier_format(status.audit.frontier, source_spelling(status.pipeline.source)) if status.audit else "",
            plans.get(status.pipeline.pk),
            cells[status.pipeline.pk],
            drawn[status.pipeline.pk],
            advice_of(status, now, plans.get(status.pipeline.pk)) if status in wrong else None,
            until.get(status.pipeline.pk),
            known[status.pipeline.pk].owner,
            ", ".join(f"{name}={value}" for name, value in sorted(known[status.pipeline.pk].labels.items())),
        )
        for status in statuses
    ]
