"""A place of evidence from its beginning to its end: given to one attempt, kept with what rests on it, released, taken away.

The law: a manifest is committed with the row that rests on it, or not at all; and who reads goes by the manifest.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import uuid4

from recovery_api.domain.errors import EvidenceUnwritable
from recovery_api.domain.evidence_places import Stored, uri_of, url_below
from recovery_api.models import Audit, EvidencePlace, ImageAudit, Plan, Recovery
from recovery_api.selectors.evidence_places import store_url

WITH_PARTS = (Audit, Plan, ImageAudit)


def evidence_begin(sort: str, name: str, now: datetime) -> str:
    """A place of its own for one attempt of this work. What it puts there is nobody's until it is kept."""
    url = url_below(store_url(), sort, f"{name}-{uuid4().hex[:8]}")
    EvidencePlace.objects.create(uri=uri_of(url), begun_at=now)
    return url


def evidence_keep(stored: Stored, now: datetime, recovery: Recovery | None = None) -> None:
    """What was written there is kept. In the transaction of what rests on it.

    Raises: EvidenceUnwritable where the sweep took the place for abandoned: the work is done again.
    """
    mine = EvidencePlace.objects.filter(uri=stored.uri, released_at__isnull=True)
    manifest = [one.as_row() for one in stored.objects]
    kept = {"manifest": manifest, "kept_at": now, **({"recovery": recovery} if recovery else {})}
    if not mine.update(**kept):
        raise EvidenceUnwritable(stored.uri, "it took longer than a day, and what was put there was swept")


def evidence_release(uris: Iterable[str], now: datetime) -> None:
    """Nothing rests on these any more: the sweep takes them away. In the transaction of the rows that rested on them.

    What another audit, plan or image audit rests on stays; it goes with that.
    """
    asked = {uri for uri in uris if uri}
    for model in WITH_PARTS:
        held = model._default_manager.filter(evidence_uri__in=asked, evidence_gone_at__isnull=True)
        asked -= set(held.values_list("evidence_uri", flat=True))
    EvidencePlace.objects.filter(uri__in=asked, released_at__isnull=True).update(released_at=now)
    known = set(EvidencePlace.objects.filter(uri__in=asked).values_list("uri", flat=True))
    older = [EvidencePlace(uri=uri, begun_at=now, released_at=now) for uri in sorted(asked - known)]
    EvidencePlace.objects.bulk_create(older, ignore_conflicts=True)


def evidence_left(uri: str) -> bool:
    """Takes back that the place is released, where a row still tells of it: it could not be taken away. Whether one does."""
    told = sum(model._default_manager.filter(evidence_uri=uri).update(evidence_gone_at=None) for model in WITH_PARTS)
    if told:
        EvidencePlace.objects.filter(uri=uri).update(released_at=None)
    return told > 0
