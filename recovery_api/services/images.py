"""Image audits: asked for as an intent, by a person or by the pipeline's schedule; recorded whole."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from recovery_api.domain.errors import Refused
from recovery_api.domain.evidence_places import Stored
from recovery_api.domain.images import ImageVerdict
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.domain.schedules import ACTOR
from recovery_api.models import LIVE_STATES, EventKind, ImageAudit, Intent, IntentAction, Pipeline
from recovery_api.selectors.images import image_refusal
from recovery_api.services.constraints import constraints_mapped
from recovery_api.services.events import event_append
from recovery_api.services.evidence_places import evidence_keep, evidence_release
from recovery_api.services.frontiers import frontier_check
from recovery_api.services.intents import intent_create, intent_finish

KEPT_SCHEDULED = 50
"""So many of a pipeline's scheduled image audits are kept, and, until they go by age, all that keep a base."""


def image_request(
    pipeline: Pipeline,
    *,
    actor: str,
    now: datetime,
    frontier: str | None = None,
    keeps_base: bool = False,
    wake: bool = True,
) -> Intent:
    """An intent to compare the pipeline's copy of state with its history at `frontier` (None: at its safe frontier).

    `keeps_base`: where the history is whole, what it gives each key is kept for later. Raises: BadCoordinate; Refused where
    there is nothing to compare.
    """
    if (refusal := image_refusal(pipeline)) is not None:
        raise Refused(f"Comparing the target of {pipeline.name}", *refusal)
    arguments = {"frontier": frontier_check(pipeline, frontier), "keeps_base": keeps_base}
    says = f"Comparing the target at {frontier or 'the safe frontier'} asked for."
    with transaction.atomic():
        event_append(EventKind.IMAGE_REQUESTED, actor=actor, now=now, says=says, pipeline=pipeline)
        return intent_create(
            IntentAction.IMAGE, actor=actor, now=now, pipeline=pipeline, arguments=arguments, wake=wake
        )


def image_record(
    intent: Intent,
    verdict: ImageVerdict,
    *,
    now: datetime,
    started_at: datetime,
    evidence: Stored | None = None,
    **fields: Any,
) -> ImageAudit:
    """The image audit, recorded; its intent ends with it. `evidence`: what was written of it. `fields` are further columns.

    Raises: Refused where the intent is no longer ours.
    """
    assert intent.pipeline is not None
    is_scheduled = bool(intent.arguments.get("is_scheduled"))
    with constraints_mapped("recording the image audit"), transaction.atomic():
        before = ImageAudit.objects.filter(pipeline=intent.pipeline).order_by("-finished_at").first()
        image = ImageAudit.objects.create(
            pipeline=intent.pipeline,
            intent=intent,
            status=verdict.status,
            exit_code=verdict.exit_code,
            says=verdict.says,
            is_scheduled=is_scheduled,
            started_at=started_at,
            finished_at=now,
            evidence_uri=evidence.uri if evidence is not None else "",
            **fields,
        )
        if evidence is not None:
            evidence_keep(evidence, now)
        if not is_scheduled or before is None or (before.status, before.counts) != (image.status, image.counts):
            event_append(
                EventKind.IMAGE_RECORDED,
                actor=intent.taken_by,
                now=now,
                says=f"Target and history: {verdict.says}",
                pipeline=intent.pipeline,
                data={"image": str(image.id), "status": image.status, "counts": image.counts},
            )
        intent_finish(intent, {"image": str(image.id), "status": image.status, "exit_code": image.exit_code}, now)
    return image


def images_forget(pipeline: Pipeline, now: datetime) -> None:
    """Forgets scheduled image audits, the oldest beyond KEPT_SCHEDULED, with their evidence."""
    mine = ImageAudit.objects.filter(pipeline=pipeline, is_scheduled=True, base_digest="").order_by("-finished_at")
    gone = list(mine[KEPT_SCHEDULED:])
    with transaction.atomic():
        ImageAudit.objects.filter(pk__in=[one.pk for one in gone]).delete()
        evidence_release([one.evidence_uri for one in gone], now)


def images_sweep(now: datetime) -> int:
    """Asks for the image audits that are due by their pipelines' options; how many. Two sweeps at once ask for each once."""
    asked = 0
    for pipeline in Pipeline.objects.filter(options__image_every_seconds__gt=0, retired_at__isnull=True):
        with transaction.atomic():
            locked = Pipeline.objects.select_for_update(no_key=True, skip_locked=True, of=("self",)).filter(
                pk=pipeline.pk
            )
            mine = locked.select_related("source", "sink").first()
            if mine is None or not _is_due(mine, now) or image_refusal(mine) is not None:
                continue
            arguments = {"frontier": None, "keeps_base": False, "is_scheduled": True}
            intent_create(IntentAction.IMAGE, actor=ACTOR, now=now, pipeline=mine, arguments=arguments, wake=False)
            asked += 1
    return asked


def _is_due(pipeline: Pipeline, now: datetime) -> bool:
    every = pipeline_options_parse(pipeline.options)["image_every_seconds"]
    asked = Intent.objects.filter(pipeline=pipeline, action=IntentAction.IMAGE)
    if every is None or asked.filter(state__in=LIVE_STATES).exists():
        return False
    last = asked.order_by("-created_at").values_list("created_at", flat=True).first()
    return last is None or now - last >= timedelta(seconds=every)
