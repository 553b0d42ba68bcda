"""Reads of listings. Keyset by number, so that the last page costs what the first one does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.db.models.functions import Length, Substr

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import NotFound
from recovery_api.domain.evidence_classes import EvidenceClass
from recovery_api.models import Audit, Event, EventContent, EventKind, Finding, Intent, IntentAction, Pipeline, Plan


@dataclass(frozen=True, slots=True)
class FindingFilter:
    """What of a listing is asked for. Coordinates are inclusive; None and "" ask for everything."""

    finding: str = ""
    cause: str = ""
    lane: str = ""
    low: Coordinate | None = None
    high: Coordinate | None = None


def finding_page(audit: Audit, asked: FindingFilter, *, after: int = -1, limit: int = 200) -> list[Finding]:
    """The findings numbered above `after`, in the order of lane and coordinate."""
    found = _filtered(Finding.objects.filter(audit=audit), asked).filter(number__gt=after)
    if asked == FindingFilter():  # numbers have no gaps: a range keeps a planner without statistics from sorting it all
        found = found.filter(number__lte=after + limit)
    return list(found[:limit])


def finding_list(audit: Audit, asked: FindingFilter) -> QuerySet[Finding]:
    """As `finding_page`, for who pages by itself."""
    return _filtered(Finding.objects.filter(audit=audit), asked)


def plan_listing(plan: Plan) -> QuerySet[Finding]:
    """The plan's listing in order: what would be sent and what stays out, by evidence class."""
    return Finding.objects.filter(plan=plan).order_by("number")


def finding_at(of: Audit | Plan, lane: str, coordinate: Coordinate) -> list[Finding]:
    """Every finding of an audit or a plan at one coordinate: a lost one and an altered one may share it."""
    owner = Q(audit=of) if isinstance(of, Audit) else Q(plan=of)
    found = Finding.objects.filter(owner, lane=lane, position=coordinate.position, ordinal=coordinate.ordinal)
    return list(found.order_by("number"))


def plan_findings(plan: Plan, *, is_sent_only: bool = False) -> Iterator[Finding]:
    """The plan's listing in order, a few thousand rows in memory at a time."""
    found = Finding.objects.filter(plan=plan).order_by("number")
    if is_sent_only:
        found = found.filter(evidence_class__in=[one.value for one in EvidenceClass if one.is_sent])
    return found.iterator(chunk_size=5000)


def event_read_latest(pipeline: Pipeline, lane: str, coordinate: Coordinate) -> Intent | None:
    """The newest request to read this event at both ends, whatever its state."""
    return (
        Intent.objects.filter(
            action=IntentAction.EVENT_READ,
            pipeline=pipeline,
            arguments={"lane": lane, "position": str(coordinate.position), "ordinal": str(coordinate.ordinal)},
        )
        .order_by("-created_at")
        .first()
    )


def event_content_start(intent: Intent, limit: int) -> tuple[bytes, int] | None:
    """The first `limit` bytes of what the intent brought and how many there are. None: nothing, or purged."""
    kept = EventContent.objects.filter(intent=intent, body__isnull=False)
    found = kept.annotate(start=Substr("body", 1, limit), size=Length("body"))
    row = found.values_list("start", "size").first()
    return None if row is None else (bytes(row[0]), int(row[1]))


def event_contents_asked(intent: Intent, actor: str) -> bool:
    """Whether it stands in the timeline that `actor` asked for this reading, or looked at it: then its contents are shown."""
    asked = Event.objects.filter(kind=EventKind.CONTENT_READ, pipeline=intent.pipeline_id, actor=actor)
    return asked.filter(data__intent=str(intent.pk)).exists()


def event_sink_contents(intent: Intent) -> list[dict[str, Any]] | None:
    """How what the sink holds of the event begins: rows of `of`, `content`, `bytes` and `is_cut`. None: nothing, or purged."""
    found = EventContent.objects.filter(intent=intent, sink_body__isnull=False).first()
    return None if found is None else sink_contents_of(found)


def sink_contents_of(content: EventContent) -> list[dict[str, Any]]:
    """Raises: NotFound where the reading brought nothing of the sink."""
    if content.sink_body is None:
        raise NotFound(
            f"What the sink holds, read by {content.intent_id}",
            "the control database",
            "Its record keeps no contents, or holds nothing there.",
        )
    rows: list[dict[str, Any]] = json.loads(bytes(content.sink_body))
    return rows


def source_content_get(intent_id: UUID | str) -> EventContent:
    """`event_content_get`, with a `body`. Raises: NotFound where the source gave none, too."""
    content = event_content_get(intent_id)
    if content.body is None:
        raise NotFound(
            f"The source's content read by {intent_id}", "the control database", "The source gave none there."
        )
    return content


def event_content_get(intent_id: UUID | str) -> EventContent:
    """Raises: NotFound where there is none, or it was purged."""
    try:
        found = EventContent.objects.select_related("intent__pipeline__source").filter(intent=intent_id).first()
    except ValidationError:
        found = None
    if found is None:
        raise NotFound(f"The content read by {intent_id}", "the control database", "Read the event again.")
    return found


def sample_contents_get(intent_id: UUID | str) -> EventContent:
    """How the contents of a connection test's sample begin. Raises: NotFound where there are none, or they were purged."""
    found = EventContent.objects.select_related("intent__source", "intent__sink").filter(
        intent=intent_id, intent__action=IntentAction.CONNECTION_TEST
    )
    if (content := found.first()) is None:
        raise NotFound(
            f"What test {intent_id} read of contents",
            "the control database",
            "It is kept for half an hour: test again.",
        )
    return content


def _filtered(found: QuerySet[Finding], asked: FindingFilter) -> QuerySet[Finding]:
    if asked.finding:
        found = found.filter(finding=asked.finding)
    if asked.cause:
        found = found.filter(cause=asked.cause)
    if asked.lane:
        found = found.filter(lane=asked.lane)
    if asked.low is not None:
        at = Q(position=asked.low.position, ordinal__gte=asked.low.ordinal)
        found = found.filter(Q(position__gt=asked.low.position) | at)
    if asked.high is not None:
        at = Q(position=asked.high.position, ordinal__lte=asked.high.ordinal)
        found = found.filter(Q(position__lt=asked.high.position) | at)
    return found.order_by("number")
