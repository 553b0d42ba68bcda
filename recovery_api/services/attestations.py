"""What a person must have attested before a plan is applied. An attestation is recorded with the recovery."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recovery_api.domain.attestations import (
    LATER_EVENTS_CONFIRMED,
    Attestation,
    attestation_parse,
    attestations_missing,
)
from recovery_api.domain.errors import Refused
from recovery_api.models import Plan
from recovery_api.selectors.plans import plan_attestations_asked


def attestations_check(plan: Plan, given: Sequence[str], now: datetime) -> list[Attestation]:
    """What was attested, parsed. Raises: BadInput for one that is not known or cannot be so; Refused where one that the
    plan asks for was not given, naming it and how it is written."""
    action = f"redriving {plan.pipeline.name}"
    asked = plan_attestations_asked(plan)
    missing = attestations_missing(asked, given)
    if any(kind.name == LATER_EVENTS_CONFIRMED for kind in missing):
        later = plan.pins["later_keys"]
        raise Refused(
            action,
            f"the sink's effect needs order, and {later['count']} keys of the batch have a later event accepted",
            f"Look at these keys in the plan's condition `order`, then confirm: --attest {LATER_EVENTS_CONFIRMED}.",
        )
    if missing:
        what = " ".join(kind.asks for kind in missing)
        how = " ".join(f"--attest '{kind.form}'" for kind in missing)
        raise Refused(action, f"the sink has no fence, and nobody attested: {what}", f"Where it is so: {how}.")
    return [attestation_parse(text, now) for text in given]
