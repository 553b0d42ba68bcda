"""The event_read intent: one event at both ends, its contents included. Reads only, in one snapshot of each end.

A record that keeps digests alone has no content to show. Where a copy of state lies beside it, the row of the event's key is
shown in its place, read last: a later event may have written it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from django.utils import timezone

from recovery_api.domain.abilities import Ability
from recovery_api.domain.coordinates import INT64_MAX, Coordinate, coordinate_format
from recovery_api.domain.errors import TerminalError
from recovery_api.domain.identity import IdType, id_type_meet, is_by_event_id
from recovery_api.domain.kinds import abilities_of
from recovery_api.models import Intent, Pipeline
from recovery_api.services.event_reads import CONTENT_LIMIT_BYTES, event_read_record
from workers.connectors.protocols.image import StateRecord
from workers.connectors.protocols.record import CONTENT_CHARACTERS, ContentRecord, IdRecord, Record
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

RECORD_HOLDS = "As the record holds it."
RECORD_LACKS = "The record holds nothing here."
NO_CONTENTS = "The record keeps no contents."
NO_KEY = "The record keeps no contents, and the source shows no key here by which the target could be asked."
TARGET_LACKS = "The record keeps no contents, and the target has no row of this key now."
TARGET_HOLDS = (
    "The record keeps no contents. This is the target's row of the key, now: a later event may have written it."
)


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
    held: list[dict[str, Any]] | None = None
    with sink.hold_snapshot() as reading:
        sink_identity = reading.identity
        if isinstance(sink, ContentRecord):
            seen = sink.contents_at(reading, given["lane"], coordinate)
            held = None if seen is None else [_held("record", one.text, one.bytes, one.is_cut) for one in seen]
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
    says = RECORD_HOLDS if held else RECORD_LACKS
    if held is None:
        report(step="reading the target")
        held, says = _of_target(pipeline, sink, committed)
    found = {
        "coordinate": coordinate_format(coordinate, source.spelling),
        "source": {"identity": source_identity, "rows": committed},
        "sink": {"identity": sink_identity, "rows": accepted, "is_by_identity": wanted is not None},
        "archive": {"rows": _shown(archived.select(HISTORY.names).to_batches())},
        "content": None if content is None else _facts(content),
        "sink_contents": {
            "says": says,
            "rows": [{name: row[name] for name in ("of", "bytes", "is_cut")} for row in held],
        },
    }
    is_brought = content is not None and len(content) <= CONTENT_LIMIT_BYTES
    event_read_record(intent, found, content if is_brought else None, timezone.now(), held)


def _of_target(
    pipeline: Pipeline, sink: Record, committed: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], str]:
    """What the copy of state holds of the event's key, and what that is; where it cannot be read, why."""
    if Ability.STATE not in abilities_of(pipeline.sink.kind, pipeline.sink.options):
        return [], NO_CONTENTS
    if not committed or committed[0]["key"] is None:
        return [], NO_KEY
    assert isinstance(sink, StateRecord)
    try:
        with sink.hold_snapshot() as reading, sink.hold_state(reading) as state:
            text = sink.state_value(state, committed[0]["key"])
    except TerminalError as error:
        return [], f"{NO_CONTENTS} The target could not be read: {error}"
    if text is None:
        return [], TARGET_LACKS
    size = len(text.encode())
    return [_held("target", text[:CONTENT_CHARACTERS], size, len(text) > CONTENT_CHARACTERS)], TARGET_HOLDS


def _held(of: str, text: str | None, size: int, is_cut: bool) -> dict[str, Any]:
    return {"of": of, "content": text, "bytes": size, "is_cut": is_cut}


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
