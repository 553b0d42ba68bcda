"""Driving one recovery: claim, read under the claim, arm, stage, fire, verify, hand over (THEORY section 4).

One law: what happened is what the sink says. Every step is written in the control database before the sink is asked
and after it has answered; a worker that finds a recovery half done asks the sink to settle the claim, and goes on from
there under a generation of its own. Nothing is concluded from the control database, a time-out or Celery.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from django.db import transaction
from django.utils import timezone

from recovery_api.domain.actors import subject
from recovery_api.domain.archives import archived_says
from recovery_api.domain.claims import Word, settlement
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import FencepostError, Refused
from recovery_api.domain.frontiers import frontier_as_row
from recovery_api.domain.next_steps import Next, claim_next, end_next, fire_next, settle_next
from recovery_api.models import EventKind, Intent, Recovery, RecoveryOutcome, RecoveryState, Wanted
from recovery_api.selectors.clock import now_get
from recovery_api.services import generations, intents
from workers.connectors.protocols.delivery import Answer
from workers.connectors.protocols.fence import ClaimReading, FencedDelivery
from workers.connectors.readings import BatchDigest
from workers.evidence.batch import unrepresentable_read
from workers.evidence.read import Evidence, evidence_read
from workers.faults import Point, crash_point
from workers.recovery import outcomes, own_claims
from workers.recovery.archiving import batch_archived
from workers.recovery.ends import (
    evidence_check,
    evidence_place,
    fenced_of,
    plan_stored,
    request_make,
    sink_check,
)
from workers.recovery.steering import Asked, unless_asked, wanted_after_pause
from workers.recovery.strategies.driver import ACTOR, Driver
from workers.spark.jobs.redrive import batch_stage

FIRE_ATTEMPTS = 3


class FencedDriver(Driver):
    """One worker's run of a recovery. Its own generation, never a predecessor's."""

    def __init__(self, intent: Intent, report: Any, recovery: Recovery, session: Any) -> None:
        super().__init__(intent, report, recovery, session)
        self.sink: FencedDelivery = fenced_of(recovery.pipeline)

    def step(self) -> None:
        """From the state the row is in to the next one."""
        self.report.check()
        match self.recovery.state:
            case RecoveryState.REQUESTED:
                self.claim_fire()
            case RecoveryState.VERIFYING:
                self.verify()
            case RecoveryState.HANDING_OVER:
                self.finish_handed_over()
            case _:
                self.settle()

    # -- settling what a predecessor left ---------------------------------------------------------------------------

    def settle(self) -> None:
        """Ask the sink, by locking the claim, what became of it; go on from what it says."""
        self.report(step="settling with the sink")
        generation = self.recovery.generation
        if generation is None:
            return self.claim_fire()
        reading = self.sink.settle(generation, wait_seconds=self._wait())
        part, now = self.recovery.batch_index, timezone.now()
        generations.claim_settle(self.recovery, asdict(reading), actor=ACTOR, now=now, part=part)
        self._move(
            RecoveryState.SETTLING,
            EventKind.RECOVERY_TAKEN_OVER,
            f"{subject(self.intent.taken_by)} goes on from what the sink says: the claim is {reading.state}.",
        )
        then = settle_next(settlement(reading, generation), self._is_ours(reading.superseded_by))
        return self._go_on(then, reading, "found fired when it was settled")

    # -- one part: claim to fire ------------------------------------------------------------------------------------

    def claim_fire(self) -> None:
        """Claim under a new generation, read, compare with what was approved, arm, stage, fire.

        That it claims is written down before the sink is asked, and its number after.
        """
        if self._stopped("the claim"):
            return None
        evidence_check(self.recovery.plan)
        part = self._part_frontier()
        sink_check(self.recovery.pipeline)
        newest = own_claims.claims_find(self.recovery, self.intent, self.sink, self._wait())
        if self._stopped("the claim"):  # that waited at the sink, and people may have asked for something meanwhile
            return None
        self._move(
            RecoveryState.CLAIMING,
            EventKind.STEP,
            f"Claiming, part {self.recovery.batch_index + 1} of {len(self._parts())}.",
            fields={"batches": len(self._parts())},
        )
        crash_point(Point.BEFORE_CLAIM)
        self.report(step="claiming")
        name = f"{own_claims.name_of(self.recovery)}, attempt {self.intent.attempts} of {str(self.intent.id)[-8:]}"
        answer = self.sink.claim_open(name, frontier_as_row(part), newest, wait_seconds=self._wait())
        if claim_next(answer.word) is not Next.READ:
            return self._end_fenced(None, answer.data.get("fence"), answer.data)
        crash_point(Point.AFTER_CLAIM)
        generation = int(answer.data["generation"])
        self._claim_keep(generation)
        while not self._stopped("reading under the claim"):
            try:
                return self._read_fire(generation, part)
            except Asked:  # the reading is let go by now; the claim stays
                if self.recovery.state != RecoveryState.ARMING:
                    says = "A person asked for something else: what was read is let go, the claim stays open."
                    self._move(RecoveryState.ARMING, EventKind.STEP, says)
        return None

    def _claim_keep(self, generation: int) -> None:
        """Writes the granted claim down, or gives it back."""
        with own_claims.given_back(self.sink, generation), transaction.atomic():
            own_claims.generation_keep(self.recovery, generation, self.intent.taken_by)
            self._move(
                RecoveryState.ARMING,
                EventKind.CLAIM_GRANTED,
                f"Claim granted; the fence stands at {generation}.",
                generation=generation,
                fields={"claimed_at": timezone.now()},
            )
        self._claim_said(generation)

    def _read_fire(self, generation: int, part: Mapping[str, Coordinate]) -> None:
        plan = self.recovery.plan
        approved = plan_stored(plan)
        request = request_make(
            self.recovery.pipeline,
            evidence_place("recoveries", f"{self.recovery.id}-{generation}"),
            frontier=part,
            plan=plan,
            generation=generation,
            approved=approved,
            excluded=unrepresentable_read(approved),
        )
        with ExitStack() as held:
            found = held.enter_context(evidence_read(self.session, request, self.report))
            crash_point(Point.DURING_READ)
            unless_asked(self.recovery, self.report)
            if complaint := outcomes.not_as_approved(found) or outcomes.overtaken(self.session, plan, found):
                self._give_up(complaint)
                return self._end(
                    Next.REFUSED,
                    f"{complaint} Nothing was sent; the claim was released. Plan again.",
                    data={"approval": dict(found.approval or {})},
                )
            found.sink_release()  # a lock on the record may wait for its readers, and the fire would wait for that lock
            for attempt in range(FIRE_ATTEMPTS):
                answer = self._arm_stage_fire(found, generation, part)
                reading = self._claim_said(generation)
                if answer.word == Word.FENCED:  # told also where another worker holds the recovery by now
                    says = own_claims.fenced_says(self.recovery, generation, reading.superseded_by, asdict(reading))
                    generations.fire_refused_record(
                        self.recovery, generation, says, actor=self.intent.taken_by, now=timezone.now()
                    )
                then = fire_next(answer.word, reading.state, is_last_attempt=attempt == FIRE_ATTEMPTS - 1)
                if then is not Next.ARM_AGAIN:
                    return self._go_on(then, reading, answer.word)
                self._move(
                    RecoveryState.ARMING,
                    EventKind.FIRE_REFUSED,
                    "What was staged is not what was prepared; preparing and staging again.",
                    data=answer.data,
                )
        return None

    def _arm_stage_fire(self, found: Evidence, generation: int, part: Mapping[str, Coordinate]) -> Answer:
        """The fire's answer. Raises: Asked where a person wants a pause or a stop before it."""
        crash_point(Point.BEFORE_ARM)
        own_claims.staged_remove(self.sink)  # what earlier attempts left would be there once more for each
        batch, archived = BatchDigest(found.batch_count, found.batch_digest), batch_archived(found)
        unless_asked(self.recovery, self.report)
        armed = self.sink.arm(generation, batch, frontier_as_row(part))
        if armed.word != "armed":
            return armed
        arm = int(armed.data["arm"])
        crash_point(Point.AFTER_ARM)
        self._move(
            RecoveryState.STAGING,
            EventKind.ARMED,
            " ".join([f"{batch.count} events prepared, arm {arm}.", archived_says(archived)]).strip(),
            fields={"armed_count": batch.count},
            evidence=found.stored,
            data={
                "arm": arm,
                "count": str(batch.count),
                "digest": batch.digest,
                "part": str(self.recovery.batch_index),
                "archived": str(archived),
            },
        )
        self.report(step="staging", done=0, total=batch.count, unit="events")
        unless_asked(self.recovery, self.report)
        staged = batch_stage(self.session, found, generation, arm)
        crash_point(Point.DURING_STAGING)
        self.report(step="staging", done=staged, total=batch.count, unit="events")
        unless_asked(self.recovery, self.report)
        self._move(RecoveryState.FIRING, EventKind.STAGED, f"{staged} entries handed to staging.")
        self.report(step="firing", done=0, total=batch.count, unit="events")
        start = frontier_as_row(outcomes.start_positions(found))
        crash_point(Point.BEFORE_FIRE)
        answer = self.sink.fire(generation, arm, start)
        crash_point(Point.AFTER_FIRE)
        return answer

    def _go_on(self, then: Next, claim: ClaimReading, word: str) -> None:
        """What follows from the sink's `word` about this claim."""
        generation = claim.generation
        match then:
            case Next.CLAIM:
                return self.claim_fire()
            case Next.LANDED:
                return self._landed(claim, word)
            case Next.FENCED:
                return self._end_fenced(generation, claim.superseded_by, asdict(claim))
            case Next.STOPPED:
                return self._end(then, f"Its claim at generation {generation} was released; nothing of it landed.")
            case _:
                again = f"found another batch staged than was prepared, {FIRE_ATTEMPTS} times"
                problem = f"the sink {again if word == Word.MISMATCH else f'answered {word!r}'}"
                remedy = "Look at what changes contents on the way."
                raise Refused(f"Firing at generation {generation}", problem, remedy)

    def _landed(self, claim: ClaimReading, how: str) -> None:
        own_claims.claims_settle(
            self.recovery, self.intent, self.sink, self._wait()
        )  # an earlier one may have landed, too
        part = self.recovery.batch_index + 1
        landed, absorbed = own_claims.landed_counts(self.recovery)
        newly, there_already = landed - self.recovery.landed_count, absorbed - self.recovery.absorbed_count
        self._move(
            RecoveryState.VERIFYING,
            EventKind.FIRED,
            f"{newly} delivered, {there_already} already present ({how}).",
            fields={
                "batch_index": part,
                "landed_count": landed,
                "absorbed_count": absorbed,
                "altered_count": self.recovery.altered_count + (claim.altered_count or 0),
                "fired_at": timezone.now(),
            },
            data={"landed": str(newly), "absorbed": str(there_already), "part": part},
        )
        crash_point(Point.BEFORE_OUTCOME)

    # -- after the fire ---------------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Audit at the frontier again, once every part has fired."""
        crash_point(Point.BEFORE_VERIFY)
        if self.recovery.batch_index < self.recovery.batches:
            return self.claim_fire()
        self._audited(RecoveryState.HANDING_OVER)
        return None

    def finish_handed_over(self) -> None:
        """Check where the sink will let the relay start, then record the outcome of the verification."""
        crash_point(Point.BEFORE_HAND_OVER)
        self.report(step="handing over")
        self.sink.staged_purge()
        own_claims.claims_find(self.recovery, self.intent, self.sink, self._wait())
        stored = self.sink.hand_over()
        outcome, says = outcomes.outcome_of(self.recovery, stored)
        self._finish(outcome, says, data={"start": dict(stored)}, fields={"start": dict(stored)})

    def refuse(self, error: FencepostError) -> None:
        """End what cannot go on, as the sink says: what landed is never called refused, what was passed is fenced."""
        if not intents.intent_heartbeat(self.intent, now_get()):
            raise error  # another worker goes on with it
        if self.recovery.batch_index >= self.recovery.batches:
            return self._finish(RecoveryOutcome.UNKNOWN, f"It has fired, and could not be verified: {error}")
        self._give_up(str(error))  # at a restored sink, too: it may be open there
        if (passed := own_claims.passed_by_another(self.recovery, self.sink, self._wait())) is not None:
            return self._end_fenced(passed.generation, passed.superseded_by, asdict(passed))
        before = f"{self.recovery.landed_count} delivered before that. " if self.recovery.landed_count else ""
        return self._end(Next.REFUSED, f"{error} {before}Nothing else was sent. Plan again.")

    # -- small steps ------------------------------------------------------------------------------------------------

    def _claim_said(self, generation: int) -> ClaimReading:
        """The claim as the sink holds it, locked for reading, and remembered."""
        return own_claims.claim_said(self.recovery, self.sink, generation, self._wait())

    def _give_up(self, reason: str) -> None:
        own_claims.claims_give_up(self.recovery, self.intent, self.sink, reason, self._wait())

    def _is_ours(self, generation: int | None) -> bool:
        return generation is not None and self.recovery.generations.filter(number=generation).exists()

    def _stopped(self, before: str) -> bool:
        """A safe point: holds while a pause is wanted, ends the recovery where a stop is."""
        if wanted_after_pause(self.recovery, self.intent, self.report, before) != Wanted.STOP:
            return False
        fence = own_claims.all_given_up(self.recovery, self.intent, self.sink, "stopped by a person", self._wait())
        done, parts = self.recovery.batch_index, self.recovery.batches
        sent = f"after {done} of {parts} parts; {self.recovery.landed_count} delivered"
        self._end(Next.STOPPED, f"Stopped {sent if done else 'before anything was sent'}.{fence}")
        return True

    def _end_fenced(self, generation: int | None, by: object, told: Mapping[str, Any]) -> None:
        says = own_claims.fenced_says(self.recovery, generation, by, told)
        self._end(Next.FENCED, f"{says} Plan again to see what is still owed.")

    def _end(self, end: Next, says: str, data: Mapping[str, Any] | None = None) -> None:
        """Ends with nothing landed, unless a batch did under another generation of this recovery: then it is verified."""
        fired = own_claims.claims_settle(self.recovery, self.intent, self.sink, self._wait())
        if end_next(end, has_fired_unrecorded=fired is not None) is Next.LANDED and fired is not None:
            return self._landed(fired, f"found fired under generation {fired.generation}")
        own_claims.staged_remove(self.sink)
        return self._finish(RecoveryOutcome(end.value), says, data=data)
