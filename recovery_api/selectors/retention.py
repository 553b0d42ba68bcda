"""Whose evidence parts there are, and what rests on each: rows in, domain.retention's facts out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Prefetch, QuerySet, Sum

from recovery_api.domain.retention import SETTINGS, Ages, Keeping, Parts, Piece, ages_parse, parts_keep
from recovery_api.models import (
    WAITING_STATES,
    ArchivePart,
    Audit,
    Event,
    ImageAudit,
    LedgerItem,
    LedgerLane,
    LedgerReading,
    Pipeline,
    Plan,
    PlanState,
    Recovery,
    RecoveryState,
    SettledItems,
)
from recovery_api.selectors.images import image_mapping

COMPUTING = (PlanState.DRAFT, PlanState.COMPUTING)


RECOVERY_LEFT_OUT = ("certificate", "attestations", "progress")
AUDIT_LEFT_OUT = (
    *("findings", "groups", "lanes", "weaknesses", "verified", "frontier", "givens"),
    *(f"recovery__{name}" for name in RECOVERY_LEFT_OUT),
)
PLAN_LEFT_OUT = ("conditions", "samples", "pins", "batch", "frontier")
IMAGE_LEFT_OUT = ("sample", "counts", "weaknesses", "givens", "frontier")
CERTIFIED = Recovery.objects.filter(state=RecoveryState.FINISHED).exclude(certificate_digest="")
OPEN = LedgerItem.objects.filter(settled_at__isnull=True)


@dataclass(frozen=True, slots=True)
class Kept:
    """One audit, plan or image audit with parts. `gone_at`: since when they are gone."""

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


def evidence_kept(audits: QuerySet[Audit], plans: QuerySet[Plan]) -> list[Kept]:
    """Of these audits and plans those that wrote parts, with what rests on each. Three queries at most."""
    found = audits.exclude(evidence_uri="").select_related("recovery").defer(*AUDIT_LEFT_OUT)
    found = found.annotate(
        has_newer=Exists(_newer(Audit.objects.exclude(evidence_uri=""), "finished_at")),
        has_newer_certificate=Exists(
            CERTIFIED.filter(pipeline=OuterRef("pipeline"), created_at__gt=OuterRef("recovery__created_at"))
        ),
        is_of_open_item=Exists(OPEN.filter(first_audit=OuterRef("pk")))
        | Exists(OPEN.filter(last_audit=OuterRef("pk"))),
        is_of_ledger=_of_ledger(),
    )
    planned = plans.exclude(evidence_uri="").defer(*PLAN_LEFT_OUT)
    planned = planned.annotate(
        has_newer=Exists(_newer(Plan.objects.exclude(evidence_uri=""), "created_at")),
        has_newer_certificate=Exists(
            CERTIFIED.filter(pipeline=OuterRef("pipeline"), plan__created_at__gt=OuterRef("created_at"))
        ),
        is_of_ledger=_of_ledger(),
    ).prefetch_related(Prefetch("recoveries", Recovery.objects.defer(*RECOVERY_LEFT_OUT)))
    return [*map(_audit_kept, found), *map(_plan_kept, planned)]


def images_kept(images: QuerySet[ImageAudit]) -> list[Kept]:
    """Of these image audits those that wrote parts, with what rests on each."""
    newer = _newer(ImageAudit.objects.exclude(evidence_uri=""), "finished_at")
    newer_base = _newer(ImageAudit.objects.exclude(base_digest=""), "finished_at")
    newer_base = newer_base.filter(base_mapping=OuterRef("base_mapping"))
    found = images.exclude(evidence_uri="").annotate(has_newer=Exists(newer), has_newer_base=Exists(newer_base))
    found = found.select_related("pipeline__source", "pipeline__sink").defer(*IMAGE_LEFT_OUT)
    return [
        Kept(
            one.pk,
            one.pipeline_id,
            one.evidence_uri,
            Parts(Piece.IMAGE, one.finished_at, is_newest=not one.has_newer, is_base=_is_base(one)),
            one.evidence_gone_at,
        )
        for one in found
    ]


def _is_base(image: Any) -> bool:
    """Whether the next image audit would go by it: the newest base of source and target as they are mapped now."""
    is_newest = bool(image.base_digest) and not image.has_newer_base
    return is_newest and image.base_mapping == image_mapping(image.pipeline)


def _newer(rows: QuerySet[Any], moment: str) -> QuerySet[Any]:
    return rows.filter(pipeline=OuterRef("pipeline"), **{f"{moment}__gt": OuterRef(moment)})


def _of_ledger() -> Any:
    lanes = _evidenced(LedgerLane.objects.all(), "evidence")
    return Exists(lanes) | Exists(_evidenced(LedgerReading.objects.all(), "evidence_uri"))


def _audit_kept(audit: Any) -> Kept:
    return _kept(audit, Piece.AUDIT, audit.finished_at, audit.recovery, of_open_item=audit.is_of_open_item)


def _plan_kept(plan: Any) -> Kept:
    recovery = next(iter(plan.recoveries.all()), None)
    is_waiting = plan.state in (*WAITING_STATES, *COMPUTING)
    return _kept(plan, Piece.PLAN, plan.computed_at or plan.created_at, recovery, is_waiting=is_waiting)


def _kept(row: Any, piece: Piece, ended_at: datetime, recovery: Recovery | None, **more: bool) -> Kept:
    is_finished = recovery is not None and recovery.state == RecoveryState.FINISHED
    is_certified = recovery is not None and is_finished and bool(recovery.certificate_digest)
    parts = Parts(
        piece=piece,
        ended_at=ended_at,
        evidence_until=recovery.certificate_evidence_until if recovery else None,
        is_newest=not row.has_newer,
        of_certificate=is_certified,
        is_newest_certificate=is_certified and not row.has_newer_certificate,
        unfinished=recovery is not None and not is_finished,
        of_ledger=row.is_of_ledger,
        **more,
    )
    return Kept(row.pk, row.pipeline_id, row.evidence_uri, parts, row.evidence_gone_at)


def audit_kept(audit: Audit) -> Kept | None:
    """None: it wrote no parts."""
    found = evidence_kept(Audit.objects.filter(pk=audit.pk), Plan.objects.none())
    return next(iter(found), None)


def plan_kept(plan: Plan) -> Kept | None:
    """None: it wrote no parts."""
    found = evidence_kept(Audit.objects.none(), Plan.objects.filter(pk=plan.pk))
    return next(iter(found), None)


def recovery_kept(recovery: Recovery) -> list[Kept]:
    """What its certificate rests on: the parts of its verification and of its plan, the newest first."""
    audits = Audit.objects.filter(recovery=recovery).order_by("-finished_at")
    return evidence_kept(audits, Plan.objects.filter(pk=recovery.plan_id))


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


def pipeline_kept(pipeline: Pipeline) -> list[Kept]:
    """Everything of the pipeline that has or had parts, newest first."""
    audits = Audit.objects.filter(pipeline=pipeline).order_by("-finished_at")
    plans = Plan.objects.filter(pipeline=pipeline).order_by("-created_at")
    found = [*evidence_kept(audits, plans), *images_kept(ImageAudit.objects.filter(pipeline=pipeline))]
    return sorted(found, key=lambda one: one.parts.ended_at, reverse=True)


def settled_gone(pipeline: Pipeline) -> int:
    """How many settled items went by age."""
    return SettledItems.objects.filter(pipeline=pipeline).aggregate(gone=Sum("count"))["gone"] or 0
