"""Recoveries: requested once for an approved plan, moved by guarded writes, finished with what the sink verified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from recovery_api.domain.actors import subject
from recovery_api.domain.attestations import Attestation
from recovery_api.domain.commands import command_line
from recovery_api.domain.errors import BadInput, Frozen, Refused
from recovery_api.domain.evidence_places import Stored
from recovery_api.models import (
    LIVE_STATES,
    EventKind,
    Intent,
    IntentAction,
    IntentState,
    Pipeline,
    Plan,
    PlanState,
    Recovery,
    RecoveryOutcome,
    RecoveryState,
    Sink,
    Wanted,
)
from recovery_api.selectors.freezes import frozen_check
from recovery_api.selectors.plans import plan_get
from recovery_api.selectors.recoveries import plan_strategy
from recovery_api.services.attestations import attestations_check
from recovery_api.services.constraints import constraints_mapped
from recovery_api.services.events import event_append
from recovery_api.services.evidence_places import evidence_keep
from recovery_api.services.intents import intent_cancel, intent_create, intent_finish, intent_hold
from recovery_api.services.plans import approval_is_old, plan_again, plan_lapse


def recovery_request(
    plan_id: UUID | str,
    reason: str,
    typed_pipeline_name: str,
    actor: str,
    *,
    now: datetime,
    attestations: Sequence[str] = (),
    digest: str | None = None,
    wake: bool = True,
) -> Recovery:
    """The recovery of an approved plan, with its intent. Asked twice, it is one recovery, and the timeline says so.

    `digest`, where given, must be the plan's: what was seen is what is applied.
    Raises: NotFound; BadInput for a missing reason or another pipeline's name; Refused where the digest is another, the
    plan is not approved, the approval lapsed, the sink was restored, the pipeline has an unfinished recovery, or an attestation
    that the plan needs is not given; Frozen where people stopped all sending.
    """
    plan = plan_get(plan_id)
    pipeline = plan.pipeline
    if not reason.strip():
        raise BadInput("reason", "is missing", "Say why, in a sentence; it stays in the timeline.")
    if typed_pipeline_name != pipeline.name:
        raise BadInput("confirm", f"{typed_pipeline_name!r} is not this plan's pipeline", "Type the pipeline's name.")
    if digest is not None and digest != plan.digest:
        reason_why = f"the plan's digest is {plan.digest or 'not computed yet'}, not {digest}"
        raise Refused(f"redriving {pipeline.name}", reason_why, "Look at the plan again, then apply that.")
    if (first := _of_plan(plan)) is not None:
        return _asked_again(first, reason.strip(), actor, now)
    _check_approval(plan, now)
    frozen_check(pipeline, f"Redriving {pipeline.name}")
    attested = attestations_check(plan, attestations, now)
    action = f"redriving {pipeline.name}"
    occupied = {"a_pipeline_has_one_unfinished_recovery": partial(_occupied, pipeline, action)}
    with constraints_mapped(action, occupied):
        try:
            with transaction.atomic():
                return _request(plan, reason.strip(), actor, now, attested, wake)
        except _AnotherFirst:
            if (first := _of_plan(plan)) is not None:
                return _asked_again(first, reason.strip(), actor, now)
    raise Refused(action, "the plan is no longer approved", plan_again(pipeline))


def recovery_move(
    recovery: Recovery,
    *,
    expected: str,
    to: str,
    event: str,
    actor: str,
    now: datetime,
    says: str = "",
    generation: int | None = None,
    data: Mapping[str, Any] | None = None,
    intent: Intent | None = None,
    evidence: Stored | None = None,
    **fields: Any,
) -> Recovery:
    """The recovery in `to`, with its event, in one transaction; `recovery` itself is updated.

    Guarded by the state and the revision as read, and by `intent`, where given, being still ours: a worker that was
    taken over writes nothing. `generation`, where given, becomes the recovery's; one that claims has none until the sink
    has drawn it. An earlier problem is over, for somebody goes on. `evidence`: what it goes by from now on is kept. `fields` are
    further columns.
    Raises: Refused where another got there first, or the move is not one of its strategy's.
    """
    if not plan_strategy(recovery.plan).move_is_allowed(expected, to):
        raise Refused(f"moving {recovery}", f"{expected} is not followed by {to}", "This is a defect; report it.")
    if generation is not None or to == RecoveryState.CLAIMING:
        fields["generation"] = generation
    with transaction.atomic():
        if intent is not None:
            intent_hold(intent)
        written = _write(
            recovery, {"state": expected}, {"state": to, "moved_at": now, "problem": None, "progress": None, **fields}
        )
        if evidence is not None:
            evidence_keep(evidence, now, recovery)
        event_append(
            event,
            actor=actor,
            now=now,
            says=says or f"{RecoveryState(expected).label} to {RecoveryState(to).label.lower()}.",
            recovery=recovery,
            generation=written.get("generation", recovery.generation),
            data=data,
        )
    return _keep(recovery, written)


def recovery_finish(
    recovery: Recovery,
    *,
    outcome: str,
    says: str,
    actor: str,
    now: datetime,
    certificate: Mapping[str, Any] | None = None,
    certificate_digest: str = "",
    intent: Intent | None = None,
    data: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Recovery:
    """The recovery, finished; its intent ends with it. Raises: Refused where another got there first."""
    if outcome not in RecoveryOutcome.values:
        raise BadInput("outcome", f"{outcome!r} is no outcome", f"One of: {', '.join(RecoveryOutcome.values)}.")
    if recovery.state == RecoveryState.FINISHED:
        raise Refused(f"finishing {recovery}", f"it is finished: {recovery.outcome}", "Nothing was written.")
    with transaction.atomic():
        written = _write(
            recovery,
            {"state": recovery.state},
            {
                "state": RecoveryState.FINISHED,
                "outcome": outcome,
                "says": says,
                "certificate": dict(certificate) if certificate is not None else None,
                "certificate_digest": certificate_digest,
                "certificate_evidence_until": _evidence_until(certificate),
                "finished_at": now,
                "moved_at": now,
                "progress": None,
                **fields,
            },
        )
        event_append(
            EventKind.RECOVERY_FINISHED,
            actor=actor,
            now=now,
            says=says,
            recovery=recovery,
            generation=recovery.generation,
            data={"outcome": outcome, "certificate_digest": certificate_digest, **(data or {})},
        )
        if intent is not None:
            intent_finish(intent, {"recovery": str(recovery.id), "outcome": outcome}, now)
    return _keep(recovery, written)


def _evidence_until(certificate: Mapping[str, Any] | None) -> datetime | None:
    """As the certificate itself says it."""
    until = (certificate or {}).get("evidence_until")
    return datetime.fromisoformat(until) if until else None


def recovery_want(
    recovery: Recovery, wanted: str, *, actor: str, now: datetime, reason: str, wake: bool = True
) -> Recovery:
    """Asks a running recovery to run, pause or stop; the worker obeys between two steps, and one not begun stops now.

    Raises: BadInput; Refused where it is finished.
    """
    if wanted not in Wanted.values:
        raise BadInput("wanted", f"{wanted!r} cannot be asked", f"One of: {', '.join(Wanted.values)}.")
    if not reason.strip():
        raise BadInput("reason", "is missing", "Say why, in a sentence; it stays in the timeline.")
    with transaction.atomic():
        locked = Recovery.objects.select_for_update(no_key=True).get(id=recovery.id)
        if locked.state == RecoveryState.FINISHED:
            raise Refused(
                f"asking {recovery} to {wanted}", f"it is finished: {locked.outcome}", "There is no more to do."
            )
        Recovery.objects.filter(id=locked.id).update(wanted=wanted, wanted_by=actor)
        says = f"{subject(actor)} asked it to {wanted}: {reason.strip()}"
        event_append(EventKind.WANTED, actor=actor, now=now, says=says, recovery=locked, data={"wanted": wanted})
        if wanted == Wanted.STOP and locked.state == RecoveryState.REQUESTED:
            for intent in locked.intents.filter(state=IntentState.QUEUED):
                if intent_cancel(intent, actor=actor, now=now):
                    says = "Stopped before anything was done at the sink."
                    recovery_finish(locked, outcome=RecoveryOutcome.STOPPED, says=says, actor=actor, now=now)
    recovery.refresh_from_db()
    if wanted == Wanted.STOP and recovery.state != RecoveryState.FINISHED:
        recovery_settle_request(recovery, actor=actor, now=now, wake=wake)  # somebody has to be there to obey
    return recovery


def recovery_hold(
    recovery: Recovery,
    before: str | None,
    *,
    actor: str,
    now: datetime,
    intent: Intent | None = None,
    because: str = "",
) -> None:
    """Says that the recovery really holds, before the step `before`; None: that it goes on. `because`: where it was not
    asked of this recovery itself. Raises: Refused."""
    with transaction.atomic():
        if intent is not None:
            intent_hold(intent)
        Recovery.objects.filter(id=recovery.id).exclude(state=RecoveryState.FINISHED).update(
            progress=None if before is None else {"holds_before": before, "because": because}
        )
        says = "It goes on." if before is None else f"It holds before {before}. {because}".strip()
        event_append(EventKind.STEP, actor=actor, now=now, says=says, recovery=recovery, generation=recovery.generation)


def recovery_wanted(recovery: Recovery) -> str:
    """What a person wants of it now: run, pause or stop. Read it between two steps."""
    return Recovery.objects.values_list("wanted", flat=True).get(id=recovery.id)


def recovery_settle_request(recovery: Recovery, *, actor: str, now: datetime, wake: bool = True) -> Intent:
    """An intent to learn from the sink what became of it; the live one where somebody is at it already.

    One that ended unknown is unfinished again from now on.
    Raises: Refused where it is finished with a known outcome, or the pipeline has another unfinished recovery.
    """
    action = f"settling {recovery}"
    occupied = {"a_pipeline_has_one_unfinished_recovery": partial(_occupied, recovery.pipeline, action)}
    with constraints_mapped(action, occupied), transaction.atomic():
        locked = Recovery.objects.select_for_update(no_key=True).get(
            id=recovery.id
        )  # orders two requests: the second attaches
        live = Intent.objects.filter(recovery=locked, state__in=LIVE_STATES).first()
        if live is not None:
            Intent.objects.filter(id=live.id, state=IntentState.QUEUED, error__code=Frozen.code).update(
                error=None
            )  # asked for by a person, it is taken once more: to ask the sink, or to stop
            if live.arguments:  # the sweep's, which would only give it up: a person wants it to go on
                Intent.objects.filter(id=live.id, state=IntentState.QUEUED).update(arguments={})
            return live
        if locked.state == RecoveryState.FINISHED:
            _reopen(locked, actor, now)
        return intent_create(
            IntentAction.SETTLE, actor=actor, now=now, pipeline=locked.pipeline, recovery=locked, wake=wake
        )


def _reopen(recovery: Recovery, actor: str, now: datetime) -> None:
    """Unfinished again: to be verified where every part has fired, else to be settled. Only an unknown outcome may."""
    if recovery.outcome != RecoveryOutcome.UNKNOWN:
        raise Refused(f"settling {recovery}", f"it is finished: {recovery.outcome}", "There is no more to do.")
    has_fired = recovery.fired_at is not None and recovery.batch_index >= recovery.batches
    to = RecoveryState.VERIFYING if has_fired else RecoveryState.SETTLING
    fields = {"state": to, "outcome": None, "finished_at": None, "moved_at": now, "certificate": None}
    fields["certificate_evidence_until"] = None
    _write(recovery, {"state": RecoveryState.FINISHED, "outcome": RecoveryOutcome.UNKNOWN}, fields)
    event_append(
        EventKind.STEP,
        actor=actor,
        now=now,
        says=f"Its outcome was unknown; {subject(actor)} asked the sink again.",
        recovery=recovery,
        generation=recovery.generation,
    )


class _AnotherFirst(Exception):
    """The plan was no longer approved when its row was written: rolls the request back."""


def _request(
    plan: Plan, reason: str, actor: str, now: datetime, attested: Sequence[Attestation], wake: bool
) -> Recovery:
    """Plan applied, recovery, intent and event: all of them or none. Locks its sinks first, as `sink_remember` does."""
    ends = [end for end in (plan.pipeline.sink_id, plan.pipeline.delivery_id) if end is not None]
    for sink in Sink.objects.select_for_update(no_key=True).filter(id__in=ends).order_by("id"):
        if sink.restored_at is not None:
            raise Refused(
                f"redriving {plan.pipeline.name}",
                sink.restored_says or "its sink was restored",
                f"Make it safe: {command_line('sinks', 'settle', sink.name)}.",
            )
    applied = Plan.objects.filter(
        id=plan.id, state=PlanState.APPROVED, approved_digest=plan.digest, digest=plan.digest
    ).update(state=PlanState.APPLIED)
    if not applied:
        raise _AnotherFirst
    recovery = Recovery.objects.create(
        plan=plan,
        pipeline=plan.pipeline,
        frontier=plan.frontier,
        reason=reason,
        requested_by=actor,
        attestations=[one.text() for one in attested],
        created_at=now,
    )
    event_append(
        EventKind.RECOVERY_REQUESTED,
        actor=actor,
        now=now,
        says=f"{subject(actor)} asked to redrive {plan.batch_count} events: {reason}",
        recovery=recovery,
        data={"digest": plan.digest, "reason": reason, "attestations": [one.text() for one in attested]},
    )
    intent_create(
        IntentAction.RECOVER, actor=actor, now=now, pipeline=plan.pipeline, plan=plan, recovery=recovery, wake=wake
    )
    return recovery


def _asked_again(recovery: Recovery, reason: str, actor: str, now: datetime) -> Recovery:
    """The recovery that the plan has already: the second request attaches to it, and stands in the timeline."""
    says = f"{subject(actor)} asked again: {reason} It is the same recovery; nothing more was started."
    data = {"reason": reason, "is_again": True}
    event_append(EventKind.RECOVERY_REQUESTED, actor=actor, now=now, says=says, recovery=recovery, data=data)
    return recovery


def _check_approval(plan: Plan, now: datetime) -> None:
    action = f"redriving {plan.pipeline.name}"
    again = plan_again(plan.pipeline)
    if plan.state == PlanState.READY:
        remedy = f"Approve it: manage.py approve {plan.id} --digest {plan.digest}."
        raise Refused(action, "the plan is not approved", remedy)
    if plan.state not in (PlanState.APPROVED, PlanState.APPLIED):
        raise Refused(action, f"the plan is {PlanState(plan.state).label.lower()}", again)
    if approval_is_old(plan, now):
        plan_lapse(plan, because="Its approval grew too old.", actor="redrive", now=now)
        raise Refused(action, f"the approval of {plan.approved_at:%Y-%m-%d %H:%M} UTC has lapsed", again)


def _of_plan(plan: Plan) -> Recovery | None:
    return Recovery.objects.filter(plan=plan).select_related("pipeline", "plan").first()


def _occupied(pipeline: Pipeline, action: str) -> Refused:
    first = Recovery.objects.filter(~Q(state=RecoveryState.FINISHED), pipeline=pipeline).first()
    named = f"recovery {first.id} ({first.state})" if first else "another recovery"
    return Refused(
        action,
        f"{named} is unfinished",
        f"Wait for it, or settle it: {command_line('recovery', pipeline.name, 'settle')}.",
    )


def _write(recovery: Recovery, expected: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The guarded write of every move, on the row as read; what was written, to keep once it is committed.

    Raises: Refused.
    """
    landed = Recovery.objects.filter(id=recovery.id, revision=recovery.revision, **expected).update(
        revision=F("revision") + 1, **fields
    )
    if not landed:
        now_is = Recovery.objects.filter(id=recovery.id).values_list("state", flat=True).first()
        raise Refused(
            f"moving {recovery}",
            f"another got there first: it is {now_is}, and was read as {recovery.state}",
            "Stop here; whoever moved it goes on.",
        )
    return {**fields, "revision": recovery.revision + 1}


def _keep(recovery: Recovery, written: Mapping[str, Any]) -> Recovery:
    for name, value in written.items():
        setattr(recovery, name, value)
    return recovery
