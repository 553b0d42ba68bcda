"""Drills: what a sink is asked to prove, in a namespace of its own, and what a sink that cannot be asked yields instead.

Five tests a recovery must survive (the paper's Section 12). Each drill says what it proves; where a sink's archetype or
tested capability leaves nothing to prove, it says why, and what a recovery of that sink may say instead. The law: a
drill that did not run never passed. Which drills there are for a sink, its strategy says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from recovery_api.domain.capabilities import Archetype, Capability
from recovery_api.domain.errors import UnknownOption

if TYPE_CHECKING:  # a strategy says which drills it has
    from recovery_api.domain.strategies.base import Strategy


class DrillName(StrEnum):
    """The five drills, in the order they run."""

    CHECKPOINT_CRASH = "checkpoint_crash"
    """A relay dies between the sink's acceptance and its checkpoint."""
    IN_FLIGHT_STRAGGLER = "in_flight_straggler"
    """A send of the dead relay arrives under the claim, and again after the fire."""
    SPLIT_BRAIN_WORKER = "split_brain_worker"
    """Two recoverers arm and stage the same batch; the older wakes up last."""
    EXPIRED_DEDUPLICATION = "expired_deduplication"
    """What was accepted first of all is sent again, as it was and with other content."""
    CRASH_INSIDE_RECOVERY = "crash_inside_recovery"
    """A recoverer dies after each of its steps; a successor settles from the sink and ends the work."""


class DrillVerdict(StrEnum):
    """How one drill, or a run of several, ended."""

    PASSED = "passed"
    """It ran to its end and everything was as the protocol says."""
    FAILED = "failed"
    """Something was not: the evidence names the step, what was expected and what the sink said."""
    NOT_APPLICABLE = "not_applicable"
    """There is nothing to prove at this sink, for a reason that is given with what its archetype yields."""
    UNKNOWN = "unknown"
    """It could not be run to its end: nothing is proved and nothing disproved."""


TITLES: Mapping[DrillName, str] = {
    DrillName.CHECKPOINT_CRASH: "Checkpoint crash",
    DrillName.IN_FLIGHT_STRAGGLER: "In-flight straggler",
    DrillName.SPLIT_BRAIN_WORKER: "Split-brain worker",
    DrillName.EXPIRED_DEDUPLICATION: "Expired deduplication",
    DrillName.CRASH_INSIDE_RECOVERY: "Crash inside recovery",
}
"""What a person calls each. What it proves at a sink, the sink's strategy says."""

BLIND_BY_PREFERENCE = {
    "resend": "As this pipeline is configured it resends the window, and may duplicate.",
    "skip": "As this pipeline is configured it skips the window, and may omit.",
    None: "This pipeline records no failure preference yet.",
}


@dataclass(frozen=True, slots=True)
class DrillResult:
    """How one drill ended. `steps`: what was done and said, in order, each with what was expected; the last of a failed
    drill is the one that went wrong. `yields`: what the archetype gives instead, where it was not applicable. `proves`: what
    a pass shows at a sink of this strategy."""

    name: DrillName
    verdict: DrillVerdict
    says: str
    steps: tuple[Mapping[str, Any], ...] = ()
    yields: str = ""
    notes: tuple[str, ...] = field(default=())
    proves: str = ""

    def as_row(self) -> dict[str, Any]:
        """One JSON object, for the control database."""
        return {
            "name": self.name.value,
            "title": TITLES[self.name],
            "proves": self.proves,
            "verdict": self.verdict.value,
            "says": self.says,
            "steps": [dict(step) for step in self.steps],
            "yields": self.yields,
            "notes": list(self.notes),
        }


def drill_names(given: Iterable[str]) -> list[DrillName]:
    """The drills of these names in running order; none given: all. Raises: UnknownOption."""
    wanted = list(given)
    for name in wanted:
        if name not in list(DrillName):
            raise UnknownOption(f"drill {name!r}", ", ".join(DrillName), "")
    return [name for name in DrillName if not wanted or name in wanted]


def not_applicable(
    name: DrillName,
    strategy: Strategy,
    capability: Capability,
    *,
    has_namespace: bool,
    preference: str | None = None,
) -> DrillResult | None:
    """Why there is nothing to prove at a sink of this capability and strategy, or None: the drill runs.

    `has_namespace`: the sink's kind can give a drill a place of its own. `preference`: the pipeline's recorded failure
    preference, which is what a blind sink yields.

    >>> from recovery_api.domain.strategies import strategy_of
    >>> sink = Capability(Archetype.QUERYABLE, True, True, False, False, False)
    >>> not_applicable(DrillName.SPLIT_BRAIN_WORKER, strategy_of(sink), sink, has_namespace=False).verdict
    <DrillVerdict.NOT_APPLICABLE: 'not_applicable'>
    """
    archetype = strategy.archetype
    yields = strategy.sentence()
    if archetype is Archetype.BLIND:
        yields = f"{yields} {BLIND_BY_PREFERENCE[preference]}"
    if capability.apart_because:
        return DrillResult(name, DrillVerdict.NOT_APPLICABLE, capability.apart_because, yields=yields)
    is_to_be_shown = bool(capability.unfenced_because)  # a fence that lost something: what that comes to, a drill shows
    if name not in strategy.drills and not is_to_be_shown:
        reason = f"This sink is {archetype.value}: it checks no generation at admission, so there is no fence to prove."
    elif not has_namespace:
        reason = (
            "Sinks of this kind give a drill no namespace of its own, and a drill never touches a pipeline's record."
        )
    elif name is DrillName.IN_FLIGHT_STRAGGLER and capability.may_append and not capability.absorbs_late_sends:
        reason = (
            "Nothing at this sink refuses a send that comes late, so there is nothing to prove: each recovery asks for a "
            "person's word that none is on its way."
        )
    elif name is DrillName.EXPIRED_DEDUPLICATION and not (capability.has_identity_key or capability.may_append):
        reason = "This sink keeps no identities, so none can expire: its recoveries rest on fence and record alone."
    else:
        return None
    return DrillResult(name, DrillVerdict.NOT_APPLICABLE, reason, yields=yields)


def verdict_of(results: Iterable[DrillResult]) -> DrillVerdict:
    """The verdict of a run: failed before unknown before passed; not applicable only where nothing ran."""
    found = {result.verdict for result in results}
    for verdict in (DrillVerdict.FAILED, DrillVerdict.UNKNOWN, DrillVerdict.PASSED, DrillVerdict.NOT_APPLICABLE):
        if verdict in found:
            return verdict
    return DrillVerdict.UNKNOWN


def verdict_says(results: Iterable[DrillResult]) -> str:
    """The run in one sentence."""
    named = [(result.verdict, TITLES[result.name].lower()) for result in results]
    parts = []
    for verdict in DrillVerdict:
        titles = [title for one, title in named if one is verdict]
        if titles:
            parts.append(f"{verdict.value.replace('_', ' ')}: {', '.join(titles)}")
    return f"{'; '.join(parts) or 'nothing was drilled'}."
