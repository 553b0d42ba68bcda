"""Reads of the archive: its parts, what it holds of each lane, and what of it an open item still needs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet, Sum

from recovery_api.domain.archives import Part, coordinate_before, mapping_digest, not_archived_says
from recovery_api.domain.coordinates import Coordinate, coordinate_format
from recovery_api.domain.evidence_places import is_below, place_parse, url_below, url_of
from recovery_api.domain.kinds import deciding
from recovery_api.domain.ledger.words import ItemWord
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.models import AcknowledgedOmission, ArchivePart, Audit, LedgerItem, LedgerLane, Pipeline, Source
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.evidence_places import store_url

FOLDER = "archive"
LOOKED_AT = 20
"""The newest readings among which that of the last audit is: plans make readings, too."""


def archive_folder(pipeline_id: int) -> Path:
    """Where the pipeline's archive lies unless a store is set by its URL: a folder of its own in the evidence folder."""
    return Path(settings.FENCEPOST_EVIDENCE_DIR) / FOLDER / str(pipeline_id)


def archive_url(pipeline_id: int) -> str:
    """Where new files of the pipeline's archive are put: a place of its own in the store of evidence."""
    return url_below(store_url(), FOLDER, str(pipeline_id))


def place_url(row: ArchivePart) -> str:
    """Where the part's file lies, as it is reached now."""
    return url_of(row.place, store_url()) if row.place else str(archive_folder(row.pipeline_id))


def is_at_hand(url: str) -> bool:
    """Whether files there can be looked for here. A folder may lie on another machine, or not be mounted; of a bucket that
    is not the one that is set nobody knows how it is reached."""
    place = place_parse(url)
    return Path(place.path).is_dir() if place.is_folder else is_below(url, store_url())


def is_archived(pipeline: Pipeline) -> bool:
    return bool(pipeline_options_parse(pipeline.options)["is_archived"])


def source_mapping(source: Source) -> str:
    """What the source's rows are read as now, as a part of the archive keeps it."""
    return mapping_digest(source.kind, deciding(source.kind, source.options))


def archive_parts(pipeline: Pipeline, *, is_live: bool = False) -> tuple[Part, ...]:
    """Every part, those that went included unless `is_live`, in the order of lanes and coordinates."""
    rows = ArchivePart.objects.filter(pipeline=pipeline).order_by("lane", "high_position", "high_ordinal", "id")
    return tuple(part_make(row) for row in (rows.filter(gone_at__isnull=True) if is_live else rows).iterator())


def is_asked(pipeline: Pipeline) -> bool:
    """Whether the ledger remembers anything lost: what it does not remember is never looked for in the archive."""
    lost = LedgerItem.objects.filter(pipeline=pipeline, word=ItemWord.LOST)
    return lost.exists() or LedgerLane.objects.filter(pipeline=pipeline, is_whole=False).exists()


def part_make(row: ArchivePart) -> Part:
    low, url = None, place_url(row)
    if row.low_position is not None and row.low_ordinal is not None:
        low = Coordinate(row.low_position, row.low_ordinal)
    return Part(
        row.lane,
        low,
        Coordinate(row.high_position, row.high_ordinal),
        row.rows,
        row.bytes,
        row.digest,
        url_below(url, row.file),
        row.file_digest,
        row.incarnation,
        row.mapping,
        int(row.read_to) if row.read_to else None,
        row.gone_at is not None,
        is_elsewhere=not (place_parse(url).is_folder or is_at_hand(url)),
    )


def archive_ends(pipeline: Pipeline, mapping: str) -> dict[str, dict[str, Coordinate]]:
    """By lane and incarnation, under this mapping: where the archive of what audits read ends."""
    found: dict[str, dict[str, Coordinate]] = {}
    rows = ArchivePart.objects.filter(pipeline=pipeline, mapping=mapping, audit__isnull=False)
    newest = rows.order_by("lane", "incarnation", "-high_position", "-high_ordinal").distinct("lane", "incarnation")
    for row in newest:
        found.setdefault(row.lane, {})[row.incarnation] = Coordinate(row.high_position, row.high_ordinal)
    return found


def incarnations_seen(pipeline: Pipeline) -> dict[str, str]:
    """By lane the source's incarnation as the newest audit saw it; a lane of which none was seen is not there."""
    audit = Audit.objects.filter(pipeline=pipeline, void_since__isnull=True).order_by("-record_read_at").first()
    found = {
        lane: (row.get("safe_frontier") or {}).get("incarnation")
        for lane, row in (audit.lanes if audit else {}).items()
    }
    return {lane: incarnation for lane, incarnation in found.items() if incarnation}


def archive_token(pipeline: Pipeline) -> int:
    """Changes with every part that comes in."""
    return ArchivePart.objects.filter(pipeline=pipeline).aggregate(newest=Max("pk"))["newest"] or 0


@dataclass(frozen=True, slots=True)
class Held:
    """What the archive holds of one lane of one incarnation: above one coordinate (None: from the beginning), up to another.
    `until`: when the first of its files goes, unless an open item needs it. `pinned`: files that one needs; `registered`: by
    a person, not written by an audit."""

    lane: str
    incarnation: str
    above_says: str | None
    to_says: str
    files: int
    rows: int
    bytes: int
    until: datetime
    pinned: int
    registered: int


