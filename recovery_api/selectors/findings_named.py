"""What people call a finding's event, and who left it as it is: looked up for the few findings that are shown.

A verdict needs neither, so a listing holds neither. Names are those of the ledger, of the same committed content at the same
coordinate: where no audit looked them up, or the record knows only message ids, there are none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.frontiers import coordinate_as_row
from recovery_api.domain.ledger.words import ItemWord
from recovery_api.models import Event, EventKind, Finding, LedgerItem, Pipeline

Place = tuple[str, int, int]

CITED = (
    "lane",
    "position",
    "ordinal",
    "word",
    "digest",
    "other_digest",
    "key",
    "shown_key",
    "event_id",
    "committed_at",
)


@dataclass(frozen=True, slots=True)
class EventNamed:
    """`key`, `event_id` and `committed_at` of the committed event; None: no audit looked it up, or the source has none."""

    key: str | None = None
    event_id: str | None = None
    committed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """That somebody looked, decided nothing, and why: the newest word of it."""

    by: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class FindingShown:
    """A finding with what is known of its event besides the verdict."""

    finding: Finding
    named: EventNamed = EventNamed()
    left: Left | None = None


def findings_shown(pipeline: Pipeline, findings: Sequence[Finding]) -> list[FindingShown]:
    """The given findings, all of one pipeline, in the order given. It takes two queries, however many they are."""
    if not findings:
        return []
    places = [_place(one) for one in findings]
    named, left = _named(pipeline, places), findings_left(pipeline, places)
    return [
        FindingShown(one, named.get((*_place(one), _bytes(one.history_digest)), EventNamed()), left.get(_place(one)))
        for one in findings
    ]


def rows_named(pipeline: Pipeline, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of `Audit.findings`, each with `key`, `event_id` and `committed_at` (ISO 8601); None where no audit looked them up."""
    places = [(row["lane"], int(row["position"]), int(row["ordinal"])) for row in rows]
    found = _named(pipeline, places) if places else {}
    named = [
        found.get((*place, bytes.fromhex(row.get("history_digest") or "")), EventNamed())
        for place, row in zip(places, rows, strict=True)
    ]
    return [
        {
            **row,
            "key": one.key,
            "event_id": one.event_id,
            "committed_at": one.committed_at.isoformat() if one.committed_at else None,
        }
        for row, one in zip(rows, named, strict=True)
    ]


def findings_left(pipeline: Pipeline, places: Iterable[Place]) -> dict[Place, Left]:
    """Who left what was found at these places as it is, and why; the newest of each."""
    wanted = set(places)
    events = Event.objects.filter(
        pipeline=pipeline, kind=EventKind.FINDING_LEFT, data__position__in=sorted({str(place[1]) for place in wanted})
    )
    found: dict[Place, Left] = {}
    for event in events.order_by("id"):
        place = (event.data["lane"], int(event.data["position"]), int(event.data["ordinal"]))
        if place in wanted:
            found[place] = Left(event.actor, event.at, event.data["reason"])
    return found


def finding_notes(pipeline: Pipeline, lane: str, coordinate: Coordinate) -> list[Left]:
    """Everybody who left what was found at one coordinate as it is, the newest first."""
    place = {"lane": lane, **coordinate_as_row(coordinate)}
    events = Event.objects.filter(pipeline=pipeline, kind=EventKind.FINDING_LEFT, data__contains=place)
    return [Left(event.actor, event.at, event.data["reason"]) for event in events.order_by("-id")]


def _named(pipeline: Pipeline, places: Collection[Place]) -> dict[tuple[str, int, int, bytes], EventNamed]:
    items = LedgerItem.objects.filter(
        pipeline=pipeline,
        lane__in={lane for lane, _, _ in places},
        position__in={position for _, position, _ in places},
    ).order_by("id")
    found: dict[tuple[str, int, int, bytes], EventNamed] = {}
    for lane, position, ordinal, word, digest, other, own, shown, event_id, committed_at in items.values_list(*CITED):
        committed, key = digest if word == ItemWord.LOST else other, shown if own is None else own
        if committed and (key is not None or event_id is not None or committed_at is not None):
            found[lane, position, ordinal, bytes(committed)] = EventNamed(key, event_id, committed_at)
    return found


def _place(finding: Finding) -> Place:
    return finding.lane, finding.position, finding.ordinal


def _bytes(digest: bytes | memoryview | None) -> bytes:
    return b"" if digest is None else bytes(digest)
