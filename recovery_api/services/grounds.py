"""What becomes of verdicts whose ground was refuted: a row came in at or below a frontier that was taken to be safe."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.frontiers import frontier_from_row
from recovery_api.models import Audit, AuditStatus, EventKind, Pipeline, Plan, Recovery, Source
from recovery_api.services.events import event_append
from recovery_api.services.history import observations_end
from recovery_api.services.ledger import ledger_unsettle
from recovery_api.services.plans import plans_lapse
from recovery_api.services.schedules import pins_forget

NO_CERTIFICATE = (AuditStatus.OWED, AuditStatus.HAZARD, AuditStatus.UNKNOWN)


def audits_void(pipelines: Collection[Pipeline], says: str, now: datetime) -> int:
    """How many audits of these pipelines are void from now on: other rows were judged than would be now.

    What a recovery's certificate says of its own rows stays as true as it was.
    """
    pins_forget(pipelines)
    observations_end(pipelines, now)
    standing = Audit.objects.filter(pipeline__in=pipelines, void_since__isnull=True)
    return standing.update(void_since=now, void_says=f"It judged other rows than are read now. {says}")


def ground_refute(
    source: Source,
    lane: str,
    lowest: Coordinate | None,
    says: str,
    *,
    actor: str,
    now: datetime,
    but: Plan | None = None,
) -> int:
    """How many audits and certificates are void from now on: those of `source` that judged `lane` at or above the
    lowest late row (None: it is not known which row was late, and every one is). Waiting plans lapse, except `but`.
    """
    says = f"Its ground was refuted: {says}."
    voided = 0
    with transaction.atomic():
        resting_on = list(Pipeline.objects.filter(source=source))
        pins_forget(resting_on)
        for pipeline in resting_on:
            audits = Audit.objects.filter(pipeline=pipeline, void_since__isnull=True).exclude(status__in=NO_CERTIFICATE)
            resting = [audit.pk for audit in audits.only("pk", "frontier") if _rests(audit.frontier, lane, lowest)]
            voided += Audit.objects.filter(pk__in=resting).update(void_since=now, void_says=says)
            recoveries = Recovery.objects.filter(
                pipeline=pipeline, certificate__isnull=False, certificate_void_since__isnull=True
            )
            certified = [one.pk for one in recoveries.only("pk", "frontier") if _rests(one.frontier, lane, lowest)]
            voided += Recovery.objects.filter(pk__in=certified).update(
                certificate_void_since=now, certificate_void_says=says
            )
            ledger_unsettle(pipeline, lane)
            if resting:
                observations_end([pipeline], now)
            if resting or certified:
                told = f"{len(resting)} audits and {len(certified)} certificates are void. {says}"
                data = {"audits": [str(pk) for pk in resting], "recoveries": [str(pk) for pk in certified]}
                event_append(EventKind.STEP, actor=actor, now=now, says=told, pipeline=pipeline, data=data)
            plans_lapse(pipeline, because=says, actor=actor, now=now, but=but)
    return voided


def _rests(frontier: dict[str, dict[str, str]] | None, lane: str, lowest: Coordinate | None) -> bool:
    judged = frontier_from_row(frontier or {}).get(lane)
    return judged is not None and (lowest is None or lowest <= judged)
