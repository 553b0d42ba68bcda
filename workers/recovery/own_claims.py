"""The claims of one recovery: a generation each time a worker took it, and all of them count.

The law: a recovery ends with nothing more to land only once no claim of it can fire. A worker that was taken over may
still be about to, and what it landed is the recovery's own. A claim whose answer was lost bears the recovery's name at
the sink and is found there: none is left open unsaid.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from recovery_api.domain.errors import FencepostError, TerminalError
from recovery_api.models import ClaimState, GenerationPurpose, Intent, Recovery
from recovery_api.services.generations import FINAL_FATES, claim_record, generation_record, superseded_says
from recovery_api.services.intents import intent_hold
from workers.connectors.protocols.fence import ClaimReading, FencedDelivery

logger = logging.getLogger(__name__)


def name_of(recovery: Recovery) -> str:
    """What this recovery's claims are called at the sink: each attempt's name begins with it."""
    return f"recovery {recovery.id}"


def claims_find(recovery: Recovery, intent: Intent, sink: FencedDelivery, wait_seconds: float) -> int:
    """The newest claim at the sink. A claim of this recovery that nobody wrote down is written down, and released.

    It belongs to a worker that died before it could, or to one that was taken over and may not: it never armed. While
    that is done, the intent is held: nobody can take the recovery over and claim, only to be given up here.
    """
    found = sink.claim_find(name_of(recovery), wait_seconds=wait_seconds)
    if not _unwritten(recovery, found.generations):
        return found.newest
    with transaction.atomic():
        intent_hold(intent)
        found = sink.claim_find(name_of(recovery), wait_seconds=wait_seconds)
        for number in _unwritten(recovery, found.generations):
            sink.release(number, "found at the sink, where nobody had written it down")
            generation_keep(recovery, number, "an earlier attempt")
            claim_said(recovery, sink, number, wait_seconds)
    return found.newest


@contextmanager
def given_back(sink: FencedDelivery, generation: int) -> Iterator[None]:
    """Inside, a granted claim is written down. Who may not write, since it was taken over, gives it back and stops."""
    try:
        yield
    except TerminalError:
        sink.release(generation, "its worker was taken over before it could write it down")
        raise


def generation_keep(recovery: Recovery, number: int, asked_by: str) -> None:
    """A generation that the sink drew for this recovery. Raises: Refused where the number was given before."""
    purpose, now = GenerationPurpose.RECOVERER, timezone.now()
    generation_record(recovery.pipeline, number, purpose=purpose, asked_by=asked_by, now=now, recovery=recovery)


def claim_said(recovery: Recovery, sink: FencedDelivery, generation: int, wait_seconds: float) -> ClaimReading:
    """The claim as the sink holds it, read by locking it, and remembered."""
    reading = sink.settle(generation, wait_seconds=wait_seconds)
    claim_record(recovery, asdict(reading), now=timezone.now(), part=recovery.batch_index)
    return reading


def claims_give_up(recovery: Recovery, intent: Intent, sink: FencedDelivery, reason: str, wait_seconds: float) -> None:
    """Releases every claim of the recovery that is not known to be final. One that has fired stays fired."""
    claims_find(recovery, intent, sink, wait_seconds)
    for generation in _undecided(recovery):
        sink.release(generation, reason)


def all_given_up(recovery: Recovery, intent: Intent, sink: FencedDelivery, reason: str, wait_seconds: float) -> str:
    """`claims_give_up`, and where the fence stands after it, in a sentence; empty where none was ever taken."""
    claims_give_up(recovery, intent, sink, reason, wait_seconds)
    if not recovery.generations.exists():
        return ""
    return f" The fence stays at {sink.state().fence}: a relay of an older generation is rejected and must ask for a new one."


def claims_settle(recovery: Recovery, intent: Intent, sink: FencedDelivery, wait_seconds: float) -> ClaimReading | None:
    """Asks the sink what became of every claim not known to be final. Gives the one by which the current part landed."""
    claims_find(recovery, intent, sink, wait_seconds)
    for generation in _undecided(recovery):
        reading = sink.settle(generation, wait_seconds=wait_seconds)
        if reading.state != ClaimState.NONE:
            claim_record(recovery, asdict(reading), now=timezone.now(), part=recovery.batch_index)
    fired = recovery.claims.filter(state=ClaimState.FIRED, part=recovery.batch_index).order_by("generation").first()
    return sink.settle(fired.generation, wait_seconds=wait_seconds) if fired else None


def passed_by_another(recovery: Recovery, sink: FencedDelivery, wait_seconds: float) -> ClaimReading | None:
    """The claim of the recovery's newest generation, where a generation that is not the recovery's own passed it."""
    if recovery.generation is None:
        return None
    reading = claim_said(recovery, sink, recovery.generation, wait_seconds)
    if reading.state != ClaimState.SUPERSEDED or reading.superseded_by is None:
        return None
    is_ours = recovery.generations.filter(number=reading.superseded_by).exists()
    return None if is_ours else reading


def staged_remove(sink: FencedDelivery) -> None:
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


def fenced_says(recovery: Recovery, generation: int | None, by: object, told: Mapping[str, Any]) -> str:
    """By whom and when this generation was superseded, None: before it got one. `told`: what the sink said with it."""
    number = int(str(by)) if by not in (None, "") else None
    who, at = told.get("superseded_who"), told.get("superseded_at")
    return superseded_says(recovery.pipeline, generation, by=number, who=who, at=at)


def _unwritten(recovery: Recovery, found: tuple[int, ...]) -> list[int]:
    known = set(recovery.generations.values_list("number", flat=True))
    return [number for number in found if number not in known]


def _undecided(recovery: Recovery) -> list[int]:
    known = recovery.generations.exclude(fate__in=FINAL_FATES)
    return list(known.order_by("number").values_list("number", flat=True))
