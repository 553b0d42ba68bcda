"""The timeline is written here and nowhere else, inside the transaction of the state it tells about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from recovery_api.domain.errors import BadInput
from recovery_api.domain.words import words
from recovery_api.models import Audit, Event, EventKind, Pipeline, Plan, Recovery


def event_append(
    kind: str,
    *,
    actor: str,
    now: datetime,
    says: str,
    pipeline: Pipeline | None = None,
    recovery: Recovery | None = None,
    plan: Plan | None = None,
    audit: Audit | None = None,
    generation: int | None = None,
    data: Mapping[str, Any] | None = None,
) -> Event:
    """The event, appended. The pipeline is taken from what else is given. Raises: BadInput for an unknown kind."""
    if kind not in words(EventKind):
        raise BadInput("event", f"{kind!r} is not a step the timeline knows", f"One of: {', '.join(words(EventKind))}.")
    about = recovery or plan or audit
    return Event.objects.create(
        at=now,
        kind=kind,
        actor=actor,
        pipeline=pipeline or (about.pipeline if about else None),
        recovery=recovery,
        plan=plan or (recovery.plan if recovery else None),
        audit=audit,
        generation=generation,
        says=says,
        data=dict(data or {}),
    )
