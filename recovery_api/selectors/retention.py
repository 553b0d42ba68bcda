"""Whose evidence parts there are, and what rests on each: rows in, domain.retention's facts out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from recovery_api.domain.retention import SETTINGS, Ages, Keeping, Parts, Piece, ages_parse, parts_keep
from recovery_api.models import (
    WAITING_STATES,
    ArchivePart,
    Audit,
    Event,
    LedgerItem,
    LedgerLane,
    LedgerReading,
    Pipeline,
    Plan,
    PlanState,
    Recovery,
    RecoveryState,
)
from recovery_api.selectors.ledger import ledger_evidence

COMPUTING = (PlanState.DRAFT, PlanState.COMPUTING)


@dataclass(frozen=True, slots=True)
class Kept:
    """One audit or plan with parts. `gone_at`: since when they are gone."""

    id: UUID
    pipeline_id: int
    uri: str
    parts: Parts
    gone_at: datetime | None

    def keeping(self, ages: Ages, now: datetime) -> Keeping:
        return parts_keep(self.parts, ages, now)


def ages_get() -> Ages:
    """The ages that are set. Raises: BadInput."""
    return ages_parse({name: getattr(settings, name) for name in SETTINGS})


def evidence_kept(pipeline: Pipeline, audits: QuerySet[Audit], plans: QuerySet[Plan]) -> list[Kept]:
    """Of these audits and plans of the pipeline those that wrote parts, with what rests on each. Seven queries."""
    newest_audit = Audit.objects.filter(pipeline=pipeline).exclude(evidence_uri="").order_by("-finished_at")
    newest_plan = Plan.objects.filter(pipeline=pipeline).exclude(evidence_uri="").order_by("-created_at")
    recoveries = list(Recovery.objects.filter(pipeline=pipeline).order_by("-created_at").defer(*RECOVERY_LEFT_OUT))
    given = _Rests(
        pipeline=pipeline,
        newest=(
            *newest_audit.values_list("pk", flat=True)[:1],
            *newest_plan.values_list("pk", flat=True)[:1],
        ),
        recoveries=recoveries,
        open_items=_open_items(pipeline),
        ledger=ledger_evidence(pipeline),
    )
    return [
        *(given.audit(one) for one in audits.exclude(evidence_uri="").only(*AUDIT_COLUMNS)),
        *(given.plan(one) for one in plans.exclude(evidence_uri="").only(*PLAN_COLUMNS)),
    ]


RECOVERY_LEFT_OUT = ("certificate", "attestations", "progress", "says", "reason")
AUDIT_COLUMNS = ("id", "pipeline_id", "recovery_id", "evidence_uri", "evidence_gone_at", "finished_at")
PLAN_COLUMNS = ("id", "pipeline_id", "state", "evidence_uri", "evidence_gone_at", "created_at", "computed_at")


def audit_kept(audit: Audit) -> Kept | None:
    """None: it wrote no parts."""
    found = evidence_kept(audit.pipeline, Audit.objects.filter(pk=audit.pk), Plan.objects.none())
    return next(iter(found), None)


def plan_kept(plan: Plan) -> Kept | None:
    """None: it wrote no parts."""
    found = evidence_kept(plan.pipeline, Audit.objects.none(), Plan.objects.filter(pk=plan.pk))
    return next(iter(found), None)


def recovery_kept(recovery: Recovery) -> list[Kept]:
    """What its certificate rests on: the parts of its verification and of its plan, the newest first."""
    audits = Audit.objects.filter(recovery=recovery).order_by("-finished_at")
    return evidence_kept(recovery.pipeline, audits, Plan.objects.filter(pk=recovery.plan_id))


def certificate_until(recovery: Recovery) -> datetime | None:
    """Until when its certificate says that its evidence lasts. None: it does not say."""
    until: datetime | None = getattr(recovery, "certificate_evidence_until", None)
    return until


def audits_unneeded(found: QuerySet[Audit]) -> QuerySet[Audit]:
    """Those of `found` that nothing rests on: no recovery, plan, event, archive, ledger, and no audit that would go on from
    their evidence."""
    rests = (
        Exists(Event.objects.filter(audit=OuterRef("pk"))),
        Exists(Plan.objects.filter(audit=OuterRef("pk"))),
        Exists(ArchivePart.objects.filter(audit=OuterRef("pk"))),
        Exists(LedgerLane.objects.filter(audit=OuterRef("pk"))),
        Exists(LedgerItem.objects.filter(first_audit=OuterRef("pk"))),
        Exists(LedgerItem.objects.filter(last_audit=OuterRef("pk"))),
        Exists(_evidenced(LedgerLane.objects.all(), "evidence")),  # a ledger that lost its base goes by an older one
        Exists(_evidenced(LedgerReading.objects.all(), "evidence_uri")),
    )
    found = found.filter(recovery__isnull=True)
    for one in rests:
        found = found.filter(~one)
    return found


def _evidenced(rows: QuerySet[Any], column: str) -> QuerySet[Any]:
    return rows.filter(pipeline=OuterRef("pipeline"), **{column: OuterRef("evidence_uri")}).exclude(**{column: ""})


@dataclass(frozen=True, slots=True)
class _Rests:
    pipeline: Pipeline
    newest: Sequence[UUID]
    recoveries: Sequence[Recovery]
    open_items: frozenset[UUID]
    ledger: set[str]

    def audit(self, audit: Audit) -> Kept:
        recovery = next((one for one in self.recoveries if one.pk == audit.recovery_id), None)
        return self._kept(audit, Piece.AUDIT, audit.finished_at, recovery, is_waiting=False)

    def plan(self, plan: Plan) -> Kept:
        recovery = next((one for one in self.recoveries if one.plan_id == plan.pk), None)
        is_waiting = plan.state in (*WAITING_STATES, *COMPUTING)
        return self._kept(plan, Piece.PLAN, plan.computed_at or plan.created_at, recovery, is_waiting=is_waiting)

    def _kept(
        self,
        row: Audit | Plan,
        piece: Piece,
        ended_at: datetime,
        recovery: Recovery | None,
        *,
        is_waiting: bool,
    ) -> Kept:
        finished = [one for one in self.recoveries if one.state == RecoveryState.FINISHED and one.certificate_digest]
        parts = Parts(
            piece=piece,
            ended_at=ended_at,
            evidence_until=certificate_until(recovery) if recovery else None,
            is_newest=row.pk in self.newest,
            of_certificate=recovery in finished,
            is_newest_certificate=bool(finished) and recovery == finished[0],
            unfinished=recovery is not None and recovery.state != RecoveryState.FINISHED,
            is_waiting=is_waiting,
            of_open_item=row.pk in self.open_items,
            of_ledger=row.evidence_uri in self.ledger,
        )
        return Kept(row.pk, self.pipeline.pk, row.evidence_uri, parts, row.evidence_gone_at)


def _open_items(pipeline: Pipeline) -> frozenset[UUID]:
    """The audits that first and last saw what is still open."""
    items = LedgerItem.objects.filter(pipeline=pipeline, settled_at__isnull=True).order_by()
    pairs: Iterable[tuple[UUID, UUID]] = items.values_list("first_audit_id", "last_audit_id").distinct()
    return frozenset(audit for pair in pairs for audit in pair)


def pipeline_kept(pipeline: Pipeline) -> list[Kept]:
    """Everything of the pipeline that has or had parts, newest first."""
    audits = Audit.objects.filter(pipeline=pipeline).order_by("-finished_at")
    plans = Plan.objects.filter(pipeline=pipeline).order_by("-created_at")
    return sorted(evidence_kept(pipeline, audits, plans), key=lambda one: one.parts.ended_at, reverse=True)
