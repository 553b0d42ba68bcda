"""What an observation does to an alert: opens it, sees it again, finds it worse, resolves it, or opens it again.

The law: a newer observation alone moves an alert. One that shows the cause opens it at once; two that do not, a period apart,
resolve it; what was not observed leaves it as it is. All times are the control database's, and are given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from recovery_api.domain.alerts.causes import Cause, Scope, Severity

REOPENS_WITHIN = timedelta(minutes=30)
"""An alert that opens again so soon is the same one, and pages nobody until it has been open for as long again."""
SEEN_EVERY = timedelta(seconds=30)
"""The same evidence seen again sooner is not written down again."""


class Subject(NamedTuple):
    """What an alert is about. `key`: the row's; 0 for the installation."""

    scope: Scope
    key: int


INSTALLATION = Subject(Scope.INSTALLATION, 0)


class Change(StrEnum):
    """What happened to an alert. Each is a line of its history but `SEEN`."""

    OPENED = "opened"
    REOPENED = "reopened"
    """It had resolved less than half an hour before: the same alert, and nobody is paged."""
    SEEN = "seen"
    """Observed once more, no worse than before."""
    WORSENED = "worsened"
    """The severity rose, or its number grew by what its cause names. It breaks through an acknowledgement."""
    CLEARING = "clearing"
    """The first newer observation that does not show it. The second one resolves it."""
    RESOLVED = "resolved"


class Silence(StrEnum):
    """What else is a line of an alert's history: what keeps it from being told, and what ends that."""

    ACKNOWLEDGED = "acknowledged"
    GIVEN_BACK = "given back"
    CAME_BACK = "came back"
    """The acknowledgement's end has come."""
    BROKE_THROUGH = "broke through"
    """It is worse than when it was acknowledged."""
    MUTED = "muted"
    UNMUTED = "no longer muted"


@dataclass(frozen=True, slots=True)
class Observed:
    """One observation. `at`: when what it rests on was read; of two the later one is newer. `since`: from when on it is so.

    `severity` None: the cause's own. `number`: events, bytes; 0: none. `evidence`: what it rests on, `audit:<id>`.
    `is_conclusive`: it ends the alert alone, because it is of an act whose purpose that was. `period`: how far apart two must
    be; None: the cause's own. `end`: which end it is put down to, to be grouped by.
    """

    cause: Cause
    subject: Subject
    is_shown: bool
    at: datetime
    says: str = ""
    severity: Severity | None = None
    number: int = 0
    evidence: str = ""
    is_conclusive: bool = False
    period: timedelta | None = None
    since: datetime | None = None
    end: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """What is kept of an alert. `seen_at`: when last observed to be so; `observed_at`: when last observed at all.

    `clear_at`: the first newer observation that did not show it. `level_severity`, `level_number`: the worst that was told.
    """

    severity: Severity
    number: int
    says: str
    evidence: str
    since: datetime
    opened_at: datetime
    seen_at: datetime
    observed_at: datetime
    level_severity: Severity
    level_number: int
    clear_at: datetime | None = None
    resolved_at: datetime | None = None
    reopened_count: int = 0

    @property
    def is_open(self) -> bool:
        return self.resolved_at is None


@dataclass(frozen=True, slots=True)
class Step:
    """What an observation came to. `held` None: there is still no alert. `change` None: nothing is to be written.

    `is_new`: an alert of its own begins, whatever there was before.
    """

    held: Held | None
    change: Change | None = None
    is_new: bool = False


def observe(held: Held | None, seen: Observed, now: datetime) -> Step:
    """The alert after `seen`. `held` None: there is none of this cause and subject, or the last one resolved long ago."""
    if held is None:
        return _open(seen, now) if seen.is_shown else Step(None)
    if not held.is_open:
        return _reopen(held, seen, now)
    return _shown(held, seen) if seen.is_shown else _not_shown(held, seen, now)