def archive_held(pipeline: Pipeline) -> list[Held]:
    """What the archive holds now, by lane and incarnation, the newest incarnation of a lane first."""
    live = ArchivePart.objects.filter(pipeline=pipeline, gone_at__isnull=True)
    totals = (
        live.order_by()
        .values("lane", "incarnation")
        .annotate(files=Count("pk"), events=Sum("rows"), size=Sum("bytes"), until=Min("expires_at"), newest=Max("pk"))
    )
    spelling = source_spelling(pipeline.source)
    found = []
    for row in sorted(totals, key=lambda one: (one["lane"], -one["newest"])):
        mine = live.filter(lane=row["lane"], incarnation=row["incarnation"])
        first, last = mine.order_by("low_position", "low_ordinal"), mine.order_by("-high_position", "-high_ordinal")
        beginning = mine.filter(low_position__isnull=True).exists()
        low, high = first.first(), last.first()
        assert low is not None and high is not None
        above_says = None if beginning else _spelled(low.low_position, low.low_ordinal, spelling)
        found.append(
            Held(
                row["lane"],
                row["incarnation"],
                above_says,
                _spelled(high.high_position, high.high_ordinal, spelling),
                row["files"],
                row["events"],
                row["size"],
                row["until"],
                parts_needed(mine).count(),
                mine.filter(audit__isnull=True).count(),
            )
        )
    return found


def archive_problems(pipeline: Pipeline) -> list[str]:
    """What the newest audit that was to archive could not bring to the archive, a sentence a lane."""
    rows = Audit.objects.filter(pipeline=pipeline, recovery__isnull=True).order_by("-finished_at")
    lanes: dict[str, Any] = next(
        (lanes for lanes in rows.values_list("lanes", flat=True)[:LOOKED_AT] if _was_archived(lanes)), {}
    )
    return [
        not_archived_says(row["archive"]["above_says"], row["archive"]["problem"], lane if len(lanes) > 1 else "")
        for lane, row in lanes.items()
        if (row.get("archive") or {}).get("problem")
    ]


def _was_archived(lanes: dict[str, Any]) -> bool:
    return any(row.get("archive") for row in lanes.values())


def parts_needed(parts: QuerySet[ArchivePart]) -> QuerySet[ArchivePart]:
    """Those of the parts that an open item needs: a missing event lies in its range, and nobody gave it up for good.

    Where more is open than is kept as rows, everything is needed.
    """
    ended = AcknowledgedOmission.objects.filter(
        pipeline=OuterRef("pipeline"),
        lane=OuterRef("lane"),
        position=OuterRef("position"),
        ordinal=OuterRef("ordinal"),
        withdrawn_at__isnull=True,
        until__isnull=True,
    )
    items = LedgerItem.objects.filter(
        pipeline=OuterRef("pipeline"), lane=OuterRef("lane"), word=ItemWord.LOST, settled_at__isnull=True
    ).filter(
        Q(position__lt=OuterRef("high_position"))
        | Q(position=OuterRef("high_position"), ordinal__lt=OuterRef("high_ordinal"))
    )
    items = items.filter(~Exists(ended))
    above = Q(position__gt=OuterRef("low_position")) | Q(
        position=OuterRef("low_position"), ordinal__gte=OuterRef("low_ordinal")
    )
    overflowing = LedgerLane.objects.filter(pipeline=OuterRef("pipeline"), is_whole=False)
    return parts.filter(
        Exists(items.filter(above)) | (Q(low_position__isnull=True) & Exists(items)) | Exists(overflowing)
    )


def parts_expired(now: datetime) -> QuerySet[ArchivePart]:
    """The parts whose time is over and that nothing needs."""
    due = ArchivePart.objects.filter(gone_at__isnull=True, expires_at__lte=now)
    return due.exclude(pk__in=parts_needed(due).values("pk"))


def parts_to_join(now: datetime) -> QuerySet[ArchivePart]:
    """The parts that audits wrote on a day that is over (UTC) and that nobody looked at since."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return ArchivePart.objects.filter(
        audit__isnull=False, gone_at__isnull=True, joined_at__isnull=True, written_at__lt=today
    )


def is_covered(item: LedgerItem) -> bool:
    """Whether a file of the archive covers the item's place. Whether it serves the item, a plan tells."""
    at = Q(high_position__gt=item.position) | Q(high_position=item.position, high_ordinal__gt=item.ordinal)
    above = Q(low_position__isnull=True) | Q(low_position__lt=item.position)
    above |= Q(low_position=item.position, low_ordinal__lte=item.ordinal)
    parts = ArchivePart.objects.filter(pipeline=item.pipeline, lane=item.lane, gone_at__isnull=True)
    return parts.filter(at, above).exists()


def _spelled(position: int | None, ordinal: int | None, spelling: Any) -> str:
    return coordinate_format(coordinate_before(Coordinate(position or 0, ordinal or 0)), spelling)
