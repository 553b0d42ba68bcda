"""What a strategy declares: how a sink of one archetype is recovered, and the one promise that may be made for it.

The law: whatever a person is told of a recovery before it runs comes from here. Pages, REST, commands, plans and drills
ask the strategy; none of them words a promise, a step or a state itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from recovery_api.domain.capabilities import Archetype
from recovery_api.domain.drills import DrillName
from recovery_api.domain.outcomes import Outcome


class Fact(StrEnum):
    """What a recovery's row remembers of its steps, by which a step counts as done once the recovery is at none."""

    CLAIMED = "claimed"
    """The sink granted a claim, or the driver began to read."""
    ARMED = "armed"
    """What is owed is counted."""
    FIRED = "fired"
    """Something landed."""
    VERIFIED = "verified"
    """The sink was audited afterwards."""
    HANDED_OVER = "handed_over"
    """The relay's start is known."""


@dataclass(frozen=True, slots=True)
class StrategyStep:
    """One step as a person follows it. `shown_by`: any of these facts shows that it is done."""

    state: str
    name: str
    says: str
    shown_by: frozenset[Fact]


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to recover. `does` and `promise` together are its one sentence; `{given}` is where *given …* stands.

    `steps`: in order. `moves`: which state may follow which. `obeys_before`: by state, the step that a pause or a stop
    holds a worker before; `next_part`: that of the next part. `holds_claim`: the states in which a claim may be open at the sink. `conditions`: names of what must be judged before it runs.
    `attestations`: what people may be asked to attest, by name. `outcomes`: how it may end. `drills`: what its sink can
    be asked to prove, by the drill's name. `is_driven` False: nothing is ever sent by it. `applying`, `pausing`, `stopping`, `settling`: what
    each of these does, as a person reads it before asking for it. `relay_next`: what to do with the relay once it has
    ended complete. `evidence_lasts`: until when its certificate can be shown to hold.
    """

    name: str
    archetype: Archetype
    does: str
    promise: str
    is_driven: bool = True
    applying: str = ""
    pausing: str = ""
    stopping: str = ""
    settling: str = ""
    relay_next: str = ""
    evidence_lasts: str = ""
    steps: Sequence[StrategyStep] = ()
    moves: Mapping[str, frozenset[str]] = field(default_factory=dict)
    obeys_before: Mapping[str, str] = field(default_factory=dict)
    next_part: str = ""
    holds_claim: frozenset[str] = frozenset()
    conditions: tuple[str, ...] = ()
    attestations: tuple[str, ...] = ()
    outcomes: frozenset[Outcome] = frozenset()
    drills: Mapping[DrillName, str] = field(default_factory=dict)

    def promise_says(self, given: Sequence[str] = ()) -> str:
        """What may be said of a recovery once it has ended. `given`: what that rests on beside the strategy."""
        return self.promise.format(given=f", given {'; and '.join(given)}" if given else "")

    def sentence(self) -> str:
        """What it does and what may be said then, in one sentence."""
        return f"{self.does}: {self.promise_says()}."

    def move_is_allowed(self, state: str, to: str) -> bool:
        """Whether a recovery in `state` may go to `to`."""
        return to in self.moves.get(state, frozenset())
