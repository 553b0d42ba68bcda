"""The archive around an audit, a plan and a recovery: what is asked of it, what came to it, and what is said of it."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.archives import Part, coordinate_before, not_archived_says, parts_following, unusable_says
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import FencepostError
from recovery_api.domain.evidence_places import place_parse, url_split
from recovery_api.domain.ledger.blocks import ROWS_A_BLOCK
from recovery_api.models import ArchivePart, Audit, EventKind, Pipeline, Recovery
from recovery_api.selectors.archives import (
    archive_ends,
    archive_parts,
    archive_token,
    archive_url,
    is_archived,
    is_at_hand,
    part_make,
    parts_to_join,
    place_url,
    source_mapping,
)
from recovery_api.services.archives import archive_expire, archive_joined, archive_record
from workers.evidence.archive.files import file_of, file_remove, file_renew
from workers.evidence.archive.joining import parts_join
from workers.evidence.archive.looking import gone_rows
from workers.evidence.archive.parts import PartUnusable, files_missing
from workers.evidence.archive.writing import Request, Written, archive_write
from workers.evidence.batch import batch_of_part
from workers.evidence.places import object_remove, objects_list
from workers.evidence.ranges import EndSpec
from workers.evidence.read import Evidence
from workers.evidence.schemas import FINDING
from workers.evidence.store import FINDINGS, parts_read
from workers.faults import Point, crash_point

logger = logging.getLogger(__name__)

JOINED_AT_ONCE = 1_000
"""Files of a pipeline that one sweep reads to join them."""
JOINED_BYTES = 16 * 2**20
"""Of files that become one, compressed: a few times that without. Half of it in a bucket, which takes no more at once."""
LEFT_BEHIND_SECONDS = 86_400
"""After this long a file that no row tells of is what an audit left that never ended."""
IDS_ALONE = "the record knows only message ids, so nothing is remembered that could be sent from an archive"


@dataclass(frozen=True, slots=True)
class Archived:
    """What one audit wrote to the archive, by lane. `token`: of the archive that it went on from. `missing`: how many files
    of earlier audits are away, or not of the size that was written."""

    lanes: Mapping[str, Written]
    token: int
    missing: int = 0

    @property
    def parts(self) -> list[Part]:
        return [part for one in self.lanes.values() for part in one.parts]


def archive_run(pipeline: Pipeline, found: Evidence, report: Any) -> Archived | None:
    """Writes what the audit read between the archive's end and its frontier; None: the pipeline is not archived.

    The source's snapshot is open. What cannot be written is told in the answer. Raises: what `report` raises.
    """
    if not is_archived(pipeline):
        return None
    token, mapping = archive_token(pipeline), source_mapping(pipeline.source)
    if found.identity is not None:
        return Archived({lane: Written(problem=IDS_ALONE) for lane in found.source_reading.lanes}, token)
    if not found.source_reading.is_complete:
        why = Written(problem="the source could not be read whole")
        return Archived(dict.fromkeys(found.source_reading.lanes, why), token)
    found.sink_release()
    _left_behind_remove(pipeline)
    source = EndSpec(pipeline.source.kind, pipeline.source.options).source()
    lanes = archive_write(
        source,
        found.source_reading,
        {lane: found.lanes[lane].frontier for lane in found.source_reading.lanes},
        {lane: min(one.late.first, default=None) for lane, one in found.lanes.items() if one.late},
        Request(archive_url(pipeline.pk), mapping, archive_ends(pipeline, mapping)),
        report,
    )
    return Archived(lanes, token, files_missing(archive_parts(pipeline, is_live=True)))


def archive_keep(pipeline: Pipeline, audit: Audit, archived: Archived | None, now: datetime) -> list[Part]:
    """Records what was written, in the audit's transaction. Returns the parts that are not needed: another audit wrote
    them meanwhile."""
    if archived is None or archive_record(pipeline, audit, archived.parts, archived.token, now):
        return []
    return archived.parts


def archive_discard(parts: list[Part]) -> None:
    """Takes away files that no row tells of. What cannot be deleted now goes with a later audit."""
    for part in parts:
        with contextlib.suppress(FencepostError):
            file_remove(*url_split(part.file), part.bytes)


def archived_lane_says(found: Evidence, archived: Archived) -> list[str]:
    """What is not in the archive though it was read, lane by lane, and which of its files are away."""
    said = []
    several = len(archived.lanes) > 1
    for lane, written in archived.lanes.items():
        if not written.problem:
            continue
        said.append(not_archived_says(_short_of(found, written), written.problem, lane if several else ""))
    if archived.missing:
        files = (
            "1 file of the archive is" if archived.missing == 1 else f"{archived.missing:,} files of the archive are"
        )
        said.append(f"{files} gone, or not of the size that was written: nothing can be sent from there.")
    return said


def archived_row(found: Evidence, archived: Archived | None, lane: str) -> dict[str, Any] | None:
    """One lane for the audit's row. None: the pipeline is not archived."""
    written = archived.lanes.get(lane) if archived else None
    if written is None:
        return None
    return {
        "rows": str(sum(part.rows for part in written.parts)),
        "problem": written.problem or None,
        "above_says": _short_of(found, written) if written.problem else None,
    }


