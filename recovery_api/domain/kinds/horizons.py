"""What an end's owner declares of how long it remembers: options with units, and what contradicts itself.

The law: left out is *unknown*. That nothing is deleted is not said here: it is *retention* at a source and the kind's own
word at a sink, and then the disk is the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery_api.domain.errors import BadInput
from recovery_api.domain.kinds.base import Option, Retention

LONGEST_SECONDS = 10 * 365 * 86_400
LARGEST_BYTES = 2**60
MOST_ENTRIES = 2**53

_DISK = (
    Option(
        "disk_free_bytes",
        "How many bytes of this end's disk are always free, as your monitoring guarantees. Where nothing is deleted, the disk"
        " is what ends. Left out: unknown.",
        "integer",
        minimum=1,
        maximum=LARGEST_BYTES,
    ),
    Option(
        "disk_growth_bytes_per_hour",
        "By how many bytes an hour that disk fills at most.",
        "integer",
        minimum=1,
        maximum=LARGEST_BYTES,
    ),
)

SOURCE_HORIZONS = (
    Option(
        "purges_after_seconds",
        "With retention=purges: after how long a row is deleted at the earliest. Left out: unknown, never for ever.",
        "integer",
        minimum=1,
        maximum=LONGEST_SECONDS,
    ),
    Option(
        "purges_from",
        "What that age is counted from: the row's commit, or the mark that it was sent.",
        "choice",
        choices=("commit", "mark"),
        default="commit",
    ),
    *_DISK,
)

RECORD_HORIZONS = (*_DISK,)
"""Of a record that deletes nothing by itself."""

SINK_HORIZONS = (
    Option(
        "record_keeps_seconds",
        "For how long a row of this record stays, where rows go. Left out: unknown, never for ever.",
        "integer",
        minimum=1,
        maximum=LONGEST_SECONDS,
    ),
    Option(
        "memory_seconds",
        "For how long this sink knows that it accepted an event, where that is shorter than its record. Left out: as its record.",
        "integer",
        minimum=1,
        maximum=LONGEST_SECONDS,
    ),
    Option(
        "memory_entries",
        "Of how many events this sink knows that it accepted them, the newest ones. Needs memory_peak_per_second.",
        "integer",
        minimum=1,
        maximum=MOST_ENTRIES,
    ),
    Option(
        "memory_peak_per_second",
        "How many events a second this sink accepts at most, from everybody: that turns memory_entries into time.",
        "integer",
        minimum=1,
        maximum=MOST_ENTRIES,
    ),
    *_DISK,
)


def horizons_check(kind: str, options: Mapping[str, Any]) -> None:
    """Raises: BadInput for half of a pair, for an age where nothing is purged, and for a record whose rows go and
    that is not said to be so."""
    _together(kind, options, "disk_free_bytes", "disk_growth_bytes_per_hour")
    _together(kind, options, "memory_entries", "memory_peak_per_second")
    if options.get("purges_after_seconds") is not None and options["retention"] != Retention.PURGES:
        problem = f"is given, and retention is {options['retention']}"
        raise BadInput(f"{kind}.purges_after_seconds", problem, "Say retention=purges, or leave the age out.")
    if options.get("record_keeps_seconds") is not None and options.get("is_append_only") is not False:
        problem = "is given, so rows go, and is_append_only does not say so"
        raise BadInput(f"{kind}.record_keeps_seconds", problem, "Say is_append_only=false, or leave the age out.")


def _together(kind: str, options: Mapping[str, Any], one: str, other: str) -> None:
    for given, missing in ((one, other), (other, one)):
        if options.get(given) is not None and options.get(missing) is None:
            problem = f"is missing, and without it {given} is no time"
            raise BadInput(f"{kind}.{missing}", problem, "Give both, or neither.")
