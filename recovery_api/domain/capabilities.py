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
    """Where a sink of a fenced kind has no fence now: why, and what to do about it."""
    mark_because: str = ""
    """Where a row in the record is only the mark of an effect: why nothing is ever fired into it."""
