"""From what the owners of both ends declared to the memories that a recovery needs. Left out is unknown.

An event of which nothing is known but that it is not older than the anchor may have been accepted, or marked, as early as
that: so everything counts from the anchor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from recovery_api.domain.headroom.terms import (
    Clock,
    Forgets,
    Reach,
    Term,
    by_age,
    by_entries,
    by_room,
    no_limit,
    span,
    unknown,
)
from recovery_api.domain.kinds.base import Retention
from recovery_api.domain.points import FOR_GOOD, Point, Value
from recovery_api.domain.schedules import span_says

Options = Mapping[str, Any]

BY_AGE = (Forgets.SOURCE_PURGE, Forgets.RECORD, Forgets.SINK_MEMORY)
"""These forget each event at an age of its own."""


def keeps_for_good(declares: Mapping[Point, Value]) -> bool:
    """Whether a sink of this kind and options is said to delete nothing."""
    return declares.get(Point.MEMORY) == FOR_GOOD


def source_terms(
    options: Options,
    retention: Retention,
    since: datetime | None,
    clock: Clock | None,
    gone_count: int,
    archived_count: int,
    now: datetime,
    table_per_hour: float | None = None,
) -> list[Term]:
    """`gone_count`: owed events whose rows an audit found gone, and that the archive does not hold; `archived_count`: that it
    does, which keeps them for as long as they are open. `table_per_hour`: the most bytes that the table was seen to grow by."""
    if gone_count:
        says = f"The rows of {gone_count:,} owed events are gone at the source: nothing can send them."
        return [Term(Forgets.SOURCE_PURGE, Reach.GONE, says)]
    if archived_count:
        says = (
            f"The archive holds {archived_count:,} of the owed events, whose rows the source has dropped. "
            "How long the rows of the others stay is not known."
        )
        return [
            unknown(Forgets.SOURCE_PURGE, says),
            _disk(Forgets.SOURCE_DISK, "source", options, now, table_per_hour),
        ]
    if retention is Retention.PURGES:
        keeps = options.get("purges_after_seconds")
        if keeps is None:
            return [
                unknown(
                    Forgets.SOURCE_PURGE,
                    "The source deletes old rows. Say after how long: its option purges_after_seconds.",
                )
            ]
        kept = timedelta(seconds=keeps)
        begins = "their mark, which may be as early as their commit" if options["purges_from"] == "mark" else "commit"
        says = f"The source deletes rows {span_says(kept)} after {begins}, as declared."
        return [by_age(Forgets.SOURCE_PURGE, kept, since, clock, says)]
    disk = _disk(Forgets.SOURCE_DISK, "source", options, now, table_per_hour)
    if retention is Retention.DELETES_DELIVERED:
        says = "The source deletes rows once they were delivered; of what is owed none was found gone."
        return [no_limit(Forgets.SOURCE_PURGE, says), disk]
    return [disk]


def own_terms(archived_count: int, approved_until: datetime | None) -> list[Term]:
    """What of our own a recovery goes by. None of it ends for a recovery that is still needed: open items keep the archive's
    files, and an approval that lapsed can be given again. `approved_until`: of the plan that waits; None: none does."""
    found = []
    if archived_count:
        says = (
            f"Our archive keeps the contents of the {archived_count:,} owed events that the source dropped until each of them "
            "is settled or acknowledged for good."
        )
        found.append(no_limit(Forgets.ARCHIVE, says))
    if approved_until is not None:
        says = (
            f"The approval that waits holds until {approved_until:%Y-%m-%d %H:%M} UTC. A recovery asked for later needs a new "
            "plan and a new approval; no evidence goes with it."
        )
        found.append(no_limit(Forgets.APPROVAL, says))
    return found


def record_keeps(options: Options) -> int | None:
    """For how many seconds a row of the record stays, where rows go; of a record of ids, for how many its absence shows
    something. None: not declared.

    >>> record_keeps({"record_keeps_seconds": 60}), record_keeps({"lifetime_seconds": 1800, "lifetime_margin_seconds": 60})
    (60, 1740)
    """
    keeps: int | None = options.get("record_keeps_seconds")
    lifetime: int | None = options.get("lifetime_seconds")
    if lifetime is not None:
        lifetime = max(lifetime - (options.get("lifetime_margin_seconds") or 0), 0)
    return min((one for one in (keeps, lifetime) if one is not None), default=None)


def record_terms(
    options: Options, is_for_good: bool, since: datetime | None, clock: Clock | None, now: datetime
) -> list[Term]:
    """Of the acceptance record, as a table of rows."""
    keeps = record_keeps(options)
    if keeps is not None:
        kept = timedelta(seconds=keeps)
        return [
            by_age(Forgets.RECORD, kept, since, clock, f"The record keeps rows for {span_says(kept)}, as declared.")
        ]
    if is_for_good:
        return [_disk(Forgets.SINK_DISK, "sink", options, now)]
    return [unknown(Forgets.RECORD, "How long the record keeps its rows is not declared: record_keeps_seconds.")]


def memory_terms(
    options: Options,
    is_for_good: bool,
    since: datetime | None,
    clock: Clock | None,
    now: datetime,
    *,
    is_record: bool,
) -> list[Term]:
    """Of the sink that is fired into: how long it knows what it accepted. Nothing declared: as long as its record."""
    found = []
    seconds, entries = options.get("memory_seconds"), options.get("memory_entries")
    if seconds is not None:
        kept = timedelta(seconds=seconds)
        says = f"The sink knows for {span_says(kept)} what it accepted, as declared."
        found.append(by_age(Forgets.SINK_MEMORY, kept, since, clock, says))
    if entries is not None:
        found.append(_entries(entries, options["memory_peak_per_second"], since, clock, now))
    if not found and not is_record:
        found.append(
            _disk(Forgets.SINK_DISK, "delivery", options, now)
            if is_for_good
            else unknown(
                Forgets.SINK_MEMORY, "How long the sink knows what it accepted is not declared: memory_seconds."
            )
        )
    return found


def shortest_horizon(
    source: Options, retention: Retention, record: Options, into: Options, is_for_good: bool, is_into_for_good: bool
) -> tuple[timedelta | None, bool]:
    """T_dedup: the shortest of the declared memories as time, a disk's room among them; and whether all are declared."""
    spans: list[timedelta | None] = []
    if retention is Retention.PURGES:
        spans.append(_seconds(source.get("purges_after_seconds")))
    else:
        spans.append(_room(source))
    keeps = _seconds(record_keeps(record))
    spans.append(_room(record) if keeps is None and is_for_good else keeps)
    told = []
    if into.get("memory_seconds") is not None:
        told.append(_seconds(into["memory_seconds"]))
    if into.get("memory_entries") is not None:
        told.append(span(into["memory_entries"] / into["memory_peak_per_second"]))
    spans += told
    if not told and into is not record:
        spans.append(_room(into) if is_into_for_good else None)
    known = [one for one in spans if one is not None]
    return min(known, default=None), len(known) == len(spans)


