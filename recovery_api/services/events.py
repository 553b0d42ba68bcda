"""The timeline is written here and nowhere else, inside the transaction of the state it tells about."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from recovery_api.domain.errors import BadInput
from recovery_api.domain.words import words
from recovery_api.logs import about_line
from recovery_api.models import Audit, Event, EventKind, Pipeline, Plan, Recovery

logger = logging.getLogger(__name__)


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
    event = Event.objects.create(
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
    if logger.isEnabledFor(logging.INFO):
        transaction.on_commit(partial(_logged, event))  # never of what was rolled back
    return event


def _logged(event: Event) -> None:
    """One line a step, with what it is about."""
    about = {
        "pipeline": event.pipeline.name if event.pipeline else None,
        "recovery": event.recovery_id,
        "plan": event.plan_id,
        "audit": event.audit_id,
        "generation": event.generation,
        "actor": event.actor,
    }
    logger.info("%s: %s", event.kind, event.says, extra=about_line(about))
