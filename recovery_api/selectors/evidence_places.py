"""Which store is set, and what is kept in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q, QuerySet

from recovery_api.domain.evidence_places import Stored, stored_make, uri_of, url_of
from recovery_api.models import EvidencePlace

ABANDONED_AFTER = timedelta(days=1)
"""What an attempt put is not evidence until something rests on it. So long after it began nothing will."""


def store_url() -> str:
    """The store that evidence is put to: a bucket or a folder."""
    return str(settings.FENCEPOST_EVIDENCE_URL or settings.FENCEPOST_EVIDENCE_DIR)


def _below_store() -> Q:
    return Q(uri__startswith=f"{uri_of(store_url()).rstrip('/')}/")


def stored_find(uris: Iterable[str]) -> Mapping[str, Stored]:
    """By name what is kept of these places. What is released, or was written before places were kept, is not there."""
    rows = EvidencePlace.objects.filter(uri__in=set(uris), kept_at__isnull=False, released_at__isnull=True)
    store = store_url()
    return {uri: stored_make(url_of(uri, store), manifest) for uri, manifest in rows.values_list("uri", "manifest")}


def stored_get(uri: str) -> Stored | None:
    """None: nothing is kept there."""
    return stored_find([uri]).get(uri) if uri else None


def places_released() -> QuerySet[EvidencePlace]:
    """Those that the sweep is to take away, as far as they lie in the store that is set."""
    return EvidencePlace.objects.filter(_below_store(), released_at__isnull=False).order_by("released_at", "id")


def places_elsewhere() -> QuerySet[EvidencePlace]:
    """Those that were released and lie in another store: nobody here can take them away."""
    return EvidencePlace.objects.filter(~_below_store(), released_at__isnull=False).order_by("released_at", "id")


def places_abandoned(now: datetime) -> QuerySet[EvidencePlace]:
    """Those of attempts that began a day ago, and on which nothing rests."""
    return EvidencePlace.objects.filter(
        kept_at__isnull=True, released_at__isnull=True, begun_at__lt=now - ABANDONED_AFTER
    )


def places_unswept(now: datetime) -> QuerySet[EvidencePlace]:
    """Those that nobody looked through for what their manifests do not name."""
    unswept = Q(kept_at__isnull=False, swept_at__isnull=True, released_at__isnull=True)
    return EvidencePlace.objects.filter(unswept, _below_store(), kept_at__lt=now - ABANDONED_AFTER).order_by(
        "kept_at", "id"
    )