def is_worse(held: Held, seen: Observed) -> bool:
    """Whether this is worse than what was told last."""
    if _severity(seen).rank > held.level_severity.rank:
        return True
    return is_grown(seen.number, held.level_number, seen.cause.worse_by)


def is_grown(number: int, before: int, factor: float) -> bool:
    """Whether a number has grown by its cause's factor; 0: no number says anything.

    >>> is_grown(20, 10, 2.0), is_grown(19, 10, 2.0), is_grown(11, 10, 1.0), is_grown(10, 10, 1.0), is_grown(99, 1, 0.0)
    (True, False, True, False, False)
    """
    return bool(factor and before) and number > before and number >= before * factor


def is_quiet_after_reopening(held: Held, now: datetime) -> bool:
    """Whether it opened again so lately that nobody is paged: it may be gone in a moment, as it was before."""
    return held.is_open and bool(held.reopened_count) and now - held.opened_at < REOPENS_WITHIN


def period_of(seen: Observed) -> timedelta:
    """How far apart the two observations must be that resolve it."""
    return seen.period or seen.cause.period or timedelta(0)


def _severity(seen: Observed) -> Severity:
    return seen.severity or seen.cause.severity


def _open(seen: Observed, now: datetime) -> Step:
    held = Held(
        severity=_severity(seen),
        number=seen.number,
        says=seen.says,
        evidence=seen.evidence,
        since=seen.since or seen.at,
        opened_at=now,
        seen_at=seen.at,
        observed_at=seen.at,
        level_severity=_severity(seen),
        level_number=seen.number,
    )
    return Step(held, Change.OPENED, is_new=True)


def _reopen(held: Held, seen: Observed, now: datetime) -> Step:
    """Of an alert that had resolved. What was read before that says nothing new."""
    assert held.resolved_at is not None
    if not seen.is_shown or seen.at <= held.observed_at:
        return Step(held)
    if now - held.resolved_at > REOPENS_WITHIN:
        return _open(seen, now)
    found = _as_seen(held, seen)
    level = _raised(held, seen) if is_worse(held, seen) else {}
    again = replace(
        found, since=seen.since or seen.at, opened_at=now, resolved_at=None, reopened_count=held.reopened_count + 1
    )
    return Step(replace(again, **level), Change.REOPENED)


def _shown(held: Held, seen: Observed) -> Step:
    is_newer = seen.at > held.observed_at
    if seen.at < held.observed_at:
        return Step(held)
    found = _as_seen(held, seen)
    if is_worse(held, seen):
        return Step(replace(found, **_raised(held, seen)), Change.WORSENED)
    if not is_newer or (
        seen.evidence == held.evidence and held.clear_at is None and seen.at - held.observed_at < SEEN_EVERY
    ):
        return Step(held)
    return Step(found, Change.SEEN)


def _not_shown(held: Held, seen: Observed, now: datetime) -> Step:
    if seen.at <= held.seen_at:
        return Step(held)
    if seen.is_conclusive or (held.clear_at is not None and seen.at - held.clear_at >= period_of(seen) > timedelta(0)):
        return Step(
            replace(held, observed_at=seen.at, resolved_at=now, clear_at=held.clear_at or seen.at), Change.RESOLVED
        )
    if held.clear_at is None:
        return Step(replace(held, observed_at=seen.at, clear_at=seen.at), Change.CLEARING)
    return Step(held)


def _as_seen(held: Held, seen: Observed) -> Held:
    return replace(
        held,
        severity=_severity(seen),
        number=seen.number,
        says=seen.says,
        evidence=seen.evidence,
        seen_at=seen.at,
        observed_at=seen.at,
        clear_at=None,
    )


def _raised(held: Held, seen: Observed) -> dict[str, Any]:
    worst = max(held.level_severity, _severity(seen), key=lambda one: one.rank)
    return {"level_severity": worst, "level_number": max(held.level_number, seen.number)}
