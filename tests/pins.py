"""What a source pins, for tests that look at heads, floors and safe frontiers and at nothing that was still held."""

from __future__ import annotations

from workers.connectors.protocols.source import Source
from workers.connectors.readings import Reading


def pin(source: Source) -> Reading:
    """One short snapshot's heads, floors and safe frontiers, released before it returns."""
    with source.hold_pin() as reading:
        return reading
