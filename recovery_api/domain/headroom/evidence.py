"""Until when what a verdict rests on can be read again, and how the verdict reads after that: *unknown*.

The law: it is fixed when the verdict is issued, from what the owners declared then, and it is the earliest moment at which any
of it may be gone. What nobody declared has no such moment, and none is made up: *undeclared* is not *expired*. A full disk
stops writes and takes nothing away, so it is no such moment either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from recovery_api.domain.headroom.declared import memory_terms, record_terms
from recovery_api.domain.headroom.seen import Clocks
from recovery_api.domain.headroom.terms import Clock, Forgets, Reach, Term, by_age, no_limit, unknown
from recovery_api.domain.kinds.base import Retention
from recovery_api.domain.outcomes import CLEAN, EXIT_UNKNOWN, OUTCOMES, Status
from recovery_api.domain.schedules import span_says

EXPIRED = "evidence_expired"
"""How a verdict is shown whose evidence has expired: a row of domain.looks."""

Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EvidenceUntil:
    """`until` None: no end of it is known. `says`: why then, or why not; it may be shown as it stands."""

    until: datetime | None
    says: str


def evidence_until(status: Status, terms: Sequence[Term]) -> EvidenceUntil:
    """The earliest of what is known of `evidence_terms`. Where something is not known, it lasts at most so long.

    A hazard has no end: that something wrong was accepted is not taken back by rows that go.

    >>> evidence_until(Status.OWED, [unknown(Forgets.RECORD, "Declare record_keeps_seconds.")])
    EvidenceUntil(until=None, says='How long its evidence lasts is not known. Declare record_keeps_seconds.')
    """
    if status is Status.UNKNOWN:
        return EvidenceUntil(None, "")
    if status is Status.HAZARD:
        return EvidenceUntil(None, "What was wrongly accepted stays so, whatever an end forgets.")
    known = [(one.expires_at, one.says) for one in terms if one.reach is Reach.KNOWN and one.expires_at is not None]
    missing = " ".join(dict.fromkeys(one.says for one in terms if one.reach is Reach.UNKNOWN))
    if not known:
        if missing:
            return EvidenceUntil(None, f"How long its evidence lasts is not known. {missing}")
        return EvidenceUntil(None, "Its evidence has no end: both ends delete nothing of it, as declared.")
    until, because = min(known)
    if missing:
        return EvidenceUntil(until, f"Its evidence lasts until {_at(until)} at most. {because} Not known: {missing}")
    return EvidenceUntil(until, f"Its evidence lasts until {_at(until)}. {because}")


def evidence_terms(
    status: Status,
    source: Options,
    retention: Retention,
    record: Options,
    into: Options,
    keeps: tuple[bool, bool],
    read_since: datetime | None,
    open_since: datetime | None,
    clocks: Clocks,
    now: datetime,
) -> list[Term]:
    """What a verdict of this status rests on at both ends.

    `read_since`: from when on it rests on what it read itself; what is older, earlier audits saw, and the ledger remembers.
    `open_since`: from when on the next reading has to begin. `keeps`: whether record and delivery delete nothing.

    What is lost is remembered event by event, so that only a record which forgets may make it untrue. What is clean rests on the source's rows as well, and on the sink's memory: after that, a copy that comes late is accepted again.
    """
    terms = [_for_good(one) for one in record_terms(record, keeps[0], read_since, clocks.record, now)]
    if status not in CLEAN:
        return terms
    terms.append(_source_rows(source, retention, read_since, clocks.source))
    memory = memory_terms(into, keeps[1], open_since, clocks.into, now, is_record=into is record)
    return [*terms, *(_for_good(one) for one in memory)]


def is_expired(until: datetime | None, now: datetime) -> bool:
    """Whether what this rests on may be gone. None: nothing says so."""
    return until is not None and now >= until


def word_read(word: str, until: datetime | None, now: datetime) -> str:
    """How a verdict's word is to be shown now: itself, or that its evidence has expired.

    >>> from datetime import UTC
    >>> noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    >>> word_read("exactly_once", noon, noon), word_read("exactly_once", None, noon)
    ('evidence_expired', 'exactly_once')
    """
    return EXPIRED if is_expired(until, now) else word


def lanes_read(lanes: Mapping[str, Any], until: datetime | None, now: datetime) -> Mapping[str, Any]:
    """A verdict's lanes as they read now: each is unknown once the whole is, and says what was found.

    >>> from datetime import UTC
    >>> noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    >>> lanes_read({"0": {"status": "owed", "says": ["Owed at 9."]}}, noon, noon)["0"]["status"]
    'unknown'
    """
    if until is None or not is_expired(until, now):
        return lanes
    return {
        lane: {
            **row,
            "status": Status.UNKNOWN.value,
            "status_found": row.get("status"),
            "is_expired": True,
            "says": [expired_says(until, " ".join(row.get("says") or []))],
        }
        for lane, row in lanes.items()
    }


def exit_code_read(word: str, until: datetime | None, now: datetime) -> int:
    """As the table of outcomes has it; unknown once its evidence has expired."""
    return EXIT_UNKNOWN if is_expired(until, now) else OUTCOMES[word].exit_code


def expired_says(until: datetime, found: str) -> str:
    """What is said instead of `found`, which was said when it was issued."""
    return f"Unknown: its evidence expired at {_at(until)}, when an end may have forgotten it. When issued: {found}"


def _for_good(term: Term) -> Term:
    if term.forgets is Forgets.SINK_DISK and term.reach is not Reach.GONE:
        return no_limit(term.forgets, "The sink deletes nothing, as declared.")
    return term


def _source_rows(source: Options, retention: Retention, since: datetime | None, clock: Clock | None) -> Term:
    if retention is Retention.DELETES_DELIVERED:
        says = "The source deletes rows once they were delivered; how long they stay is not declared."
        return unknown(Forgets.SOURCE_PURGE, says)
    if retention is not Retention.PURGES:
        return no_limit(Forgets.SOURCE_PURGE, "The source deletes nothing, as declared.")
    seconds = source.get("purges_after_seconds")
    if seconds is None:
        says = "The source deletes old rows. Say after how long: its option purges_after_seconds."
        return unknown(Forgets.SOURCE_PURGE, says)
    kept = timedelta(seconds=seconds)
    says = f"The source deletes rows {span_says(kept)} after {source['purges_from']}, as declared."
    return by_age(Forgets.SOURCE_PURGE, kept, since, clock, says)


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
