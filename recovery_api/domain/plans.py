"""From evidence, capability and preference to the plan: what would be sent, by evidence class, and what it binds.

A plan is inert. Approval binds to `plan_digest`; what goes on above the frontier is not part of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from recovery_api.domain.capabilities import Capability
from recovery_api.domain.conditions import Condition, conditions_refusal
from recovery_api.domain.evidence_classes import sent_count


class PlanVerdict(StrEnum):
    """What a computed plan comes to."""

    READY = "ready"
    """There is something to send, and nothing forbids it."""
    NOTHING_OWED = "nothing owed"
    """Nothing to send at this frontier: a success with its evidence."""
    REFUSED = "refused"
    """A condition forbids it; the refusal names which, and what would lift it."""


def plan_conclude(classes: Mapping[str, int], conditions: Sequence[Condition]) -> tuple[PlanVerdict, Condition | None]:
    """What the plan comes to, and the condition that refuses it. `classes`: how many owed events are of each class."""
    if refusal := conditions_refusal(list(conditions)):
        return PlanVerdict.REFUSED, refusal
    return (PlanVerdict.READY if sent_count(classes) else PlanVerdict.NOTHING_OWED), None


def plan_digest(
    *,
    pipeline: str,
    frontier: Mapping[str, str],
    floor: Mapping[str, str | None],
    scope_digest: str,
    ends: Mapping[str, Any],
    capability: Capability,
    history: Mapping[str, Any],
    batch_digest: str,
    batch_count: int,
    acknowledged: Iterable[str],
) -> str:
    """A digest of everything an approval rests on, and of nothing above the frontier.

    `history` is the fingerprint of the history to the frontier (count and sums, by lane); `ends` is what source and sink
    were read as: their mappings, and the filter that says which rows are owed.
    """
    bound = {
        "pipeline": pipeline,
        "frontier": dict(frontier),
        "floor": dict(floor),
        "scope": scope_digest,
        "ends": dict(ends),
        "capability": {key: value for key, value in asdict(capability).items() if key != "grounds"},
        "history": dict(history),
        "batch": [batch_count, batch_digest],
        "acknowledged": sorted(acknowledged),
    }
    return hashlib.sha256(json.dumps(bound, sort_keys=True, default=str).encode()).hexdigest()


def approval_refusal(not_approved: int, unexplained: int) -> str | None:
    """Why the batch read under the claim is not the approved one, or None. Fewer, each found accepted, is as approved.

    `not_approved`: owed events that the approved batch does not hold. `unexplained`: approved events that are neither
    owed, nor accepted with that content, nor acknowledged since.
    """
    if not_approved:
        return f"{not_approved} owed events were not in the approved batch."
    if unexplained:
        return f"{unexplained} approved events are neither owed nor accepted with that content any more."
    return None


def scope_digest(keys: Sequence[str] | None) -> str:
    """A digest of the keys a pipeline owes; `all` where it owes every key."""
    if keys is None:
        return "all"
    return hashlib.sha256(json.dumps(sorted(set(keys))).encode()).hexdigest()
