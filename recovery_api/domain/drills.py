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


@dataclass(frozen=True, slots=True)
class Drill:
    """What one drill proves, in words for people."""

    name: DrillName
    title: str
    proves: str


DRILLS: Mapping[DrillName, Drill] = {
    one.name: one
    for one in (
        Drill(
            DrillName.CHECKPOINT_CRASH,
            "Checkpoint crash",
            "What a dead relay delivered and did not check off is not sent again by a recovery, and what it sends again "
            "itself after the hand-over is absorbed.",
        ),
        Drill(
            DrillName.IN_FLIGHT_STRAGGLER,
            "In-flight straggler",
            "A send of an older generation that arrives after the claim is rejected at admission, however late.",
        ),
        Drill(
            DrillName.SPLIT_BRAIN_WORKER,
            "Split-brain worker",
            "Of two recoverers only the one with the newest claim lands its batch; the other is refused and told by whom.",
        ),
        Drill(
            DrillName.EXPIRED_DEDUPLICATION,
            "Expired deduplication",
            "A recovery decides by the acceptance record, not by a window; the oldest identity is still remembered, and "
            "other content at its coordinate is told, not accepted.",
        ),
        Drill(
            DrillName.CRASH_INSIDE_RECOVERY,
            "Crash inside recovery",
            "A recoverer that dies after any step leaves what a successor settles from the sink: nothing doubled, nothing "
            "lost.",
        ),
    )
}

BLIND_BY_PREFERENCE = {
    "resend": "As this pipeline is configured it resends the window, and may duplicate.",
    "skip": "As this pipeline is configured it skips the window, and may omit.",
    None: "This pipeline records no failure preference yet.",
}


@dataclass(frozen=True, slots=True)
class DrillResult:
    """How one drill ended. `steps`: what was done and said, in order, each with what was expected; the last of a failed
    drill is the one that went wrong. `yields`: what the archetype gives instead, where it was not applicable."""

    name: DrillName
    verdict: DrillVerdict
    says: str
    steps: tuple[Mapping[str, Any], ...] = ()
    yields: str = ""
    notes: tuple[str, ...] = field(default=())

    def as_row(self) -> dict[str, Any]:
        """One JSON object, for the control database."""
        drill = DRILLS[self.name]
        return {
            "name": self.name.value,
            "title": drill.title,
            "proves": drill.proves,
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
    is_to_be_shown = bool(capability.unfenced_because)  # a fence that lost something: what that comes to, a drill shows
    if name not in strategy.drills and not is_to_be_shown:
        reason = f"This sink is {archetype.value}: it checks no generation at admission, so there is no fence to prove."
    elif not has_namespace:
        reason = (
            "Sinks of this kind give a drill no namespace of its own, and a drill never touches a pipeline's record."
        )
    elif name is DrillName.EXPIRED_DEDUPLICATION and not capability.has_identity_key:
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
    named = [(result.verdict, DRILLS[result.name].title.lower()) for result in results]
    parts = []
    for verdict in DrillVerdict:
        titles = [title for one, title in named if one is verdict]
        if titles:
            parts.append(f"{verdict.value.replace('_', ' ')}: {', '.join(titles)}")
    return f"{'; '.join(parts) or 'nothing was drilled'}."
