"""Freezing: audits go on, nothing is sent. Whatever would claim, arm, stage or fire asks `selectors.freezes` first.

A recovery that runs holds before its next step that could send, and gives its worker free; what is under way to the sink at
that moment still lands. Lifted, the next sweep offers it again, and it settles with the sink first.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.db import transaction

from recovery_api.domain.actors import by, subject
from recovery_api.domain.errors import BadInput, FencepostError, Refused
from recovery_api.models import EventKind, Freeze, Pipeline
from recovery_api.selectors.freezes import freezes_standing
from recovery_api.services.constraints import constraints_mapped
from recovery_api.services.events import event_append


def freeze_set(pipeline: Pipeline | None, reason: str, *, actor: str, now: datetime) -> Freeze:
    """Nothing is sent for `pipeline` (None: for any) from now on. Raises: BadInput; Refused where that is so already."""
    reason = _reason(reason)
    what = pipeline.name if pipeline else "everything"
    first = partial(_frozen_already, pipeline, f"freezing {what}")
    with (
        constraints_mapped(
            f"freezing {what}", {"a_pipeline_is_frozen_once": first, "everything_is_frozen_once": first}
        ),
        transaction.atomic(),
    ):
        freeze = Freeze.objects.create(pipeline=pipeline, reason=reason, frozen_by=actor, frozen_at=now)
        says = f"{subject(actor)} froze {freeze.what}: {reason} Audits go on; nothing is sent."
        event_append(EventKind.FROZEN, actor=actor, now=now, says=says, pipeline=pipeline, data={"reason": reason})
    return freeze


def freeze_lift(pipeline: Pipeline | None, reason: str, *, actor: str, now: datetime) -> Freeze:
    """The freeze of `pipeline` (None: of everything), lifted; what held for it goes on. Raises: BadInput; Refused where
    nothing is frozen so."""
    reason = _reason(reason)
    with transaction.atomic():
        freeze = freezes_standing().select_for_update(of=("self",)).filter(pipeline=pipeline).first()
        if freeze is None:
            what = f"pipeline {pipeline.name} itself" if pipeline else "everything"
            raise Refused("lifting a freeze", f"{what} is not frozen", "See what is: manage.py freeze.")
        freeze.lifted_at, freeze.lifted_by, freeze.lifted_because = now, actor, reason
        freeze.save(update_fields=["lifted_at", "lifted_by", "lifted_because"])
        says = f"{subject(actor)} lifted the freeze of {freeze.what}: {reason}"
        event_append(EventKind.UNFROZEN, actor=actor, now=now, says=says, pipeline=pipeline, data={"reason": reason})
    return freeze


def _frozen_already(pipeline: Pipeline | None, action: str) -> FencepostError:
    first = freezes_standing().filter(pipeline=pipeline).first()
    so = f"it is frozen {by(first.frozen_by)} since {first.frozen_at:%Y-%m-%d %H:%M} UTC" if first else "it is frozen"
    return Refused(action, so, "It holds already; nothing more is needed.")


def _reason(reason: str) -> str:
    if not reason.strip():
        raise BadInput("reason", "is missing", "Say why, in a sentence; whoever looks next reads it.")
    return reason.strip()
