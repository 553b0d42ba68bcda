"""The sweep's chores about what the product keeps of itself: the history is thinned, what is older than it is kept goes.

Of evidence the decision and the deed are apart: retention, in its transaction, releases a place, and the evidence's own
sweep takes it away, sooner or later, whoever released it.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta
from pathlib import Path

from recovery_api.domain.errors import FencepostError
from recovery_api.domain.evidence_places import place_parse, stored_make, url_of
from recovery_api.models import EvidencePlace
from recovery_api.selectors.evidence_places import (
    ABANDONED_AFTER,
    places_abandoned,
    places_elsewhere,
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
SECONDS_AT_MOST = 5.0
"""So many places, and so long, one sweep is busy with them: it has other things to do, and the next one goes on."""


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
    until = time.monotonic() + SECONDS_AT_MOST
    if upkeep_begin("evidence", now, SWEEP_EVERY):
        places_abandoned(now).update(released_at=now)
        for place in places_elsewhere()[:PLACES_AT_ONCE]:
            if not _left(place, "it lies in another store than the one that is set"):
                place.delete()
    gone = 0
    for place in places_released()[:PLACES_AT_ONCE]:
        answer = _remove(place)
        if answer is None or time.monotonic() > until:
            return gone + bool(answer)
        gone += answer
    for place in places_unswept(now)[:PLACES_AT_ONCE]:
        if not _unnamed_remove(place, now) or time.monotonic() > until:
            break
    return gone


def _is_there(url: str) -> bool:
    """Whether the store is: a folder may lie on another machine, or not be mounted."""
    place = place_parse(url)
    return not place.is_folder or Path(place.path).is_dir()


def _remove(place: EvidencePlace) -> bool | None:
    """Whether the place was taken away. None: the store does not answer, so the others are left for later, too."""
    url = url_of(place.uri, store_url())
    try:
        place_remove(url)
    except FencepostError as error:
        _left(place, str(error))
        return False if place_parse(url).is_folder else None
    place.delete()
    return True


def _left(place: EvidencePlace, why: str) -> bool:
    """Whether a row tells of it: then it is said that it stays, and why."""
    is_told = evidence_left(place.uri)
    if is_told:
        logger.warning("evidence at %s could not be taken away: %s", place.uri, why)
    return is_told


def _unnamed_remove(place: EvidencePlace, now: datetime) -> bool:
    """Takes away what no manifest names: of attempts that died, or were done twice. False: the store does not answer."""
    url = url_of(place.uri, store_url())
    named = {one.name for one in stored_make(url, place.manifest).objects}
    before = (now - ABANDONED_AFTER).timestamp()
    try:
        for name, changed_at in objects_list(url):
            if name not in named and changed_at < before:
                object_remove(url, name)
    except FencepostError as error:
        logger.warning("evidence at %s could not be looked through: %s", place.uri, error)
        if not place_parse(url).is_folder:
            return False  # of a folder it goes with the place as a whole, in the end
    EvidencePlace.objects.filter(pk=place.pk).update(swept_at=now)
    return True
