"""Generations and claims remembered as the sink said them. A final word is never taken back by an older reading."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from recovery_api.domain.errors import BadInput, Refused
from recovery_api.models import (
    FINAL_CLAIM_STATES,
    Claim,
    ClaimState,
    EventKind,
    Generation,
    GenerationFate,
    GenerationPurpose,
    Pipeline,
    Recovery,
)
from recovery_api.services.constraints import constraints_mapped
from recovery_api.services.events import event_append

FINAL_FATES = (GenerationFate.FIRED, GenerationFate.SUPERSEDED, GenerationFate.RELEASED)
FATE_OF = {
    ClaimState.OPEN: GenerationFate.CLAIMED,
    ClaimState.FIRED: GenerationFate.FIRED,
    ClaimState.SUPERSEDED: GenerationFate.SUPERSEDED,
    ClaimState.RELEASED: GenerationFate.RELEASED,
}
SAID = frozenset(
    {
        "generation",
        "state",
        "claimed_by",
        "claimed_at",
        "frontier",
        "arm",
        "armed_count",
        "armed_digest",
        "fired_at",
        "landed_count",
        "absorbed_count",
        "altered_count",
        "start",
        "superseded_by",
        "superseded_at",
        "superseded_who",
    }
)
"""What a sink says about a claim (workers.connectors.protocols.fence.ClaimReading); `claimed_at`, `fired_at` and `altered_count` are not kept."""
TEXTS = frozenset({"armed_digest", "superseded_who"})
KEPT = SAID - {"generation", "claimed_at", "fired_at", "altered_count"}


def generation_record(
    pipeline: Pipeline,
    number: int,
    *,
    purpose: str,
    asked_by: str,
    now: datetime,
    recovery: Recovery | None = None,
    fate: str = GenerationFate.ALLOCATED,
) -> Generation:
    """A number the sink gave. Raises: Refused where it was given before: then the sink's counter went back."""
    with constraints_mapped(f"recording generation {number}"), transaction.atomic():
        generation = Generation.objects.create(
            pipeline=pipeline,
            recovery=recovery,
            number=number,
            purpose=GenerationPurpose(purpose),
            asked_by=asked_by,
            taken_at=now,
            fate=GenerationFate(fate),
        )
        event_append(
            EventKind.GENERATION_ALLOCATED,
            actor=asked_by,
            now=now,
            says=f"The sink gave generation {number} to a {purpose}.",
            pipeline=pipeline,
            recovery=recovery,
            generation=number,
        )
    return generation


def claim_record(recovery: Recovery, said: Mapping[str, Any], *, now: datetime, part: int = 0) -> Claim:
    """The claim as the sink says it is; a final state stays. `said` has the fields of a ClaimReading.

    The claim's generation learns its fate in the same transaction; events are the mover's business.
    """
    _check(said)
    with transaction.atomic():
        # The pipeline's row orders two recorders of one claim, also where the claim has no row yet.
        Pipeline.objects.select_for_update(no_key=True).get(id=recovery.pipeline_id)
        claim = Claim.objects.filter(pipeline_id=recovery.pipeline_id, generation=said["generation"]).first()
        if claim is None:
            claim = Claim(
                pipeline_id=recovery.pipeline_id,
                recovery=recovery,
                generation=said["generation"],
                claimed_at=now,
                part=part,
            )
        if claim.recovery_id != recovery.id:
            raise Refused(f"recording {claim}", "it belongs to another recovery", "This is a defect; report it.")
        if claim.state not in FINAL_CLAIM_STATES:
            for name in KEPT & set(said):
                setattr(claim, name, said[name] if said[name] is not None or name not in TEXTS else "")
            claim.said_at = now
            claim.settled_at = now if claim.state in FINAL_CLAIM_STATES else None
            claim.save()
            _tell_generation(claim, now)
    return claim


def claim_settle(recovery: Recovery, said: Mapping[str, Any], *, actor: str, now: datetime, part: int = 0) -> Claim:
    """As `claim_record`, for what was read by locking the claim, with its event in the timeline."""
    with transaction.atomic():
        claim = claim_record(recovery, said, now=now, part=part)
        landed = f", {claim.landed_count} delivered" if claim.state == ClaimState.FIRED else ""
        event_append(
            EventKind.CLAIM_SETTLED,
            actor=actor,
            now=now,
            says=f"The sink says: the claim at generation {claim.generation} is {claim.state}{landed}.",
            recovery=recovery,
            generation=claim.generation,
            data={"state": claim.state, "landed_count": _text(claim.landed_count), "arm": _text(claim.arm)},
        )
    return claim


def superseded_says(
    pipeline: Pipeline, generation: int | None, *, by: int | None, who: str | None, at: str | None
) -> str:
    """By which generation `generation` was superseded, who took that, and when, in one sentence. None: it got none."""
    nothing = (
        "it got no claim, and nothing landed" if generation is None else f"nothing of generation {generation} landed"
    )
    if by is None:
        return f"Superseded by a newer generation: {nothing}."
    known = Generation.objects.filter(pipeline=pipeline, number=by).first()
    names = [name for name in (who, f"worker {known.asked_by}" if known else None) if name]
    taken = f", taken by {', '.join(names)}" if names else ""
    return f"Superseded by generation {by}{taken}{f' at {at}' if at else ''}: {nothing}."


def fire_refused_record(recovery: Recovery, generation: int, says: str, *, actor: str, now: datetime) -> None:
    """What became of a fire that came too late, whoever holds the recovery by now: told, and nothing else is written."""
    event_append(
        EventKind.FIRE_REFUSED,
        actor=actor,
        now=now,
        says=f"The fire at generation {generation} was refused. {says}",
        recovery=recovery,
        generation=generation,
    )


def _check(said: Mapping[str, Any]) -> None:
    if unknown := sorted(set(said) - SAID):
        raise BadInput("claim", f"has unknown fields {', '.join(unknown)}", f"Known: {', '.join(sorted(SAID))}.")
    if missing := sorted({"generation", "state"} - set(said)):
        raise BadInput("claim", f"lacks {', '.join(missing)}", "A claim is said with its generation and its state.")
    if said["state"] not in ClaimState.values:
        raise BadInput("claim.state", f"{said['state']!r} is no state", f"One of: {', '.join(ClaimState.values)}.")


def _tell_generation(claim: Claim, now: datetime) -> None:
    fate = FATE_OF.get(ClaimState(claim.state))
    if fate is not None:
        Generation.objects.filter(pipeline_id=claim.pipeline_id, number=claim.generation).exclude(
            fate__in=FINAL_FATES
        ).update(fate=fate, settled_at=now if fate in FINAL_FATES else None)


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
