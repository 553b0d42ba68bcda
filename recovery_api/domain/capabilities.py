"""What a sink can do, and so what may be promised (THEORY section 5). Declared capability is tested, not believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any


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
    """Why the fence that this kind of sink should have is missing, and what to do; empty where it is there."""
    may_append: bool = False
    """Its owner declares its rows to be the effect, and this login may lock it and insert there now."""
    absorbs_late_sends: bool = False
    """A valid unique constraint on the identity, checked at once, refuses what a stopped relay may still send."""
    unappended_because: str = ""
    """Why nothing may be appended now to a sink of a kind that allows it, and what to grant; empty otherwise."""
    mark_because: str = ""
    """Why nothing is ever fired into this record: its rows are only the mark of an effect. Empty otherwise."""
    apart_because: str = ""
    """Where record and delivery are two ends: why nothing is fired into the delivery."""


APART = (
    "What was accepted is read from one end and sent to another. A fence, and an append under a lock, protect a batch only"
    " where one transaction changes the record together with what is delivered, and between two ends there is none. So this"
    " pipeline is audited and planned, and nothing is fired into its delivery."
)
APART_REMEDY = (
    "Where the two are one table or one kit, register that once, as one sink. Where they are not, what is owed is sent by"
    " hand, and the next audit shows what has arrived."
)


def capability_joined(record: Capability, delivery: Capability | None) -> Capability:
    """What a record and a delivery may do together, each as tested. None: the record is fired into itself, as one end.

    What was accepted is read from the record: its reading, its memory of identities and what it can lose are the pair's.
    How a batch arrives is the delivery's. The fence and the append are nobody's: their one step needs both in one
    transaction.

    >>> inbox = Capability(Archetype.QUERYABLE, True, True, False, False, False, mark_because="A row is only a mark.")
    >>> kit = Capability(Archetype.FENCED, True, True, True, True, True, batch_limit=500)
    >>> pair = capability_joined(inbox, kit)
    >>> pair.archetype, pair.has_fence, pair.has_identity_key, pair.batch_limit, pair.mark_because
    (<Archetype.QUERYABLE: 'queryable'>, False, False, 500, '')
    >>> pair.apart_because == APART, capability_joined(kit, None) == kit
    (True, True)
    """
    if delivery is None:
        return record
    return Capability(
        archetype=archetype_weaker(Archetype.QUERYABLE, record.archetype),
        can_read_record=record.can_read_record,
        is_record_complete=record.is_record_complete,
        has_fence=False,
        has_identity_key=record.has_identity_key,
        lands_in_one_transaction=delivery.lands_in_one_transaction,
        can_lose_acceptances=record.can_lose_acceptances,
        horizon_seconds=record.horizon_seconds,
        batch_limit=delivery.batch_limit,
        grounds=(
            APART,
            *(f"Record: {ground}" for ground in record.grounds),
            *(f"Delivery: {ground}" for ground in delivery.grounds),
        ),
        may_append=False,
        absorbs_late_sends=delivery.absorbs_late_sends,
        mark_because=delivery.mark_because,
        apart_because=APART,
    )


def capability_from_row(row: Mapping[str, Any] | None) -> Capability | None:
    """What a connection test kept of a sink. None: nothing was tested, or by a version that kept less.

    >>> capability_from_row({"archetype": "blind"}) is None
    True
    """
    known = {one.name: one for one in fields(Capability)}
    needed = ("archetype", "can_read_record", "is_record_complete", "has_fence", "has_identity_key")
    if row is None or any(name not in row for name in (*needed, "lands_in_one_transaction")):
        return None
    kept = {name: value for name, value in row.items() if name in known}
    return Capability(**{**kept, "archetype": Archetype(row["archetype"]), "grounds": tuple(row.get("grounds") or ())})
