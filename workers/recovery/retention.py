"""The sweep's chores about what the product keeps of itself: the history is thinned, what is older than it is kept goes."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings

from recovery_api.domain.retention import Ages, Piece
from recovery_api.models import Audit
from recovery_api.selectors.retention import Kept, ages_get
from recovery_api.services.history import history_thin
from recovery_api.services.retention import evidence_left, evidence_retire, records_retire, upkeep_begin
from recovery_api.services.schedules import schedules_forget
from workers.recovery.ends import evidence_forget

logger = logging.getLogger(__name__)

THIN_EVERY = timedelta(hours=1)
RETIRE_EVERY = timedelta(hours=6)


def retention_sweep(now: datetime) -> None:
    """Does what is due, if no other sweep does. Raises: BadInput where an age is set that cannot be used."""
    ages = ages_get()
    if upkeep_begin("history", now, THIN_EVERY):
        history_thin(now, ages.history)
        evidence_forget(schedules_forget(now))
    if upkeep_begin("retention", now, RETIRE_EVERY):
        if Path(settings.FENCEPOST_EVIDENCE_DIR).is_dir():  # else it lies on another machine, or is not mounted
            _parts_retire(now, ages)
        records_retire(now, ages)


def _parts_retire(now: datetime, ages: Ages) -> None:
    gone = evidence_retire(now, ages)
    evidence_forget([*(one.uri for one in gone), *_under_claims(gone)])
    if left := [one for one in gone if Path(one.uri).exists()]:
        evidence_left(left)
        logger.warning("%d parts of evidence could not be deleted, the first at %s", len(left), left[0].uri)


def _under_claims(gone: Iterable[Kept]) -> list[str]:
    """What recoveries read under their claims: nothing points to it but their ids, and it goes with their verification's
    parts."""
    audits = [one.id for one in gone if one.parts.piece is Piece.AUDIT and one.parts.of_certificate]
    recoveries = set(Audit.objects.filter(pk__in=audits).values_list("recovery_id", flat=True))
    kept = Audit.objects.filter(recovery__in=recoveries, evidence_gone_at__isnull=True)
    stays = set(kept.values_list("evidence_uri", flat=True))
    folder = Path(settings.FENCEPOST_EVIDENCE_DIR) / "recoveries"
    found = [str(path) for recovery in recoveries for path in folder.glob(f"{recovery}-*")]
    return [path for path in found if path not in stays]
