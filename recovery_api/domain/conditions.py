"""The conditions a recovery rests on, each with what it means when it does not hold (THEORY section 3).

A condition is judged from evidence alone. `holds` None means it could not be judged; that is never taken for yes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from recovery_api.domain.attestations import KINDS as ATTESTATIONS
from recovery_api.domain.attestations import LATER_EVENTS_CONFIRMED
from recovery_api.domain.capabilities import APART_REMEDY, Capability
from recovery_api.domain.strategies import strategy_of
from recovery_api.domain.strategies.attested import ATTESTED, attestations_asked


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition as judged. `blocks` says that nothing may be applied while it does not hold.

    `warning`: of one that does not hold and does not block, the few words that are read before anything else.
    """

    name: str
    asks: str
    holds: bool | None
    says: str
    remedy: str = ""
    blocks: bool = False
    warning: str = ""

    def as_row(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Condition:
        return cls(**row)


UndisciplinedPath = tuple[str, str | None, str]
"""A way into record or target that passes admission by: what it is, the role that has it (None: no one role), a sentence."""


LATER_KEYS_NAMED = 50


@dataclass(frozen=True, slots=True)
class LaterKeys:
    """The keys of a batch with a later accepted event: how many exactly, and the first by name."""

    count: int = 0
    first: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanEvidence:
    """What the conditions are judged from: counts of one audit at the plan's frontier, summed over its lanes."""

    premature_count: int
    duplicate_count: int
    altered_count: int
    coordinates_ascending: bool | None
    frontier_is_safe: bool
    safe_frontier_says: str
    safe_frontier_weakness: str | None
    lost_below_floor_count: int
    unknown_below_floor_count: int
    unrepresentable_count: int
    stranded_count: int
    record_is_complete: bool
    batch_count: int
    undisciplined_paths: Sequence[UndisciplinedPath] = ()
    later: LaterKeys | None = None
    """None: the sink's effect needs no order."""
    lost_below_floor_says: str = ""
    lands_behind_later: bool = False
    """The batch is added to rows without a fence, and something later than its first event is accepted already."""


def conditions_judge(evidence: PlanEvidence, capability: Capability) -> list[Condition]:
    """P1 to P4, C1, record, content, order, floor and horizon, as a person reads them. Source: Sections 5, 7, 8."""
    return [
        *_effect(capability),
        _hazard_free(evidence),
        _previous_run_over(capability),
        _frontier_safe(evidence),
        _ascending(evidence),
        _disciplined(evidence),
        _record_readable(evidence, capability),
        _representable(evidence),
        _in_order(evidence, capability),
        _floor(evidence),
        _horizon(capability),
    ]


def _effect(capability: Capability) -> list[Condition]:
    """Asked first, and only where it does not hold: nothing else about a delivery matters then."""
    if not capability.mark_because:
        return []
    asks = "Would a row in the record be the effect itself?"
    remedy = "Hand the events of this plan to whoever sends them to the consumer; the next audit shows which ids have arrived."
    return [Condition("effect", asks, False, capability.mark_because, remedy, blocks=True)]


def conditions_refusal(conditions: list[Condition]) -> Condition | None:
    """The first condition that forbids applying, or None."""
    return next((condition for condition in conditions if condition.blocks and not condition.holds), None)


def warnings_says(conditions: Sequence[Condition]) -> str:
    """What to read before approving, in one sentence.

    >>> warnings_says([Condition("C1", "?", False, "…", warning=PAST_THE_FENCE)])
    'Read one warning first: others can write past the fence (C1). It does not block.'
    """
    warned = [f"{one.warning or one.asks} ({one.name})" for one in conditions if not one.holds and not one.blocks]
    if not warned:
        return "Every condition holds."
    if len(warned) == 1:
        return f"Read one warning first: {warned[0]}. It does not block."
    return f"Read {len(warned)} warnings first: {'; '.join(warned)}. They do not block."


def _hazard_free(evidence: PlanEvidence) -> Condition:
    asks = "Is everything in the record as it was committed, and nothing twice?"
    hazards = evidence.premature_count + evidence.duplicate_count
    if not hazards:
        return Condition("P1", asks, True, "Nothing in the record is doubled or premature.")
    altered = (
        f" {evidence.altered_count} owed events cannot be sent: the sink holds other content at their coordinates."
        if evidence.altered_count
        else ""
    )
    return Condition(
        "P1",
        asks,
        False,
        f"{evidence.premature_count} accepted entries are not as committed, and {evidence.duplicate_count} events were "
        f"accepted more than once. A recovery adds none and takes none away.{altered}",
        "Look at the findings before you approve: a person decides about what was already accepted.",
        warning="something wrong is in the record already, and stays",
    )


def _previous_run_over(capability: Capability) -> Condition:
    asks = "Is the previous relay run over, or fenced?"
    if capability.has_fence:
        return Condition("P2", asks, True, "The claim raises the sink's fence: nothing of an older run can enter.")
    if capability.apart_because:
        return Condition("P2", asks, None, capability.apart_because, APART_REMEDY, blocks=True)
    if strategy_of(capability) is ATTESTED:
        return _attested(asks, capability)
    if capability.unappended_because:
        return Condition(
            "P2",
            asks,
            None,
            "This sink checks no generation at admission: a delayed send of the old run would still be accepted. Without "
            f"a fence it is recovered only by adding rows under a lock, and that may not be: {capability.unappended_because}",
            "Until then this sink can be audited and planned for.",
            blocks=True,
        )
    if capability.unfenced_because:
        return Condition(
            "P2",
            asks,
            None,
            f"{capability.unfenced_because} Without its fence a delayed send of the old run would still be accepted.",
            "Until then this sink can be audited and planned for, not fired at.",
            blocks=True,
        )
    return Condition(
        "P2",
        asks,
        None,
        "This sink checks no generation at admission, or does not let this login raise its fence: "
        "a delayed send of the old run would still be accepted.",
        "Install the sink kit, or grant this login its recoverer role where it is installed; nothing else lifts this. "
        "Until then this sink can be audited, and what it is owed must be sent by hand.",
        blocks=True,
    )


def _attested(asks: str, capability: Capability) -> Condition:
    late = (
        "A unique constraint on the identity refuses what an older run still sends."
        if capability.absorbs_late_sends
        else "No unique constraint on the identity refuses what an older run still sends, so that must be attested, too: "
        "the relay is stopped, and nothing of it is on its way any more."
    )
    wanted = " ".join(f"--attest '{ATTESTATIONS[name].form}'" for name in attestations_asked(capability))
    return Condition(
        "P2",
        asks,
        None,
        "This sink checks no generation at admission. Rows are added under a lock that keeps every writer out; that "
        f"nothing else sends missing events meanwhile, a person attests. {late}",
        f"Who applies the plan attests it, and the outcome names it: redrive … {wanted}.",
        warning="the outcome rests on what a person attests",
    )


def _frontier_safe(evidence: PlanEvidence) -> Condition:
    asks = "Can no further commit appear at or below the frontier?"
    if not evidence.frontier_is_safe:
        return Condition(
            "P3",
            asks,
            False,
            evidence.safe_frontier_says,
            "Choose a frontier at or below the safe frontier.",
            blocks=True,
        )
    if evidence.safe_frontier_weakness:
        return Condition(
            "P3",
            asks,
            None,
            f"{evidence.safe_frontier_says} Weakness: {evidence.safe_frontier_weakness}",
            "The outcome will name this. An event that commits later than that is left for the next recovery.",
            warning="an older transaction may still commit an event",
        )
    return Condition("P3", asks, True, evidence.safe_frontier_says)


def _ascending(evidence: PlanEvidence) -> Condition:
    asks = "Do coordinates strictly ascend?"
    if evidence.coordinates_ascending:
        return Condition("P4", asks, True, "Coordinates strictly ascend in committed order: counts are per event.")
    return Condition(
        "P4",
        asks,
        evidence.coordinates_ascending,
        "Coordinates repeat or do not ascend: counts are by payload, and a batch could repeat itself.",
        "Map a coordinate that is unique for each event.",
        blocks=True,
    )


def _disciplined(evidence: PlanEvidence) -> Condition:
    asks = "Does everything that enters record or target pass the fence?"
    superusers = _superusers(evidence.undisciplined_paths)
    weakness = f" Weakness: a superuser can write past it, as in any database ({', '.join(superusers)})."
    noted = weakness if superusers else ""
    says = undisciplined_says(evidence.undisciplined_paths)
    if says is None:
        return Condition("C1", asks, True, f"Nothing else can write to record or target.{noted}")
    return Condition(
        "C1",
        asks,
        False,
        f"{says}{noted} What comes that way can double or break what this recovery sends.",
        "Install the sink kit, which checks; or see that nothing but the relay writes there."
        if _is_unfenced(evidence.undisciplined_paths)
        else "Close them: revoke the right, drop the subscription, or enable the guard; or be sure that nobody uses them.",
        warning=_past(evidence.undisciplined_paths),
    )


UNFENCED = "unfenced"
"""The word for the one path into a sink without a fence: whatever is written there was checked by nothing."""
PAST_THE_FENCE = "others can write past the fence"
NOTHING_CHECKS = "nothing checks what is written there"


def undisciplined_says(paths: Sequence[UndisciplinedPath]) -> str | None:
    """C1 in the one sentence that plan, audit, pipeline, sink and certificate show. None: it holds, superusers apart.

    >>> undisciplined_says([("privilege", "loader", "loader holds INSERT on post.letters")])
    'Others can write past the fence (C1): loader holds INSERT on post.letters.'
    """
    superusers = _superusers(paths)
    found = [says for path, role, says in paths if path != "superuser" and role not in superusers]
    return f"{_past(paths).capitalize()} (C1): {'; '.join(found)}." if found else None


def _is_unfenced(paths: Sequence[UndisciplinedPath]) -> bool:
    return any(path == UNFENCED for path, _, _ in paths)


def _past(paths: Sequence[UndisciplinedPath]) -> str:
    return NOTHING_CHECKS if _is_unfenced(paths) else PAST_THE_FENCE


def undisciplined_weaknesses(paths: Sequence[UndisciplinedPath]) -> tuple[str, ...]:
    """C1 as a weakness of what rests on it, where it does not hold."""
    says = undisciplined_says(paths)
    return () if says is None else (says,)


def _superusers(paths: Sequence[UndisciplinedPath]) -> list[str]:
    return sorted({role for path, role, _ in paths if path == "superuser" and role})


def _record_readable(evidence: PlanEvidence, capability: Capability) -> Condition:
    asks = "Was the whole acceptance record read?"
    holds = evidence.record_is_complete and capability.can_read_record and capability.is_record_complete
    if holds:
        return Condition("record", asks, True, "The whole record was read in one snapshot on the primary.")
    return Condition(
        "record",
        asks,
        False,
        "The record could not be read whole: an empty verdict proves nothing.",
        "Give the auditor role SELECT on the record, on the primary.",
        blocks=True,
    )


def _representable(evidence: PlanEvidence) -> Condition:
    asks = "Can the sink hold every owed content?"
    if not evidence.unrepresentable_count:
        return Condition("content", asks, True, "Every owed content can be held by the sink.")
    return Condition(
        "content",
        asks,
        False,
        f"{evidence.unrepresentable_count} owed events carry content the sink cannot hold (NUL or half a surrogate pair). "
        "They are not sent and stay missing.",
        "Acknowledge them with a reason, or correct them at the source.",
        warning="the sink cannot hold some of the events",
    )


def _in_order(evidence: PlanEvidence, capability: Capability) -> Condition:
    asks = "Are events of one key applied in order?"
    later = evidence.later
    if capability.apart_because:
        return Condition("order", asks, None, "Not asked of the delivery: nothing is fired into it.")
    if evidence.lands_behind_later:
        return Condition(
            "order",
            asks,
            None,
            "Rows of later events are in the table already, and the missing ones are added behind them: who reads the rows "
            "of a key in the order of their arrival reads them out of order.",
            "Let its readers go by the source's coordinate, or look at the keys of this plan first.",
            warning="missing rows are added behind later ones",
        )
    if later is None:
        return Condition("order", asks, True, "The sink has no effect that needs each key's events in order.")
    if not later.count:
        return Condition(
            "order", asks, True, "The effect needs order, and no key of the batch has a later event accepted."
        )
    keys = ", ".join(json.dumps(key, ensure_ascii=False) for key in later.first)
    more = f" and {later.count - len(later.first)} more" if later.count > len(later.first) else ""
    return Condition(
        "order",
        asks,
        False,
        f"The effect needs order, and {later.count} keys of the batch have a later event accepted: {keys}{more}. "
        "Their earlier events would take effect after the later ones.",
        f"Look at these keys; who applies the plan confirms it: redrive … --attest {LATER_EVENTS_CONFIRMED}.",
        warning="some keys have a later event already",
    )


def _floor(evidence: PlanEvidence) -> Condition:
    asks = "Was everything that retention dropped accepted first?"
    if evidence.lost_below_floor_count:
        return Condition(
            "floor",
            asks,
            False,
            f"{evidence.lost_below_floor_count} events the source no longer holds were never accepted. "
            f"Their content is gone and is not guessed. {evidence.lost_below_floor_says}".strip(),
            "Let a person decide, which is recorded: abandon them, or accept them as lost, by acknowledging them with that "
            "as the reason (omissions acknowledge).",
            warning="the source dropped events that never reached the sink",
        )
    if evidence.unknown_below_floor_count:
        return Condition(
            "floor",
            asks,
            None,
            f"{evidence.unknown_below_floor_count} accepted entries lie below the floor; without a journal their justification is unknown.",
            "Give the pipeline a journal, or rely on an earlier audit that certified them.",
            warning="nothing shows what lay below the oldest row",
        )
    return Condition("floor", asks, True, "Nothing below the floor is owed on the evidence that is kept.")


def _horizon(capability: Capability) -> Condition:
    asks = "Does the sink remember identities as far back as the batch?"
    if capability.has_identity_key and capability.horizon_seconds is None:
        return Condition(
            "horizon", asks, True, "The sink keeps an identity key for every accepted coordinate, for good."
        )
    if capability.has_identity_key:
        return Condition("horizon", asks, None, f"The sink remembers identities for {capability.horizon_seconds} s.")
    if capability.apart_because:
        return Condition("horizon", asks, None, "The record has no identity key.")
    protect = "the lock and what is attested" if strategy_of(capability) is ATTESTED else "the fence and the claim"
    return Condition("horizon", asks, None, f"The sink has no identity key; only {protect} protect the batch.")
