"""The shapes of evidence, as Arrow schemas. Everything a connector reads and the kernel decides has one of these.

`position` and `ordinal` are a coordinate as held (recovery_api.domain.coordinates). `entry` is committed order in a
history and order of acceptance in a record; null where the end gives none. `payload_digest` is
workers.evidence.canonical's: SHA-256 over op, key and canonical content; null only where a reading was narrowed to
coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

TIME = pa.timestamp("us", tz="UTC")
DIGEST = pa.binary(32)

COORDINATE = pa.schema([("lane", pa.string()), ("position", pa.int64()), ("ordinal", pa.int64())])

HISTORY = pa.schema(
    [
        *COORDINATE,
        ("entry", pa.int64()),
        ("event_id", pa.string()),
        ("op", pa.string()),
        ("key", pa.string()),
        ("payload_digest", DIGEST),
        ("committed_at", TIME),
    ]
)

ACCEPTED = pa.schema(
    [
        *COORDINATE,
        ("event_id", pa.string()),
        ("payload_digest", DIGEST),
        ("generation", pa.int64()),
        ("head_position", pa.int64()),
        ("head_ordinal", pa.int64()),
        ("accepted_at", TIME),
        ("entry", pa.int64()),
        ("admitted_in", pa.int64()),
    ]
)

ENTRY_IDS = pa.schema([("event_id", pa.string()), ("is_accepted", pa.bool_())])
"""An entry of a record that knows only ids. `is_accepted` False: received, and the acceptance condition does not hold."""

BATCH = pa.schema(
    [*COORDINATE, ("event_id", pa.string()), ("op", pa.string()), ("key", pa.string()), ("content", pa.string())]
)
"""What is sent: an owed event with its content, as JSON text (null where the event has none)."""

FINDING = pa.schema(
    [
        ("finding", pa.string()),  # lost | premature | duplicate | unknown (justification, below the floor)
        ("cause", pa.string()),  # premature: never committed | altered | ahead of its commit | head not believed
        *COORDINATE,
        ("entry", pa.int64()),  # of the accepted entry; of the obligation's committed order for a lost one
        ("accepted_count", pa.int64()),
        ("is_acknowledged", pa.bool_()),
        ("is_retained", pa.bool_()),  # lost: the source still holds it; false: only the journal does
        ("is_archived", pa.bool_()),  # lost, not retained: the archive holds its content, as judged, and it may be sent
        ("is_in_journal", pa.bool_()),  # lost: the journal holds it too; false: the journal fell behind the source
        ("journal_entry", pa.int64()),  # its committed order in the journal
        ("is_keyed_hidden", pa.bool_()),  # lost by payload, and the sink holds this coordinate with other content
        ("history_digest", DIGEST),
        ("accepted_digest", DIGEST),
    ]
)
"""One row a finding: a lost obligation, a premature entry, a repeated payload (once, with its count)."""

IMAGE_ROW = pa.schema([("key_hash", DIGEST), ("position", pa.int64()), ("ordinal", pa.int64()), ("digest", DIGEST)])
"""What is said of one key: of an event where it lies, of a target's row its place there. `digest` null: it is absent."""

IMAGE_EVENT = pa.schema([*IMAGE_ROW, ("is_partial", pa.bool_())])
"""A committed event. `is_partial`: an update that lacks a member that the target has a column for."""

IMAGE_FINDING = pa.schema(
    [
        ("word", pa.string()),  # recovery_api.domain.images.ImageWord
        ("key_hash", DIGEST),
        ("position", pa.int64()),  # of the key's latest event; null: there is none
        ("ordinal", pa.int64()),
        ("row_position", pa.int64()),  # the place of the target's row in the snapshot; null: there is none
        ("row_ordinal", pa.int64()),
        ("committed_digest", DIGEST),  # null: absent
        ("shown_digest", DIGEST),
    ]
)
"""One row a key that differs, or is unknown."""

ITEM = pa.schema(
    [
        ("id", pa.int64()),  # of the ledger's row; null: not remembered yet, or kept with an audit's evidence alone
        *COORDINATE,
        ("word", pa.string()),  # recovery_api.domain.ledger.words.ItemWord
        ("cause", pa.string()),
        ("digest", DIGEST),  # of a lost one the obligation's, of the others the acceptance's
        ("other_digest", DIGEST),
        ("entry", pa.int64()),
        ("copies", pa.int64()),
        ("event_id", pa.string()),
        ("key", pa.string()),
        ("committed_at", TIME),
        ("is_this_epoch", pa.bool_()),  # it was seen under the scope, mapping and servers of this reading
        ("is_acknowledged", pa.bool_()),
        ("is_content_gone", pa.bool_()),
        ("settled_by", pa.string()),  # recovery_api.domain.ledger.words.SettledBy; null: open
    ]
)
"""What is remembered of one event or acceptance: what an audit is given to judge with, and what it gives back."""


def shaped(columns: Mapping[str, Any], schema: pa.Schema, count: int) -> list[Any]:
    """Columns of `count` rows in the order and types of `schema`; what is not there is null."""
    return [
        columns[field.name].cast(field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in schema
    ]
