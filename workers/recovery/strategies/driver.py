"""What every strategy's driver shares: guarded moves, the audit that alone makes an outcome, and the end.

One law: what happened is what the sink says. Every step is written in the control database before the sink is asked and
after it has answered; a worker that finds a recovery half done goes on from what the sink shows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import FencepostError
from recovery_api.domain.evidence_places import Stored
from recovery_api.domain.frontiers import frontier_from_row
from recovery_api.models import EventKind, Intent, Recovery, RecoveryState
from recovery_api.selectors.clock import now_get
from recovery_api.services import recoveries
from workers.evidence.read import evidence_read
from workers.recovery import outcomes
from workers.recovery.ends import evidence_place, request_make, sink_check
from workers.recovery.steering import wanted_after_pause

ACTOR = "worker"


class Driver(ABC):
    """One worker's run of a recovery, by the strategy that its plan recorded."""

    def __init__(self, intent: Intent, report: Any, recovery: Recovery, session: Any) -> None:
        self.intent, self.report, self.recovery, self.session = intent, report, recovery, session

    @abstractmethod
    def step(self) -> None:
        """From the state the row is in to the next one."""

    @abstractmethod
    def refuse(self, error: FencepostError) -> None:
        """End what cannot go on, as the sink says: what landed is never called refused."""

    # -- what is left when everything was sent ----------------------------------------------------------------------

    def _audited(self, to: str, attested: Sequence[str] = ()) -> None:
        """Audit at the recovery's frontier again, from the sink, and go `to` with that. Only this makes an outcome.

        `attested`: what its verdict rests on beside the source's ground.
        """
        wanted_after_pause(self.recovery, self.intent, self.report, "the verification", is_reading=True)
        name = f"{self.recovery.id}-verified-{self.intent.id}-{self.intent.attempts}"
        request = request_make(
            self.recovery.pipeline,
            evidence_place("recoveries", name),
            frontier=frontier_from_row(self.recovery.frontier),
            plan=self.recovery.plan,
        )
        started_at = now_get()
        with evidence_read(self.session, request, self.report) as found:
            pass
        sink_check(self.recovery.pipeline)
        outcomes.verification_record(self.recovery, self.intent, found, started_at, attested)
        self._move(to, EventKind.VERIFIED, outcomes.verification_says(found, attested))

    # -- small steps ------------------------------------------------------------------------------------------------

    def _parts(self) -> list[dict[str, Any]]:
        return self.recovery.plan.pins.get("parts") or [self.recovery.frontier]

    def _part_frontier(self) -> dict[str, Coordinate]:
        parts = self._parts()
        return frontier_from_row(parts[min(self.recovery.batch_index, len(parts) - 1)])

    def _wait(self) -> float:
        """How long a step waits at the sink for others' locks, in seconds."""
        return float(self.recovery.pipeline.options.get("claim_wait_seconds") or 5)

    def _move(
        self,
        to: str,
        event: str,
        says: str,
        *,
        generation: int | None = None,
        fields: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        evidence: Stored | None = None,
    ) -> None:
        self.report.check_held()
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
            evidence=evidence,
            **dict(fields or {}),
        )

    def _finish(
        self, outcome: str, says: str, data: Mapping[str, Any] | None = None, fields: Mapping[str, Any] | None = None
    ) -> None:
        self.report.check_held()
        certificate = outcomes.certificate_make(self.recovery, outcome, says)
        self.recovery = recoveries.recovery_finish(
            self.recovery,
            outcome=outcome,
            says=says,
            certificate=certificate,
            certificate_digest=outcomes.certificate_digest(certificate),
            intent=self.intent,
            actor=ACTOR,
            now=now_get(),  # the pipeline's status compares it with when the record was read, by the same clock
            data=data,
            **dict(fields or {}),
        )

    @property
    def is_over(self) -> bool:
        return self.recovery.state == RecoveryState.FINISHED
