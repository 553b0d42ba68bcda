"""How long a recovery may still wait: by when it must have started, and by when somebody must have decided.

The law: for each memory L = E - now, and

    last start = now + (L - margin - overhead - B/r) / (1 + a/r)

with B owed, a its growth until the start, r the re-drive's rate. A recovery begun at x from now sends B + a x events, takes
overhead + (B + a x)/r, and must end a margin before E; the formula is that, solved for x. Where what is sent takes room of the
memory itself, s seconds an event, (B + a x) s is subtracted as well. Each of several parts k must end before its own
E_k: L_k - margin - C_1 - … - C_k. What is unknown is left out of a bound (*at most*), never taken for nothing to fear.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from recovery_api.domain.headroom.terms import Forgets, Part, Reach, Term, span
from recovery_api.domain.outcomes import EXIT_DONE, EXIT_OWED, EXIT_UNKNOWN


class Standing(StrEnum):
    """What is said of a pipeline's headroom, worst first. A row: the word, its exit code."""

    exit_code: int

    def __new__(cls, word: str, exit_code: int = EXIT_UNKNOWN) -> Standing:
        row = str.__new__(cls, word)
        row._value_ = word
        row.exit_code = exit_code
        return row

    GONE = "gone", EXIT_OWED
    """A recovery that starts now may end too late."""
    LOW = "low", EXIT_OWED
    """It may still end in time if it starts now, and not if it waits as long as a person takes to decide."""
    UNKNOWN = "unknown", EXIT_UNKNOWN
    """Something it rests on is not known. At best it is what the bound says."""
    OK = "ok", EXIT_DONE
    """There is time to decide."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What a recovery takes. `owed`: B, at least. `growth_per_second`: a, zero while the relay delivers.

    `rate_per_second`: r, the slowest recent re-drive; None: none was seen. `overhead`, `growth_per_second` None: not
    measured. `margin`, `operator_delay` None: not declared. `is_overhead_drilled`: no recovery showed it, only a drill.
    """

    owed: int
    growth_per_second: float | None
    rate_per_second: float | None
    overhead: timedelta | None
    margin: timedelta | None
    operator_delay: timedelta | None
    is_overhead_drilled: bool = False

    @property
    def missing(self) -> tuple[str, ...]:
        """What is not known of it, by name."""
        names = ("growth_per_second", "rate_per_second", "overhead", "margin", "operator_delay")
        return tuple(name for name in names if getattr(self, name) is None)

    @property
    def is_known(self) -> bool:
        return not self.missing

    @property
    def kept_back(self) -> timedelta:
        """Margin and overhead, as far as they are known."""
        return (self.margin or timedelta(0)) + (self.overhead or timedelta(0))


@dataclass(frozen=True, slots=True)
class TermLeft:
    """One memory, judged. `left`: L; None: it has no limit, or none is known. `last_start`, `decide_by`: None: the same.

    `is_bound`: the two are *at most*, because rate or overhead is not known. `part`: which part of a recovery binds, from 1; 0: it is one.
    """

    term: Term
    standing: Standing
    left: timedelta | None = None
    last_start: datetime | None = None
    decide_by: datetime | None = None
    is_bound: bool = False
    part: int = 0


@dataclass(frozen=True, slots=True)
class Headroom:
    """All memories together. `left`, `last_start`, `decide_by`: the least of what is known; None: nothing limits it that
    is known. `is_left_bound`, `is_bound`: they are *at most*, because something is not known. `binds`: whose memory ends
    first. `is_expired`: something is over already, not only too near.
    """

    standing: Standing
    left: timedelta | None
    last_start: datetime | None
    decide_by: datetime | None
    is_left_bound: bool
    is_bound: bool
    is_expired: bool
    binds: Forgets | None
    part: int
    terms: tuple[TermLeft, ...]


def headroom(terms: Sequence[Term], pace: Pace, now: datetime, parts: Sequence[Part] = ()) -> Headroom:
    """Any memory that is gone: *gone*. Else any that is unknown: *unknown*, at most what the others leave.

    `parts`: of a recovery that is split, instead of B, overhead and r.
    """
    judged = [term_left(term, pace, now) for term in terms]
    if parts:
        ends = min(part.expires_at for part in parts)
        whole = Term(Forgets.SINK_MEMORY, Reach.KNOWN, "Each part has an end of its own.", ends, parts=tuple(parts))
        judged.append(term_left(whole, pace, now))
    words = {one.standing for one in judged} or {Standing.UNKNOWN}
    standing = next(word for word in Standing if word in words)
    if standing is Standing.LOW and Standing.UNKNOWN in words:
        standing = Standing.UNKNOWN
    limits = [one for one in judged if one.left is not None]
    starts = [one for one in judged if one.last_start is not None]
    is_lost = any(one.term.reach is Reach.GONE for one in judged)
    binding = min(starts, key=lambda one: one.last_start or now) if starts else None
    if is_lost:
        binding = next(one for one in judged if one.term.reach is Reach.GONE)
    is_unknown = any(one.term.reach is Reach.UNKNOWN for one in judged) or not judged
    has_no_time = standing is Standing.GONE
    return Headroom(
        standing=standing,
        left=None if is_lost else min((one.left for one in limits if one.left is not None), default=None),
        last_start=None if has_no_time or binding is None else binding.last_start,
        decide_by=None if has_no_time or binding is None else binding.decide_by,
        is_left_bound=is_unknown and not is_lost,
        is_bound=not has_no_time and (is_unknown or any(one.is_bound for one in judged)),
        is_expired=is_lost or any(one.left is not None and one.left <= timedelta(0) for one in judged),
        binds=binding.term.forgets if binding else None,
        part=binding.part if binding else 0,
        terms=tuple(judged),
    )


