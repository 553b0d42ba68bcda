"""The image_value intent: one named key's content, as the source holds its latest event and as the target holds the key now."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa
from django.utils import timezone

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.models import Intent
from recovery_api.selectors.images import image_get
from recovery_api.services.event_reads import CONTENT_LIMIT_BYTES, event_read_record
from workers.connectors.protocols.image import StateRecord
from workers.connectors.registry import record_make, source_make
from workers.evidence.schemas import COORDINATE


def image_value(intent: Intent, report: Any) -> None:
    """Read both, the target first, and end the intent with their sizes and digests; the contents lie apart.

    Raises: what opening either end raises.
    """
    image = image_get(intent.arguments["image"])
    named, pipeline = image.sample[int(intent.arguments["number"])], image.pipeline
    record: Any = record_make(pipeline.sink.kind, pipeline.sink.options)
    source = source_make(pipeline.source.kind, pipeline.source.options)
    report(step="reading the target")
    assert isinstance(record, StateRecord)
    with record.hold_snapshot() as reading, record.hold_state(reading) as state:
        shown = record.state_value(state, named["key"])
    report(step="reading the source")
    committed: dict[str, Any] | None = None
    if named["position"] is not None:
        at = Coordinate(int(named["position"]), int(named["ordinal"]))
        with source.hold_snapshot() as reading:
            lane = next(iter(reading.lanes), SINGLE_LANE)
            place = {"lane": [lane], "position": [at.position], "ordinal": [at.ordinal]}
            for batch in source.read_content(reading, pa.table(place, schema=COORDINATE)):
                committed = batch.select(["op", "key", "content"]).slice(0, 1).to_pylist()[0]
                break
    body = json.dumps({"key": named["key"], "committed": committed, "target": shown}, ensure_ascii=False).encode()
    found = {
        "image_value": str(image.id),
        "is_committed": committed is not None,
        "is_shown": shown is not None,
        "content": {"bytes": str(len(body)), "sha256": hashlib.sha256(body).hexdigest()},
    }
    event_read_record(intent, found, body if len(body) <= CONTENT_LIMIT_BYTES else None, timezone.now())
