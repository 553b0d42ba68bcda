"""What a sink can do, and so what may be promised (THEORY section 5). Declared capability is tested, not believed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Archetype(StrEnum):
    """What recovery may do with a sink."""

    BLIND = "blind"
    """Nothing can be read back: the ambiguous window is listed and the recorded preference applied."""
    QUERYABLE = "queryable"
    """The acceptance record can be read; nothing is checked at admission."""
    DEDUPLICATING = "deduplicating"
    """An identity is absorbed when it repeats, inside a horizon."""
    FENCED = "fenced"
    """An older generation is rejected at admission; claim, arm, fire."""


WEAKEST_FIRST = (Archetype.BLIND, Archetype.DEDUPLICATING, Archetype.QUERYABLE, Archetype.FENCED)


def archetype_weaker(declared: str | None, tested: Archetype) -> Archetype:
    """What counts of the two: the weaker. None: nothing was declared.

    >>> archetype_weaker("fenced", Archetype.QUERYABLE), archetype_weaker("queryable", Archetype.FENCED)
    (<Archetype.QUERYABLE: 'queryable'>, <Archetype.QUERYABLE: 'queryable'>)
    """
    return tested if declared is None else min(Archetype(declared), tested, key=WEAKEST_FIRST.index)


@dataclass(frozen=True, slots=True)
class Capability:
    """One sink as tested. `horizon_seconds` None with `has_identity_key`: it remembers for good."""

    archetype: Archetype
    can_read_record: bool
    is_record_complete: bool
    has_fence: bool
    has_identity_key: bool
    lands_in_one_transaction: bool
    can_lose_acceptances: bool = False
    horizon_seconds: int | None = None
    batch_limit: int | None = None
    grounds: tuple[str, ...] = ()
    """How each point was found out, a sentence each, and every path into the record that is not disciplined."""
    unfenced_because: str = ""
    """Why a sink of a fenced kind has no fence now, and what to do about it; empty otherwise."""
    may_append: bool = False
    """Its owner declares its rows to be the effect, and this login may lock it and insert there now."""
    absorbs_late_sends: bool = False
    """A valid unique constraint on the identity, checked at once, refuses what a stopped relay may still send."""
    unappended_because: str = ""
    """Why nothing may be appended now to a sink of a kind that allows it, and what to grant; empty otherwise."""
    mark_because: str = ""
    """Why nothing is ever fired into this record: its rows are only the mark of an effect. Empty otherwise."""
