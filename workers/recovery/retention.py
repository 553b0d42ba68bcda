"""The sweep's chores about what the product keeps of itself: the history is thinned, what is older than it is kept goes.

Of evidence the decision and the deed are apart: retention, in its transaction, releases a place, and the evidence's own
sweep takes it away, sooner or later, whoever released it.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from pathlib import Path

from recovery_api.domain.errors import FencepostError
from recovery_api.domain.evidence_places import place_parse, stored_make, uri_of, url_of
from recovery_api.models import EvidencePlace
from recovery_api.selectors.evidence_places import (
    ABANDONED_AFTER,
    is_below_store,
    places_abandoned,
    places_released,
    places_unswept,
    store_url,
)
from recovery_api.selectors.retention import ages_get
from recovery_api.services.evidence_places import evidence_left
from recovery_api.services.history import history_thin
from recovery_api.services.retention import evidence_retire, records_retire, upkeep_begin
from recovery_api.services.schedules import schedules_forget
from workers.evidence.places import object_remove, objects_list, place_remove

logger = logging.getLogger(__name__)

THIN_EVERY = timedelta(hours=1)
RETIRE_EVERY = timedelta(hours=6)
SWEEP_EVERY = timedelta(hours=1)
"""What nothing rests on is looked for so often; what was released goes with the next sweep."""
PLACES_AT_ONCE = 1_000
"""Taken away, or looked through, by one sweep: it has other things to do."""


def retention_sweep(now: datetime) -> None:
    """Does what is due, if no other sweep does. Raises: BadInput where an age is set that cannot be used."""
    ages = ages_get()
    if upkeep_begin("history", now, THIN_EVERY):
        history_thin(now, ages.history)
        schedules_forget(now)
    if upkeep_begin("retention", now, RETIRE_EVERY):
        if _is_there(store_url()):
            evidence_retire(now, ages)
        records_retire(now, ages)


def evidence_sweep(now: datetime) -> int:
    """How many places were taken away: those that were released, and those on which nothing came to rest within a day.

    From the others goes what no manifest names. What cannot be taken away is not said to be gone, and stays due.
    """
    if not _is_there(store_url()):
        return 0
    if upkeep_begin("evidence", now, SWEEP_EVERY):
        places_abandoned(now).update(released_at=now)
        for place in places_unswept(now)[:PLACES_AT_ONCE]:
            _unnamed_remove(place, now)
    gone = 0
    for place in places_released()[:PLACES_AT_ONCE]:
        gone += _remove(place)
    return gone


def _is_there(url: str) -> bool:
    """Whether the store is: a folder may lie on another machine, or not be mounted."""
    place = place_parse(url)
    return not place.is_folder or Path(place.path).is_dir()


def _remove(place: EvidencePlace) -> bool:
    try:
        if not is_below_store(place.uri):
            return _left(place, "it lies in another store than the one that is set")
        place_remove(url_of(place.uri, store_url()))
    except FencepostError as error:
        return _left(place, str(error))
    place.delete()
    return True


def _left(place: EvidencePlace, why: str) -> bool:
    if evidence_left(place.uri):
        logger.warning("evidence at %s could not be taken away: %s", place.uri, why)
    return False


def _unnamed_remove(place: EvidencePlace, now: datetime) -> None:
    """Takes away what no manifest names: of attempts that died, or were done twice."""
    url = url_of(place.uri, store_url())
    named = {one.name for one in stored_make(url, place.manifest).objects}
    before = (now - ABANDONED_AFTER).timestamp()
    try:
        if is_below_store(place.uri):
            for name, changed_at in objects_list(url):
                if name not in named and changed_at < before:
                    object_remove(url, name)
    except FencepostError as error:
        logger.warning("evidence at %s could not be looked through: %s", uri_of(url), error)
        return
    EvidencePlace.objects.filter(pk=place.pk).update(swept_at=now)
