"""What a person must have attested before a plan is applied. An attestation is recorded with the recovery."""

from __future__ import annotations

from collections.abc import Sequence

from recovery_api.domain.attestations import LATER_EVENTS_CONFIRMED
from recovery_api.domain.errors import Refused
from recovery_api.models import Plan


def attestations_check(plan: Plan, attestations: Sequence[str]) -> None:
    """Raises: Refused where a key of the plan's batch has a later accepted event, and nobody confirmed that."""
    later = plan.pins.get("later_keys") or {"count": "0"}
    if later["count"] != "0" and LATER_EVENTS_CONFIRMED not in attestations:
        raise Refused(
            f"redriving {plan.pipeline.name}",
            f"the sink's effect needs order, and {later['count']} keys of the batch have a later event accepted",
            f"Look at these keys in the plan's condition `order`, then confirm: --attest {LATER_EVENTS_CONFIRMED}.",
        )