def archive_sweep(now: datetime) -> int:
    """How many files of the archive went because their time was over. The files of a day that is over become one.

    What a store does not let go, or does not take, is done by a later sweep.
    """
    gone = 0
    try:
        gone = archive_expire(now, file_remove)
        archive_join(now)
    except FencepostError as error:
        logger.warning("files of the archive could not be taken away or joined: %s", error)
    return gone


def archive_join(now: datetime) -> int:
    """How many files were made of several: those that audits wrote on one day, as far as they follow each other.

    Whoever reads the archive meanwhile finds the old files for a day more. What cannot be written now is joined later.
    """
    count, due = 0, parts_to_join(now)
    for pipeline_id in due.order_by().values_list("pipeline", flat=True).distinct():
        url = archive_url(pipeline_id)
        if not is_at_hand(url):
            continue
        most = JOINED_BYTES if place_parse(url).is_folder else JOINED_BYTES // 2
        rows = list(due.filter(pipeline=pipeline_id).order_by("written_at", "id")[:JOINED_AT_ONCE])
        rows = [row for row in rows if is_at_hand(place_url(row))]
        days = groupby(rows, key=lambda row: row.written_at.astimezone(UTC).date())
        for mine in [list(of_day) for _, of_day in days]:
            by_file = {row.file: row for row in mine}
            for run in parts_following(map(part_make, mine), ROWS_A_BLOCK, most):
                try:
                    count += _joined([by_file[url_split(part.file)[1]] for part in run], run, url, now)
                except (OSError, FencepostError):
                    return count
    return count


def _joined(rows: list[ArchivePart], run: list[Part], url: str, now: datetime) -> bool:
    """Whether the run became one file. What is not what was written stays as it is. Raises: OSError; FencepostError."""
    if len(run) == 1:
        archive_joined(rows, None, now)
        return False
    try:
        made = parts_join(run, url)
    except PartUnusable:
        archive_joined(rows, None, now)
        return False
    crash_point(Point.ARCHIVE_JOINED)
    for part in run:  # its day begins now
        file_renew(*url_split(part.file), part.bytes)
    if not archive_joined(rows, made, now):
        archive_discard([made])
        return False
    return True


def batch_archived(found: Evidence) -> int:
    """How many events of the evidence's batch have their content in the archive alone."""
    count = 0
    for piece in found.pieces:
        flags = batch_of_part(found.spec, piece.part)["is_archived"]
        count += int(pc.sum(pc.fill_null(flags, False)).as_py() or 0)
    return count


def unrecoverable_says(found: Evidence) -> str:
    """Where the events lie that are owed, gone at the source, and not to be had from the archive, and why not; "": there are
    none."""
    ends: dict[str, tuple[Coordinate, Coordinate]] = {}
    for _, rows in parts_read(found.stored, FINDINGS, FINDING):
        kept = rows.filter(pc.invert(pc.fill_null(rows["is_archived"], False)))
        for lane in pc.unique(kept["lane"]).to_pylist():
            gone = gone_rows(kept.filter(pc.equal(kept["lane"], lane)))
            if gone.num_rows:
                low, high = _ends(gone)
                before = ends.get(lane, (low, high))
                ends[lane] = min(before[0], low), max(before[1], high)
    if not ends:
        return ""
    several = len(found.source_reading.lanes) > 1
    where = " and ".join(
        (f"at {found.spell(low)}" if low == high else f"from {found.spell(low)} to {found.spell(high)}")
        + (f" in lane {lane}" if several else "")
        for lane, (low, high) in sorted(ends.items())
    )
    return f"They lie {where}: this plan refuses that range. {unusable_says(found.unarchived)}".strip()


def fired_from_archive(recovery: Recovery) -> int:
    """How many events the parts that fired took from the archive."""
    parts: dict[int, int] = {}
    for data in recovery.events.filter(kind=EventKind.ARMED).order_by("id").values_list("data", flat=True):
        if "archived" in (data or {}):
            parts[int(data["part"])] = int(data["archived"])
    return sum(count for part, count in parts.items() if part < recovery.batch_index)


def _ends(rows: pa.Table) -> tuple[Coordinate, Coordinate]:
    pairs = list(zip(rows["position"].to_pylist(), rows["ordinal"].to_pylist(), strict=True))
    return Coordinate(*min(pairs)), Coordinate(*max(pairs))


def _short_of(found: Evidence, written: Written) -> str | None:
    """Above which coordinate nothing came to the archive; None: nothing at all did."""
    return None if written.short_of is None else found.spell(coordinate_before(written.short_of))


def _left_behind_remove(pipeline: Pipeline) -> None:
    """Deletes what an audit wrote that was killed before it was recorded, once it is a day old."""
    url = archive_url(pipeline.pk)
    known = set(ArchivePart.objects.filter(pipeline=pipeline, gone_at__isnull=True).values_list("file", flat=True))
    with contextlib.suppress(FencepostError):
        for name, changed_at in objects_list(url):
            if file_of(name) not in known and time.time() - changed_at > LEFT_BEHIND_SECONDS:
                object_remove(url, name)
