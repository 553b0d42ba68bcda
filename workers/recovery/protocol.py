"""Driving one recovery: claim, read under the claim, arm, stage, fire, verify, hand over (THEORY section 4).

One law: what happened is what the sink says. Every step is written in the control database before the sink is asked
and after it has answered; a worker that finds a recovery half done asks the sink to settle the claim, and goes on from
there under a generation of its own. Nothing is concluded from the control database, a time-out or Celery.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from django.utils import timezone

from recovery_api.domain.claims import Settlement, settlement
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Refused, SinkRestored
from recovery_api.domain.frontiers import frontier_as_row, frontier_from_row
from recovery_api.models import EventKind, GenerationPurpose, Intent, Recovery, RecoveryOutcome, RecoveryState, Wanted
from recovery_api.selectors.recoveries import recovery_get
from recovery_api.services import generations, recoveries
from workers.connectors.base import Answer, BatchDigest, ClaimReading, FencedSink
from workers.faults import Point, crash_point
from workers.recovery import outcomes
from workers.recovery.ends import evidence_directory, request_make, session_open, sink_connector, sink_remember
from workers.spark.jobs.audit import Evidence, evidence_read
from workers.spark.jobs.redrive import batch_stage, unrepresentable_read

ACTOR = "worker"
FIRE_ATTEMPTS = 3
PAUSE_SECONDS = 1.0


def recovery_run(intent: Intent, report: Any) -> None:
    """Bring the intent's recovery to its end, from wherever a predecessor left it; its intent ends with it.

    Raises: SinkBusy, Unreachable and other transient errors: the intent is offered again, and settles first.
    """
    with session_open(intent) as session:
        run = _Run(intent, report, recovery_get(intent.recovery_id), session)
        while run.recovery.state != RecoveryState.FINISHED:
            try:
                run.step()
            except SinkRestored as restored:
                run.finish_restored(restored)


class _Run:
    """One worker's run of a recovery. Its own generation, never a predecessor's."""

    def __init__(self, intent: Intent, report: Any, recovery: Recovery, session: Any) -> None:
        self.intent, self.report, self.recovery, self.session = intent, report, recovery, session
        self.sink: FencedSink = sink_connector(recovery.pipeline)

    def step(self) -> None:
        """From the state the row is in to the next one."""
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
        reading = self.sink.settle(generation, wait_seconds=self._claim_wait())
        generations.claim_settle(self.recovery, asdict(reading), actor=ACTOR, now=timezone.now())
        self._move(
            RecoveryState.SETTLING,
            EventKind.RECOVERY_TAKEN_OVER,
            f"{self.intent.taken_by} goes on from what the sink says: the claim is {reading.state}.",
        )
        match settlement(reading, generation):
            case Settlement.FIRED:
                return self._landed(reading, "found fired when it was settled")
            case Settlement.SUPERSEDED if not self._is_ours(reading.superseded_by):
                return self._finish_fenced(generation, reading.superseded_by)
            case Settlement.RELEASED:
                return self._finish(
                    RecoveryOutcome.STOPPED, f"Its claim at generation {generation} was released; nothing of it landed."
                )
            case _:  # open, unclaimed, or passed by a generation of its own: supersede it with a newer one
                return self.claim_fire()

    # -- one part: claim to fire ------------------------------------------------------------------------------------

    def claim_fire(self) -> None:
        """Claim under a new generation, read, compare with what was approved, arm, stage, fire."""
        if self._stopped():
            return None
        part = self._part_frontier()
        generation = self._allocate()
        self._move(
            RecoveryState.CLAIMING,
            EventKind.STEP,
            f"Claiming at generation {generation}, part {self.recovery.batch_index + 1} of {len(self._parts())}.",
            generation=generation,
            fields={"batches": len(self._parts())},
        )
        crash_point(Point.BEFORE_CLAIM)
        self.report(step="claiming", says=f"generation {generation}")
        answer = self.sink.claim(generation, frontier_as_row(part), wait_seconds=self._claim_wait())
        if answer.word != "granted":
            self._claim_said(generation)
            return self._finish_fenced(generation, answer.data.get("fence"))
        crash_point(Point.AFTER_CLAIM)
        self._claim_said(generation)
        self._move(
            RecoveryState.ARMING,
            EventKind.CLAIM_GRANTED,
            f"Claim granted; the fence stands at {generation}.",
            fields={"claimed_at": timezone.now()},
        )
        return None if self._stopped() else self._read_fire(generation, part)

    def _read_fire(self, generation: int, part: Mapping[str, Coordinate]) -> None:
        plan = self.recovery.plan
        request = request_make(
            self.recovery.pipeline,
            evidence_directory("recoveries", f"{self.recovery.id}-{generation}"),
            frontier=part,
            generation=generation,
            approved=plan.evidence_uri,
            excluded=unrepresentable_read(plan.evidence_uri),
        )
        with ExitStack() as held:
            found = held.enter_context(evidence_read(self.session, request, self.report))
            crash_point(Point.DURING_READ)
            if complaint := _not_as_approved(found):
                self.sink.release(generation, complaint)
                return self._finish(
                    RecoveryOutcome.REFUSED,
                    f"{complaint} Nothing was sent; the claim was released. Plan again.",
                    data={"approval": dict(found.approval or {})},
                )
            for attempt in range(FIRE_ATTEMPTS):
                answer = self._arm_stage_fire(found, generation, part)
                if answer is None:
                    return None
                if answer.word != "mismatch" or attempt == FIRE_ATTEMPTS - 1:
                    return self._fired(answer, generation)
                self._move(
                    RecoveryState.ARMING,
                    EventKind.FIRE_REFUSED,
                    "What was staged is not what was armed; arming and staging again.",
                    data=answer.data,
                )
        return None

    def _arm_stage_fire(self, found: Evidence, generation: int, part: Mapping[str, Coordinate]) -> Answer | None:
        """The fire's answer; None where the recovery was stopped before it."""
        crash_point(Point.BEFORE_ARM)
        batch = BatchDigest(found.batch_count, found.batch_digest)
        armed = self.sink.arm(generation, batch, frontier_as_row(part))
        if armed.word != "armed":
            return armed
        arm = int(armed.data["arm"])
        crash_point(Point.AFTER_ARM)
        self._move(
            RecoveryState.STAGING,
            EventKind.ARMED,
            f"{batch.count} entries armed as arm {arm}.",
            fields={"armed_count": batch.count},
            data={"arm": arm, "count": str(batch.count), "digest": batch.digest},
        )
        self.report(step="staging", done=0, total=batch.count, unit="events")
        staged = batch_stage(self.session, found, generation, arm)
        crash_point(Point.DURING_STAGING)
        self.report(step="staging", done=staged, total=batch.count, unit="events")
        if self._stopped(generation):
            return None
        self._move(RecoveryState.FIRING, EventKind.STAGED, f"{staged} entries handed to staging.")
        crash_point(Point.BEFORE_FIRE)
        self.report(step="firing", done=0, total=batch.count, unit="events")
        start = frontier_as_row(outcomes.start_positions(found))
        answer = self.sink.fire(generation, arm, start)
        crash_point(Point.AFTER_FIRE)
        return answer

    def _fired(self, answer: Answer, generation: int) -> None:
        reading = self._claim_said(generation)
        if answer.word in ("landed", "already fired"):
            return self._landed(reading, answer.word)
        if answer.word in ("fenced", "no claim", "not armed"):
            return self._finish_fenced(generation, reading.superseded_by)
        self.sink.release(generation, "what was staged never became what was armed")
        raise Refused(
            f"Firing recovery {self.recovery.id}",
            f"the sink recomputed another batch than was armed, {FIRE_ATTEMPTS} times",
            "Look for something that changes contents between source and sink, then plan again.",
        )

    def _landed(self, claim: ClaimReading, how: str) -> None:
        part = self.recovery.batch_index + 1
        landed, absorbed = claim.landed_count or 0, claim.absorbed_count or 0
        self._move(
            RecoveryState.VERIFYING,
            EventKind.FIRED,
            f"{landed} landed, {absorbed} were there already ({how}).",
            fields={
                "batch_index": part,
                "landed_count": self.recovery.landed_count + landed,
                "absorbed_count": self.recovery.absorbed_count + absorbed,
                "altered_count": self.recovery.altered_count + (claim.altered_count or 0),
                "fired_at": timezone.now(),
            },
            data={"landed": str(landed), "absorbed": str(absorbed), "part": part},
        )
        crash_point(Point.BEFORE_OUTCOME)

    # -- after the fire ---------------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Audit at the part's frontier again, from the sink. Only this makes an outcome."""
        crash_point(Point.BEFORE_VERIFY)
        if self.recovery.batch_index < self.recovery.batches:
            return self.claim_fire()
        frontier = frontier_from_row(self.recovery.frontier)
        directory = evidence_directory("recoveries", f"{self.recovery.id}-verified")
        request = request_make(self.recovery.pipeline, directory, frontier=frontier)
        started_at = timezone.now()
        with evidence_read(self.session, request, self.report) as found:
            pass
        sink_remember(self.recovery.pipeline, self.sink)
        outcomes.verification_record(self.recovery, self.intent, found, started_at)
        self._move(RecoveryState.HANDING_OVER, EventKind.VERIFIED, outcomes.verification_says(found))
        return None

    def finish_handed_over(self) -> None:
        """Check where the sink will let the relay start, then record the outcome of the verification."""
        crash_point(Point.BEFORE_HAND_OVER)
        self.report(step="handing over")
        stored = self.sink.hand_over()
        outcome, says = outcomes.outcome_of(self.recovery, stored)
        self._finish(outcome, says, data={"start": dict(stored)}, fields={"start": dict(stored)})

    def finish_restored(self, restored: SinkRestored) -> None:
        """The sink is not the one this recovery began with: what landed there is gone or not, and only an audit tells."""
        has_fired = self.recovery.batch_index > 0
        self._finish(RecoveryOutcome.UNKNOWN if has_fired else RecoveryOutcome.REFUSED, str(restored))

    # -- small steps ------------------------------------------------------------------------------------------------

    def _allocate(self) -> int:
        sink_remember(self.recovery.pipeline, self.sink)
        answer = self.sink.generation_allocate("recoverer", f"recovery {self.recovery.id}")
        if answer.word != "allocated":
            raise Refused("Allocating a generation", f"the sink answered {answer.word}", "See the sink's state.")
        generation = int(answer.data["generation"])
        generations.generation_record(
            self.recovery.pipeline,
            generation,
            purpose=GenerationPurpose.RECOVERER,
            asked_by=self.intent.taken_by,
            now=timezone.now(),
            recovery=self.recovery,
        )
        return generation

    def _claim_said(self, generation: int) -> ClaimReading:
        """The claim as the sink holds it, locked for reading, and remembered."""
        reading = self.sink.settle(generation, wait_seconds=self._claim_wait())
        generations.claim_record(self.recovery, asdict(reading), now=timezone.now(), part=self.recovery.batch_index)
        return reading

    def _is_ours(self, generation: int | None) -> bool:
        return generation is not None and self.recovery.generations.filter(number=generation).exists()

    def _parts(self) -> list[dict[str, Any]]:
        return self.recovery.plan.pins.get("parts") or [self.recovery.frontier]

    def _part_frontier(self) -> dict[str, Coordinate]:
        parts = self._parts()
        return frontier_from_row(parts[min(self.recovery.batch_index, len(parts) - 1)])

    def _claim_wait(self) -> float:
        return float(self.recovery.pipeline.options.get("claim_wait_seconds") or 5)

    def _stopped(self, generation: int | None = None) -> bool:
        """A safe point: ends the recovery where a person asked for it."""
        self.report.check()
        while (wanted := recoveries.recovery_wanted(self.recovery)) == Wanted.PAUSE:
            self.report(step="paused", says="a claim already taken stays open until somebody says run or stop")
            threading.Event().wait(PAUSE_SECONDS)
        if wanted != Wanted.STOP:
            return False
        raised = generation or self.recovery.generation
        says = "Stopped before anything was sent."
        if raised is not None and self.recovery.state != RecoveryState.REQUESTED:
            self.sink.release(raised, "stopped by a person")
            says = (
                f"Stopped; nothing of generation {raised} landed. The fence stays at {raised}: a relay of an older "
                "generation is rejected and must ask for a new one."
            )
        self._finish(RecoveryOutcome.STOPPED, says)
        return True

    def _finish_fenced(self, generation: int, by: object) -> None:
        newer = f"generation {by}" if by not in (None, "") else "a newer generation"
        self._finish(
            RecoveryOutcome.FENCED,
            f"Superseded by {newer}: nothing of generation {generation} landed. Plan again to see what is still owed.",
        )

    def _move(
        self,
        to: str,
        event: str,
        says: str,
        *,
        generation: int | None = None,
        fields: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        self.report.check()
        self.recovery = recoveries.recovery_move(
            self.recovery,
            expected=self.recovery.state,
            to=to,
            intent=self.intent,
            event=event,
            says=says,
            actor=ACTOR,
            now=timezone.now(),
            generation=generation,
            data=data,
            **dict(fields or {}),
        )

    def _finish(
        self, outcome: str, says: str, data: Mapping[str, Any] | None = None, fields: Mapping[str, Any] | None = None
    ) -> None:
        self.report.check()
        certificate = outcomes.certificate_make(self.recovery, outcome, says)
        self.recovery = recoveries.recovery_finish(
            self.recovery,
            outcome=outcome,
            says=says,
            certificate=certificate,
            certificate_digest=outcomes.certificate_digest(certificate),
            intent=self.intent,
            actor=ACTOR,
            now=timezone.now(),
            data=data,
            **dict(fields or {}),
        )


def _not_as_approved(found: Evidence) -> str | None:
    """Why the batch read under the claim is not the approved one, or None. Fewer, each found accepted, is as approved."""
    approval = found.approval or {}
    if approval.get("not_approved"):
        return f"{approval['not_approved']} owed events were not in the approved batch."
    if approval.get("unexplained"):
        return f"{approval['unexplained']} approved events are neither owed nor accepted with that content any more."
    return None
