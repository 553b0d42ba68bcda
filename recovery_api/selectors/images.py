"""Reads of image audits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from recovery_api.domain.abilities import Ability
from recovery_api.domain.archives import mapping_digest
from recovery_api.domain.errors import NotFound
from recovery_api.domain.kinds import abilities_of, deciding, kind_get, options_parse
from recovery_api.models import ImageAudit, Pipeline

NO_STATE = (
    "the pipeline's record has no copy of state beside it",
    "Map a target in the sink kit, or name a table: state_table, state_key, and state_content or state_columns.",
)
NO_DIGESTS = ("this kind of source gives no digests that a copy of state compares with", "Register the outbox table.")


def image_refusal(pipeline: Pipeline) -> tuple[str, str] | None:
    """Why nothing can be compared here, and what to do; None: it can be asked for."""
    if Ability.STATE not in abilities_of(pipeline.sink.kind, pipeline.sink.options):
        return NO_STATE
    if Ability.COMMITTED_STATE not in abilities_of(pipeline.source.kind, pipeline.source.options):
        return NO_DIGESTS
    return None


def image_mapping(pipeline: Pipeline) -> str:
    """Digest of what decides the rows of source and target, and who counts: a base is of one of these."""
    source, sink = pipeline.source, pipeline.sink
    parsed = options_parse(kind_get(sink.kind), sink.options)
    state: Mapping[str, Any] = {name: value for name, value in parsed.items() if name.startswith(("state_", "target"))}
    bound = {
        "source": deciding(source.kind, source.options),
        "sink": sink.kind,
        "state": state,
        "scope": pipeline.scope,
    }
    return mapping_digest(source.kind, bound)


def image_get(image_id: UUID | str) -> ImageAudit:
    """Raises: NotFound."""
    try:
        found = image_list().filter(id=image_id).first()
    except ValidationError:
        found = None
    if found is None:
        raise NotFound(f"Image audit {image_id}", "the control database", "Make one: manage.py image PIPELINE.")
    return found


def image_list(pipeline: Pipeline | None = None) -> QuerySet[ImageAudit]:
    """Newest first; of every pipeline where none is named."""
    found = ImageAudit.objects.select_related("pipeline__source").order_by("-finished_at", "-id")
    return found.filter(pipeline=pipeline) if pipeline else found


def image_newest(pipeline: Pipeline) -> ImageAudit | None:
    return image_list(pipeline).first()


def image_base(pipeline: Pipeline) -> ImageAudit | None:
    """The newest image audit that kept what the history gives each key, as source and target are mapped now."""
    kept = image_list(pipeline).filter(evidence_gone_at__isnull=True).exclude(base_digest="")
    return kept.filter(base_mapping=image_mapping(pipeline)).first()
