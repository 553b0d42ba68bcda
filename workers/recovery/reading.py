"""The event_read intent: one event at both ends, its content included. Reads only, in one snapshot of each end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from django.utils import timezone

from recovery_api.domain.coordinates import INT64_MAX, Coordinate, coordinate_format
from recovery_api.domain.identity import IdType, id_type_meet, is_by_event_id
from recovery_api.models import Intent
from recovery_api.services.event_reads import CONTENT_LIMIT_BYTES, event_read_record
from workers.connectors.protocols.record import IdRecord, Record
from workers.connectors.protocols.source import Source
from workers.connectors.readings import CoordinateRange, Reading, RecordIds, Width
from workers.connectors.registry import record_make, source_make
from workers.evidence.archive.contents import archived_at
from workers.evidence.archive.parts import ARCHIVED
from workers.evidence.kernel.ids import ids_canonical
from workers.evidence.schemas import COORDINATE, HISTORY
from workers.recovery.ends import archive_of

ROWS_SHOWN = 20
"""Rows of one end at one coordinate; where P4 does not hold there may be many."""


def event_read(intent: Intent, report: Any) -> None:
    """Read the record's entries first, the source's last (as an audit does), and end the intent with both.

    What the source does not hold any more is read from the archive, where that may serve it.
    """
    pipeline, given = intent.pipeline, intent.arguments
    coordinate = Coordinate(int(given["position"]), int(given["ordinal"]))
    range_ = _only(given["lane"], coordinate)
    source = source_make(pipeline.source.kind, pipeline.source.options)
    sink = record_make(pipeline.sink.kind, pipeline.sink.options)
    wanted = _ids_at(source, range_) if is_by_event_id(pipeline.sink.options) else None
    report(step="reading the sink's record")
    with sink.hold_snapshot() as reading:
        sink_identity = reading.identity
        if wanted is None:
            accepted = _shown(sink.read_accepted(reading, range_, Width.FULL))
        else:
            accepted = _shown(_entries_of(sink, reading, *wanted))
    report(step="reading the source")
    content: bytes | None = None
    with source.hold_snapshot() as reading:
        source_identity = reading.identity
        committed: list[dict[str, Any]] = []
        if given["lane"] in reading.lanes:
            committed = _shown(source.read_history(reading, range_, Width.FULL, with_key=True))
        if committed:
            place = {"lane": [given["lane"]], "position": [coordinate.position], "ordinal": [coordinate.ordinal]}
            for batch in source.read_content(reading, pa.table(place, schema=COORDINATE)):
                text = batch.column("content")[0].as_py()
                content = None if text is None else text.encode("utf-8", "surrogatepass")
                break
        archived = ARCHIVED.empty_table()
        if not committed and (archive := archive_of(pipeline, is_read=True)) is not None:
            archived = archived_at(archive.opened(reading), given["lane"], coordinate)
            if archived.num_rows and (text := archived["content"][0].as_py()) is not None:
                content = text.encode("utf-8", "surrogatepass")
    found = {
        "coordinate": coordinate_format(coordinate, source.spelling),
        "source": {"identity": source_identity, "rows": committed},
        "sink": {"identity": sink_identity, "rows": accepted, "is_by_identity": wanted is not None},
        "archive": {"rows": _shown(archived.select(HISTORY.names).to_batches())},
        "content": None if content is None else _facts(content),
    }
    is_brought = content is not None and len(content) <= CONTENT_LIMIT_BYTES
    event_read_record(intent, found, content if is_brought else None, timezone.now())


def _ids_at(source: Source, range_: CoordinateRange) -> tuple[IdType, pa.ChunkedArray]:
    """The ids of the events at one coordinate, by which a record that knows nothing else is asked, and their type."""
    with source.hold_snapshot() as reading:
        id_type = reading.ids.id_type if reading.ids is not None else IdType.TEXT
        batches = source.read_history(reading, range_, Width.FULL) if range_.lane in reading.lanes else iter(())
        return id_type, pa.Table.from_batches(batches, schema=HISTORY)["event_id"]


def _entries_of(record: Record, reading: Reading, id_type: IdType, wanted: pa.ChunkedArray) -> Iterator[pa.RecordBatch]:
    """The record's rows of these ids, in whatever spelling; the whole record is read for them."""
    assert isinstance(record, IdRecord) and isinstance(reading.ids, RecordIds)
    compared = id_type_meet(id_type, reading.ids.id_type) or id_type
    values = ids_canonical(wanted, compared).drop_null().combine_chunks()
    for batch in record.read_ids(reading, 0, 1):
        found = ids_canonical(batch.column("event_id"), compared)
        yield batch.filter(pc.is_in(found, value_set=values, skip_nulls=True).combine_chunks())


def _only(lane: str, coordinate: Coordinate) -> CoordinateRange:
    """The range that holds this coordinate and no other."""
    if coordinate.ordinal < INT64_MAX:
        return CoordinateRange(lane, coordinate, Coordinate(coordinate.position, coordinate.ordinal + 1))
    if coordinate.position < INT64_MAX:
        return CoordinateRange(lane, coordinate, Coordinate(coordinate.position + 1, -(2**63)))
    return CoordinateRange(lane, coordinate, None)


def _shown(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    """The first rows with their digests as hex, numbers as text and times in ISO form: what JSON keeps exactly."""
    rows: list[dict[str, Any]] = []
    for batch in batches:
        rows += batch.slice(0, ROWS_SHOWN - len(rows)).to_pylist()
        if len(rows) >= ROWS_SHOWN:
            break
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def _facts(content: bytes) -> dict[str, Any]:
    return {
        "bytes": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
        "is_brought": len(content) <= CONTENT_LIMIT_BYTES,
    }