def _seconds(number: int | None) -> timedelta | None:
    return None if number is None else timedelta(seconds=number)


def _room(options: Options) -> timedelta | None:
    free, growth = options.get("disk_free_bytes"), options.get("disk_growth_bytes_per_hour")
    return None if free is None or growth is None else span(free / growth * 3600)


def _entries(capacity: int, peak: int, since: datetime | None, clock: Clock | None, now: datetime) -> Term:
    """How many came in since the anchor is not counted anywhere: at most as many as the peak brings."""
    says = f"The sink knows its newest {capacity:,} events; at most {peak:,} a second come in, as declared."
    if since is None or clock is None:
        return unknown(Forgets.SINK_MEMORY_ENTRIES, f"{says} From when on that counts is not known.")
    used = math.ceil(max((now - clock.earliest(since)).total_seconds(), 0.0) * peak)
    return by_entries(capacity, used, peak, now, says)


def _disk(forgets: Forgets, where: str, options: Options, now: datetime, table_per_hour: float | None = None) -> Term:
    """Of what was declared and what was seen, the faster growth counts."""
    free, growth = options.get("disk_free_bytes"), options.get("disk_growth_bytes_per_hour")
    if free is None or growth is None:
        says = f"The {where} deletes nothing, so its disk is the limit. Declare disk_free_bytes and its growth there."
        return unknown(forgets, says)
    says = f"The {where} deletes nothing; its disk has room for {free:,} bytes and takes at most {growth:,} an hour, as declared."
    if table_per_hour is not None and table_per_hour > growth:
        says += f" The table alone was seen to grow by {round(table_per_hour):,} an hour, and that counts."
        growth = math.ceil(table_per_hour)
    return by_room(forgets, free, growth, now, says)
