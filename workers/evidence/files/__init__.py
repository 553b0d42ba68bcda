"""Exports read as evidence: JSON lines, CSV and Parquet, streamed, into schemas.HISTORY and schemas.ACCEPTED.

The law: what could not be read is named, with its line and byte, and bounds the verdict; a shorter history never looks
complete. Columns: coordinate, op, key, and the content as `value` (JSON), `value_text` (plain text) or a ready
`digest`; on the record generation and head; optional lane, event_id, entry. A `value` cell of a CSV file is JSON; a cell
that is not JSON is refused, never taken for text. One fact has one digest in every format: a null of a table is `null` in
JSON lines, an empty cell in CSV (where "" in quotes is the empty text), a null in Parquet.
"""

from workers.evidence.files.events import EventFile, event_at, events_read
from workers.evidence.files.lists import base_read, coordinates_read, keys_read
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.spellings import SpellingSigns

__all__ = [
    "EventFile",
    "FileNotes",
    "SpellingSigns",
    "base_read",
    "coordinates_read",
    "event_at",
    "events_read",
    "keys_read",
]