LONGEST_KEPT = timedelta(hours=1)
"""A word that was worked out is worked out anew after that, whatever is known of when it changes."""


def holds_until(found: Headroom, pace: Pace, changes: Sequence[datetime], now: datetime) -> datetime:
    """Until when the word is sure to stay as it is while nothing happens. `changes`: moments at which what it rests on changes.

    B is counted in whole events, so moments may be told later by what two events take.
    """
    slack = timedelta(seconds=1) + (span(2 / pace.rate_per_second) if pace.rate_per_second else timedelta(0))
    told = [at for one in found.terms for at in (one.term.expires_at, one.last_start, one.decide_by) if at is not None]
    ahead = [*(at - slack for at in told if at >= now), *(at for at in changes if at >= now)]
    return min([*ahead, now + LONGEST_KEPT])


def pace_in_parts(terms: Sequence[Term], pace: Pace, now: datetime, most: int) -> Pace:
    """The pace with an overhead for each part of a recovery whose parts have `most` events, by what is owed at its last start.

    That start is the one of a recovery in one part, so the parts are rather too many than too few.
    """
    if pace.overhead is None:
        return pace
    found = headroom(terms, pace, now)
    waits = (found.last_start - now).total_seconds() if found.last_start else 0.0
    owed = pace.owed + (pace.growth_per_second or 0.0) * max(waits, 0.0)
    return replace(pace, overhead=pace.overhead * max(1, math.ceil(owed / most)))


def term_left(term: Term, pace: Pace, now: datetime) -> TermLeft:
    """One memory beside what a recovery takes."""
    if term.reach is Reach.GONE:
        return TermLeft(term, Standing.GONE)
    if term.reach is Reach.NO_LIMIT:
        return TermLeft(term, Standing.OK)
    if term.reach is Reach.UNKNOWN or term.expires_at is None:
        return TermLeft(term, Standing.UNKNOWN)
    if term.parts:
        return _parts_left(term, pace, now)
    left = term.expires_at - now
    rate = pace.rate_per_second
    each = term.sent_seconds + (1 / rate if rate else 0.0)
    room = (left - pace.kept_back).total_seconds() - pace.owed * each
    return _judge(term, left, span(room / (1 + (pace.growth_per_second or 0.0) * each)), pace, now, pace.is_known)


def _parts_left(term: Term, pace: Pace, now: datetime) -> TermLeft:
    """The part that must start first, told as when the whole must start."""
    before = timedelta(0)
    rooms = []
    for part in term.parts:
        before += part.takes
        rooms.append(part.expires_at - now - (pace.margin or timedelta(0)) - before)
    least = min(range(len(rooms)), key=rooms.__getitem__)
    ends = min(part.expires_at for part in term.parts)
    told = replace(term, says=f"{term.says} Part {least + 1} of {len(rooms)} binds.")
    rate = pace.rate_per_second
    growth = pace.growth_per_second or 0.0
    room = span(rooms[least].total_seconds() / (1 + (growth / rate if rate else 0.0)))
    is_known = not {"margin", "operator_delay"} & set(pace.missing) and (
        pace.growth_per_second == 0 or not {"growth_per_second", "rate_per_second"} & set(pace.missing)
    )
    return _judge(told, ends - now, room, pace, now, is_known, least + 1)


def _judge(
    term: Term, left: timedelta, room: timedelta, pace: Pace, now: datetime, is_known: bool, part: int = 0
) -> TermLeft:
    """`room`: how long a start may wait, at most where not everything is known."""
    if room < timedelta(0) or left <= timedelta(0):
        return TermLeft(term, Standing.GONE, left, None, None, False, part)
    start = now + room
    decide = start - (pace.operator_delay or timedelta(0))
    if not is_known:
        return TermLeft(term, Standing.UNKNOWN, left, start, decide, True, part)
    return TermLeft(term, Standing.LOW if now > decide else Standing.OK, left, start, decide, False, part)
