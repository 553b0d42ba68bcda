"""The abilities that a kind declares: what its connector may be asked.

What may be promised of a sink is in `Capability`. One law: code that needs an ability asks for the ability, never for a
kind by its name.
"""

from __future__ import annotations

from enum import StrEnum


class Ability(StrEnum):
    """One thing that a connector of a kind can be asked for."""

    JOINED_SNAPSHOT = "joined snapshot"
    """A source: what is read belongs to one snapshot, which other processes join."""
    IMMUTABLE_BELOW = "immutable below"
    """A source whose rows at or below a frontier never change. Reading their count and digest twice checks that."""
    RECORD_BY_RANGE = "record by range"
    """A record: answers by range of coordinates, so that tasks share the reading."""
    RECORD_BY_SCAN = "record by scan"
    """A record: knows no coordinate, only ids, and is read whole, in shares."""
    ORDERED_EFFECT = "ordered effect"
    """A record: can be asked which keys have a later event accepted, where the effect needs each key's order."""
    FOLLOWED = "followed"
    """A record: can be asked what an earlier snapshot of it did not show, so that an audit reads what is new."""
    STATE = "copy of state"
    """A record beside which lies a copy of state, a row a key, that can be read in the record's own snapshot."""
    COMMITTED_STATE = "committed state"
    """A source: gives of each event the hash of its key and the digest of its content as a copy of state would hold it."""
    FENCED = "fenced"
    """A delivery: claim, arm, stage, fire; an older generation is rejected at admission."""
    APPENDED = "appended"
    """A delivery: one transaction a part, under a lock that excludes every other writer."""
    DRILLED = "drilled"
    """A delivery: makes a place of its own for a drill, apart from what it holds."""


READINGS = frozenset({Ability.JOINED_SNAPSHOT, Ability.IMMUTABLE_BELOW})
"""The ways of reading a source. Each kind of source has at least one of them."""

RECORDS = frozenset({Ability.RECORD_BY_RANGE, Ability.RECORD_BY_SCAN})
"""How a record answers. A sink without one cannot be read back: it does not answer at all."""

DELIVERIES = frozenset({Ability.FENCED, Ability.APPENDED})
"""How a delivery is made. A sink without one is a record alone: it is audited and planned, and never fired into."""
