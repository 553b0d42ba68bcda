"""Which configuration of a pipeline, a source, a sink or a destination, or which state of an incident, somebody read: its `ETag`,
and a form's hidden field, by which a change says what it changes.

Only what an edit can change counts. A connection test, or what a sink said last, makes no other version.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from recovery_api.domain.errors import Outdated
from recovery_api.models import Destination, End, Event, EventKind, Incident, Pipeline

Versioned = Destination | End | Incident | Pipeline


def version_of(one: Versioned) -> str:
    """The same text for the same configuration, and for no other."""
    whole = json.dumps([one._meta.model_name, str(one.pk), _kept(one)], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def version_check(one: Versioned, read: frozenset[str] | None) -> None:
    """Of the row as it is held now. `read`: the versions that the change was made for; None: it does not say.

    Raises: Outdated where it is none of them.
    """
    if read is not None and version_of(one) not in read:
        raise Outdated(
            f"{one._meta.model_name} {one.title if isinstance(one, Incident) else one.name}", version_of(one)
        )


def changed_last(one: Versioned) -> Event | None:
    """The newest event that says what was changed of it. None: none says so."""
    if isinstance(one, Pipeline):
        found = Event.objects.filter(kind=EventKind.PIPELINE_CHANGED, pipeline=one)
    elif isinstance(one, Incident):
        found = Event.objects.filter(kind=EventKind.INCIDENT_CHANGED, data__incident=str(one.pk))
    elif isinstance(one, Destination):
        found = Event.objects.filter(kind=EventKind.ALERTING_CHANGED, data__destination=one.name)
    else:
        about = {"end": one._meta.model_name, "end_id": str(one.pk)}
        found = Event.objects.filter(kind=EventKind.END_CHANGED, data__contains=about)
    return found.order_by("-id").first()


def _kept(one: Versioned) -> dict[str, Any]:
    """What an edit can change."""
    names: tuple[str, ...]
    if isinstance(one, Pipeline):
        names = ("delivery_id", "scope", "options", "requires_other_approver")
    elif isinstance(one, Incident):
        names = ("title", "state", "severity", "commander", "cause", "alerts")
    elif isinstance(one, Destination):
        names = ("address", "secret")
    else:
        names = ("kind", "options")
    kept = {name: getattr(one, name) for name in names}
    if isinstance(one, Incident):
        kept["pipelines"] = sorted(str(pk) for pk in one.pipelines.values_list("pk", flat=True))
    return kept
