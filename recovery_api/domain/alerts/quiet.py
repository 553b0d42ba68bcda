"""What keeps an alert from being told: an acknowledgement, a mute. Both have an end, and both are always visible.

The law: nothing is silent for good. An acknowledgement ends by itself, and a worse state breaks through it; a mute without an
end is refused. Neither resolves anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from recovery_api.domain.errors import BadInput

LONGEST = timedelta(days=31)
LEAST = timedelta(minutes=1)


class Told(StrEnum):
    """What destinations were told of an alert last."""

    NOTHING = "nothing"
    """Nobody was paged, or somebody has to be paged again."""
    FIRING = "firing"
    RESOLVED = "resolved"


class Mutes(StrEnum):
    """By what a mute names the alerts it keeps silent."""

    PIPELINE = "pipeline"
    SOURCE = "source"
    SINK = "sink"
    LABEL = "label"
    """`name=value`: every pipeline with that label."""


@dataclass(frozen=True, slots=True)
class Muted:
    """A mute that stands. `value`: the name of a pipeline, source or sink, or a label. `cause` "": every cause."""

    key: str
    by: Mutes
    value: str
    until: datetime
    cause: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """The names by which an alert may be muted and routed; "" where it has none."""

    cause: str
    pipeline: str = ""
    source: str = ""
    sinks: tuple[str, ...] = ()
    labels: Mapping[str, str] | None = None


def mute_of(about: About, mutes: Iterable[Muted], now: datetime) -> Muted | None:
    """The mute that keeps this silent; of several the one that ends last. None: it is told."""
    found = [one for one in mutes if one.until > now and _names(one, about)]
    return max(found, key=lambda one: one.until, default=None)


def _names(mute: Muted, about: About) -> bool:
    if mute.cause and mute.cause != about.cause:
        return False
    match mute.by:
        case Mutes.PIPELINE:
            return mute.value == about.pipeline
        case Mutes.SOURCE:
            return mute.value == about.source
        case Mutes.SINK:
            return mute.value in about.sinks
        case Mutes.LABEL:
            name, _, value = mute.value.partition("=")
            return (about.labels or {}).get(name) == value


def is_to_be_told(
    told: Told, *, is_open: bool, is_acknowledged: bool, is_muted: bool, is_flapping: bool, is_broken_through: bool
) -> bool:
    """Whether somebody is to be paged now. `is_flapping`: it opened again a moment ago. `is_broken_through`: it became worse.

    A mute holds even then: it was set on purpose, with an end, for whatever may come.
    """
    if not is_open or is_muted:
        return False
    if is_broken_through:
        return True
    return told is not Told.FIRING and not is_acknowledged and not is_flapping


def until_check(until: datetime | None, now: datetime, what: str) -> datetime:
    """The end of an acknowledgement or a mute. Raises: BadInput without one, and for one that is no end.

    >>> until_check(None, datetime(2026, 3, 1), "mute")
    Traceback (most recent call last):
    ...
    recovery_api.domain.errors.BadInput: until: is missing. A mute has an end: give one within 31 days.
    """
    if until is None:
        raise BadInput("until", "is missing", f"A {what} has an end: give one within {LONGEST.days} days.")
    if until.tzinfo is None and now.tzinfo is not None:
        raise BadInput("until", "has no time zone", "Write it as 2026-03-01T08:00:00Z.")
    if until < now + LEAST:
        raise BadInput("until", f"{until:%Y-%m-%d %H:%M} UTC is not ahead", "Give a moment at least a minute from now.")
    if until > now + LONGEST:
        raise BadInput(
            "until", f"is more than {LONGEST.days} days away", "Nothing is silent for so long: give an earlier end."
        )
    return until


def note_check(note: str, what: str) -> str:
    """Why somebody keeps an alert silent. Raises: BadInput."""
    text = note.strip()
    if not text or len(text) > 2000:
        raise BadInput(
            "note",
            "is missing" if not text else "is longer than 2,000 characters",
            f"Say why: a {what} is read by others.",
        )
    return text
