"""Exports read as evidence, streamed, into schemas.HISTORY and schemas.ACCEPTED.

The law: what could not be read is named, with its line and byte, and bounds the verdict; a shorter history never looks
complete. Every line is an event, ignored by its kind, or rejected, and the three add up to the lines read. One fact has
one digest in every format, and a null is one null in all of them.

opening (folders, compression, encodings) -> containers (JSON lines and lists, CSV, COPY, psql, Parquet, dumps of topics)
-> shapes (the product's own columns, a mapping, Debezium's events) -> collecting (digests in columns).
"""

from workers.evidence.files.events import EventFile, event_at, events_read
from workers.evidence.files.lists import base_read, coordinates_read, keys_read
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.options import ReadOptions
from workers.evidence.files.spellings import SpellingSigns

__all__ = [
    "EventFile",
    "FileNotes",
    "ReadOptions",
    "SpellingSigns",
    "base_read",
    "coordinates_read",
    "event_at",
    "events_read",
    "keys_read",
]
