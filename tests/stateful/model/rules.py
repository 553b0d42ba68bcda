"""How large a world is explored, what its sink can do, what may go wrong in it, and which rule is taken away."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum


class Identity(StrEnum):
    """What the sink does with an event that it has accepted before."""

    KEY = "key"
    """It remembers every coordinate for good and absorbs repeats: the sink kit."""
    FORGETS = "forgets"
    """It absorbs repeats as long as it remembers, and may forget any of them at any time."""
    NONE = "none"
    """It accepts a repeat: only the fence, the claim and the hand-over stand between a recovery and a duplicate."""


class Rule(StrEnum):
    """A rule of the protocol that can be taken away, to see that it is needed."""

    FENCE = "the fence is tested at admission"
    CLAIM_BEFORE_READ = "the record is read under the claim"
    HAND_OVER = "a relay run starts where the last fire left off"
    START_IN_FIRE = "the fire itself stores the start"
    FRONTIER_COVERS = "without an identity key, f lies at or above everything accepted"
    RECOVERY_PER_RESTART = "without an identity key, every relay restart goes through a recovery"
    SAFE_FRONTIER = "f lies at or below the safe frontier"
    BOUND_APPROVAL = "an approval is bound to its plan"
    LOCKED_SETTLE = "a claim is settled by locking it"
    SINK_SETTLES = "what became of a claim is asked of the sink"
    ALL_SETTLED = "every generation of a recovery is settled before it ends, not only its last"
    FOUND_BY_NAME = "a claim whose answer was lost is found by its recoverer's name, and released"
    NEWER_CLAIM = "a claim found open is voided by a newer one, not waited for"
    RECOMPUTED_DIGEST = "the sink counts and digests the staged rows itself"
    RESTORE_STOPS = "nothing fires at a restored sink until its counter was raised and it was audited"


@dataclass(frozen=True, slots=True)
class World:
    """The sizes bound the exploration; nothing else does.

    `committed`: how many events are committed from the start; the others commit in any order while everything goes on.
    `relay_starts` counts the first run. `recoverers`: worker processes in all. `recoveries`: approved plans in all.
    """

    events: int = 2
    committed: int = 2
    relay_starts: int = 2
    recoverers: int = 2
    recoveries: int = 1
    identity: Identity = Identity.KEY
    lands_one_by_one: bool = False
    """Entries land one at a time, each checked at the fence, instead of all in one transaction."""
    has_late_stagers: bool = False
    """A fire may be sent before all rows are staged; the rest is staged whenever it likes."""
    has_copies: bool = False
    """The transport may copy a send."""
    may_stop: bool = False
    """A person may ask the recovery to stop, once."""
    may_release: bool = False
    """A person may release the open claim, once."""
    may_replan: bool = False
    """A second person may plan again, at another frontier, between approval and recovery."""
    wait_passes: bool = True
    """The time for which a relay waits for an open claim may pass at any time."""
    may_restore_sink: bool = False
    may_restore_control: bool = False
    """A backup is taken once, at any time, and restored once, at any time after."""
    without: frozenset[Rule] = field(default_factory=frozenset)

    def has(self, rule: Rule) -> bool:
        return rule not in self.without

    @property
    def everything(self) -> int:
        return (1 << self.events) - 1

    def __str__(self) -> str:
        said = [
            f"{self.events} events ({self.committed} committed)",
            f"{self.relay_starts - 1} restarts",
            f"{self.recoverers} recoverers",
            f"{self.recoveries} recoveries",
            f"identity {self.identity}",
        ]
        said += [
            name.replace("_", " ")
            for name in (
                "lands_one_by_one",
                "has_late_stagers",
                "has_copies",
                "may_stop",
                "may_release",
                "may_replan",
                "may_restore_sink",
                "may_restore_control",
            )
            if getattr(self, name)
        ]
        said += [f"WITHOUT: {rule}" for rule in sorted(self.without)]
        return ", ".join(said)


def without(world: World, *rules: Rule) -> World:
    """The same world with these rules taken away."""
    return replace(world, without=world.without | set(rules))
