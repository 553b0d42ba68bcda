"""Driving a recovery of a table that has no fence: read, append a part in one transaction at the sink, verify.

The law: what is missing is decided under the sink's lock, so a part that may have landed already is simply run again. A
successor waits for the session that its predecessor left behind, and finds what that session landed. Nothing is claimed
or staged, so there is nothing to settle. What was attested is checked again before each part, as far as the sink can
show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from recovery_api.domain.actors import subject
from recovery_api.domain.archives import archived_says
from recovery_api.domain.attestations import RELAY_DRAINED, attestations_stored
from recovery_api.domain.capabilities import Capability
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import FencepostError, Refused, SinkBusy, TerminalError
from recovery_api.domain.strategies import strategy_of
from recovery_api.domain.strategies.attested import ATTESTED
from recovery_api.models import EventKind, RecoveryOutcome, RecoveryState, Wanted
from recovery_api.selectors.clock import now_get
from recovery_api.services import intents
from workers.connectors.protocols.delivery import Answer
from workers.evidence.batch import unrepresentable_read
from workers.evidence.read import Evidence, evidence_read
from workers.faults import Point, crash_point
from workers.recovery import outcomes
from workers.recovery.archiving import batch_archived
from workers.recovery.ends import capability_of, evidence_check, evidence_place, plan_stored, request_make, sink_check
from workers.recovery.steering import Asked, unless_asked, wanted_after_pause
from workers.recovery.strategies.driver import Driver
from workers.spark.jobs.appending import batch_append

MAY_HAVE_LANDED = "A part that an earlier attempt began may have landed: audit to know. "


class AttestedDriver(Driver):
    """One worker's run of a recovery without a fence."""

    def step(self) -> None:
        """From the state the row is in to the next one."""
        self.report.check()
        match self.recovery.state:
            case RecoveryState.REQUESTED:
                self.part()
            case RecoveryState.VERIFYING if self.recovery.batch_index >= self.recovery.batches:
                self.verify()
            case RecoveryState.VERIFYING:
                self.part()
            case _:
                self.take_over()

    def take_over(self) -> None:
        """Go on after a worker that died, or let go: the part is run again, and finds what landed of it."""
        if self._stopped("another reading"):
            return
        self._move(
            RecoveryState.READING,
            EventKind.RECOVERY_TAKEN_OVER,
            f"{subject(self.intent.taken_by)} goes on: part {self.recovery.batch_index + 1} is read again, and what landed of it "
            "already is found there.",
        )
        self.part()

    # -- one part ---------------------------------------------------------------------------------------------------

    def part(self) -> None:
        """Read both ends, compare with what was approved, append what is missing in one transaction of the sink."""
        if self._stopped("the reading"):
            return None
        evidence_check(self.recovery.plan)
        sink_check(self.recovery.pipeline)
        self._can_append(capability_of(self.recovery.pipeline))
        self._move(
            RecoveryState.READING,
            EventKind.STEP,
            f"Reading both ends, part {self.recovery.batch_index + 1} of {len(self._parts())}.",
            fields={"batches": len(self._parts())},
        )
        while not self._stopped("appending"):
            try:
                return self._read_append(self._part_frontier())
            except Asked:  # the reading is let go by now, and read again when it goes on
                continue
        return None

    def _read_append(self, part: Mapping[str, Coordinate]) -> None:
        plan = self.recovery.plan
        approved = plan_stored(plan)
        name = f"{self.recovery.id}-{self.intent.id}-{self.intent.attempts}"
        request = request_make(
            self.recovery.pipeline,
            evidence_place("recoveries", name),
            frontier=part,
            plan=plan,
            approved=approved,
            excluded=unrepresentable_read(approved),
        )
        with evidence_read(self.session, request, self.report) as found:
            crash_point(Point.DURING_READ)
            unless_asked(self.recovery, self.report)
            if complaint := outcomes.not_as_approved(found):
                return self._refused(complaint, {"approval": dict(found.approval or {})})
            if not found.batch_count:
                return self._landed(found, Answer("appended"))
            found.sink_release()
            archived = batch_archived(found)
            unless_asked(self.recovery, self.report)
            self._move(
                RecoveryState.APPENDING,
                EventKind.ARMED,
                " ".join([f"{found.batch_count} events prepared.", archived_says(archived)]).strip(),
                fields={"armed_count": found.batch_count},
                evidence=found.stored,
                data={
                    "count": str(found.batch_count),
                    "digest": found.batch_digest,
                    "part": str(self.recovery.batch_index),
                    "archived": str(archived),
                },
            )
            self.report(step="appending", done=0, total=found.batch_count, unit="events")
            answer = self._append(found)
        return self._landed(found, answer)

    def _append(self, found: Evidence) -> Answer:
        """The sink's answer. An error by which nothing landed is written down before it goes on."""
        crash_point(Point.BEFORE_APPEND)
        try:
            answer = batch_append(self.session, found, self._wait())
        except (SinkBusy, TerminalError) as error:
            self._move(RecoveryState.READING, EventKind.FIRE_REFUSED, f"Nothing of this part landed: {error}")
            raise
        crash_point(Point.APPENDED)
        return answer

    def _landed(self, found: Evidence, answer: Answer) -> None:
        """One part more. What was approved and is there already counts as already present, whoever brought it."""
        landed = int(answer.data.get("landed_count", 0))
        before = (found.approval or {}).get("landed_meanwhile", 0) - self.recovery.landed_count
        absorbed = max(before, 0) + int(answer.data.get("absorbed_count", 0))
        part = self.recovery.batch_index + 1
        self._move(
            RecoveryState.VERIFYING,
            EventKind.FIRED,
            f"{landed} added, {absorbed} already present.",
            fields={
                "batch_index": part,
                "landed_count": self.recovery.landed_count + landed,
                "absorbed_count": absorbed,
                "altered_count": self.recovery.altered_count + int(answer.data.get("altered_count", 0)),
                "fired_at": timezone.now(),
            },
            data={"landed": str(landed), "absorbed": str(absorbed), "part": part},
        )
        crash_point(Point.BEFORE_OUTCOME)

    # -- after the last part ----------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Audit at the frontier, and end with what that and the attestations support."""
        crash_point(Point.BEFORE_VERIFY)
        self._late_sends(capability_of(self.recovery.pipeline))
        self._audited(RecoveryState.VERIFYING, attested=self._given())
        outcome, says = outcomes.outcome_of(self.recovery, attested=self._given())
        self._finish(outcome, f"{says} {self._taken_over_says()}".strip())

    def refuse(self, error: FencepostError) -> None:
        """End what cannot go on. Where a part may have landed unseen, the outcome is unknown and never *refused*."""
        if not intents.intent_heartbeat(self.intent, now_get()):
            raise error  # another worker goes on with it
        if self.recovery.batch_index >= self.recovery.batches:
            return self._finish(RecoveryOutcome.UNKNOWN, f"Everything was sent, and could not be verified: {error}")
        return self._refused(str(error))

    # -- small steps ------------------------------------------------------------------------------------------------

    def _given(self) -> list[str]:
        """What was attested, as *given …* goes on."""
        return [one.given() for one in attestations_stored(self.recovery.attestations)]

    def _can_append(self, capability: Capability) -> None:
        """Raises: Refused where the sink, as tested now, is no longer one that this strategy may append to."""
        if strategy_of(capability) is not ATTESTED:
            why = capability.unappended_because or "its record cannot be read, or nothing may be appended to it"
            problem = f"the sink is no longer as the plan found it: {why}"
            remedy = "Nothing is weakened for it: let an admin look at the sink's rights and test it, then plan again."
            raise Refused(f"Appending to sink {self.recovery.pipeline.fired_into.name}", problem, remedy)
        self._late_sends(capability)

    def _late_sends(self, capability: Capability) -> None:
        """Raises: Refused where nothing refuses late sends any more, and nobody attested that there are none."""
        names = {one.name for one in attestations_stored(self.recovery.attestations)}
        if capability.absorbs_late_sends or RELAY_DRAINED in names:
            return
        raise Refused(
            f"Appending to sink {self.recovery.pipeline.fired_into.name}",
            "the unique constraint that refused late sends is gone, and nobody attested that the relay is stopped",
            "Plan again: the plan asks for what must be attested now.",
        )

    def _may_have_landed(self) -> bool:
        """Whether a part was begun of which nobody wrote down what became of it."""
        kinds = list(self.recovery.events.values_list("kind", flat=True))
        ended = kinds.count(EventKind.FIRED) + kinds.count(EventKind.FIRE_REFUSED)
        return kinds.count(EventKind.ARMED) > ended

    def _taken_over_says(self) -> str:
        if not self.recovery.events.filter(kind=EventKind.RECOVERY_TAKEN_OVER).exists():
            return ""
        return "What an attempt that ended early had added counts as already present."

    def _refused(self, why: str, data: Mapping[str, Any] | None = None) -> None:
        if self._may_have_landed():
            return self._finish(RecoveryOutcome.UNKNOWN, f"{why} {MAY_HAVE_LANDED}Then plan again.", data=data)
        before = f"{self.recovery.landed_count} added before that. " if self.recovery.landed_count else ""
        return self._finish(RecoveryOutcome.REFUSED, f"{why} {before}Nothing else was sent. Plan again.", data=data)

    def _stopped(self, before: str) -> bool:
        """A safe point: holds while a pause is wanted, ends the recovery where a stop is."""
        if wanted_after_pause(self.recovery, self.intent, self.report, before) != Wanted.STOP:
            return False
        done, parts = self.recovery.batch_index, self.recovery.batches
        sent = f"after {done} of {parts} parts; {self.recovery.landed_count} added"
        if self._may_have_landed():
            self._finish(RecoveryOutcome.UNKNOWN, f"Stopped, {sent}. {MAY_HAVE_LANDED}".strip())
        else:
            self._finish(RecoveryOutcome.STOPPED, f"Stopped {sent if done else 'before anything was sent'}.")
        return True
