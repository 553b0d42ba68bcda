"""What is frozen now: asked before anything is sent, and shown wherever a pipeline is."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from recovery_api.domain.actors import by
from recovery_api.domain.commands import command_line
from recovery_api.domain.errors import Frozen
from recovery_api.models import Freeze, Pipeline


def freezes_standing() -> QuerySet[Freeze]:
    """Those that nobody lifted, newest first."""
    return Freeze.objects.filter(lifted_at__isnull=True).select_related("pipeline").order_by("-frozen_at", "-id")


def freeze_of(pipeline_id: int | None) -> Freeze | None:
    """What holds this pipeline, the freeze of everything first. None: it may send. One query; `pipeline_id` None asks for
    the freeze of everything alone."""
    about = Q(pipeline__isnull=True) if pipeline_id is None else Q(pipeline__isnull=True) | Q(pipeline_id=pipeline_id)
    found = list(freezes_standing().filter(about))
    return min(found, key=lambda one: one.pipeline_id is not None, default=None)


def freezes_by_pipeline(pipelines: Iterable[Pipeline]) -> dict[int, Freeze]:
    """What holds each of these, by primary key; those that may send are not in it. One query."""
    standing = list(freezes_standing())
    whole = next((one for one in standing if one.pipeline_id is None), None)
    own = {one.pipeline_id: one for one in standing if one.pipeline_id is not None}
    found = {pipeline.pk: whole or own.get(pipeline.pk) for pipeline in pipelines}
    return {key: one for key, one in found.items() if one is not None}


def frozen_error(freeze: Freeze, action: str) -> Frozen:
    """The refusal of `action`, which says who froze it, when and why, and how it is lifted."""
    lift = command_line("unfreeze", freeze.pipeline.name if freeze.pipeline else "--everything", "--reason", "…")
    return Frozen(
        action, freeze.what, by(freeze.frozen_by), f"{freeze.frozen_at:%Y-%m-%d %H:%M} UTC", freeze.reason, lift
    )


def frozen_check(pipeline: Pipeline, action: str) -> None:
    """Raises: Frozen where nothing may be sent for this pipeline."""
    if (freeze := freeze_of(pipeline.pk)) is not None:
        raise frozen_error(freeze, action)


def freeze_says(freeze: Freeze) -> str:
    """What a page says of it: one sentence, numbers and names in it."""
    what = "Every pipeline is" if freeze.pipeline is None else "This pipeline is"
    return (
        f"{what} frozen {by(freeze.frozen_by)} since {freeze.frozen_at:%Y-%m-%d %H:%M} UTC: {freeze.reason} "
        "Audits go on; nothing is sent."
    )
