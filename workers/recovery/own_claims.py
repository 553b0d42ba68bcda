"""The claims of one recovery: a generation each time a worker took it, and all of them count.

The law: a recovery ends with nothing more to land only once no claim of it can fire. A worker that was taken over may
still be about to, and what it landed is the recovery's own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.db.models import Sum
from django.utils import timezone

from recovery_api.domain.errors import FencepostError
from recovery_api.models import ClaimState, Recovery
from recovery_api.services.generations import FINAL_FATES, claim_record, superseded_says
from workers.connectors.base import ClaimReading, FencedSink

logger = logging.getLogger(__name__)


def claim_said(recovery: Recovery, sink: FencedSink, generation: int, wait_seconds: float) -> ClaimReading:
    """The claim as the sink holds it, read by locking it, and remembered."""
    reading = sink.settle(generation, wait_seconds=wait_seconds)
    claim_record(recovery, asdict(reading), now=timezone.now(), part=recovery.batch_index)
    return reading


def claims_give_up(recovery: Recovery, sink: FencedSink, reason: str) -> None:
    """Releases every claim of the recovery that is not known to be final. One that has fired stays fired."""
    for generation in _undecided(recovery):
        sink.release(generation, reason)


def all_given_up(recovery: Recovery, sink: FencedSink, reason: str) -> str:
    """`claims_give_up`, and where the fence stands after it, in a sentence; empty where none was ever taken."""
    if recovery.generation is None:
        return ""
    claims_give_up(recovery, sink, reason)
    return f" The fence stays at {sink.state().fence}: a relay of an older generation is rejected and must ask for a new one."


def claims_settle(recovery: Recovery, sink: FencedSink, wait_seconds: float) -> ClaimReading | None:
    """Asks the sink what became of every claim not known to be final. Gives the one by which the current part landed."""
    for generation in _undecided(recovery):
        reading = sink.settle(generation, wait_seconds=wait_seconds)
        if reading.state != ClaimState.NONE:
            claim_record(recovery, asdict(reading), now=timezone.now(), part=recovery.batch_index)
    fired = recovery.claims.filter(state=ClaimState.FIRED, part=recovery.batch_index).order_by("generation").first()
    return sink.settle(fired.generation, wait_seconds=wait_seconds) if fired else None


def passed_by_another(recovery: Recovery, sink: FencedSink, wait_seconds: float) -> ClaimReading | None:
    """The claim of the recovery's newest generation, where a generation that is not the recovery's own passed it."""
    if recovery.generation is None:
        return None
    reading = claim_said(recovery, sink, recovery.generation, wait_seconds)
    if reading.state != ClaimState.SUPERSEDED or reading.superseded_by is None:
        return None
    is_ours = recovery.generations.filter(number=reading.superseded_by).exists()
    return None if is_ours else reading


def staged_remove(sink: FencedSink) -> None:
    """Takes away the rows that no open claim needs. It ends nothing where it fails: they are only in the way."""
    try:
        sink.staged_purge()
    except FencepostError as error:
        logger.warning("what is staged in vain stays for now: %s", error)


def landed_counts(recovery: Recovery) -> tuple[int, int]:
    """How many entries landed, and how many were there already, under all of the recovery's claims that fired."""
    fired = recovery.claims.filter(state=ClaimState.FIRED)
    sums = fired.aggregate(landed=Sum("landed_count", default=0), absorbed=Sum("absorbed_count", default=0))
    return sums["landed"], sums["absorbed"]


def fenced_says(recovery: Recovery, generation: int, by: object, told: Mapping[str, Any]) -> str:
    """By whom and when this generation was superseded. `told`: what the sink said with it."""
    number = int(str(by)) if by not in (None, "") else None
    who, at = told.get("superseded_who"), told.get("superseded_at")
    return superseded_says(recovery.pipeline, generation, by=number, who=who, at=at)


def _undecided(recovery: Recovery) -> list[int]:
    known = recovery.generations.exclude(fate__in=FINAL_FATES)
    return list(known.order_by("number").values_list("number", flat=True))
