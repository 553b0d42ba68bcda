"""The image intent: a copy of state read beside the history, judged key by key, recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.utils import timezone

from recovery_api.domain.errors import AccessDenied, Unsuitable
from recovery_api.domain.evidence_places import uri_of
from recovery_api.domain.frontiers import coordinate_from_row, frontier_as_row, frontier_from_row
from recovery_api.domain.images import KEY_ORDER, ImageVerdict, image_conclude
from recovery_api.domain.outcomes import ImageStatus
from recovery_api.models import ImageAudit, Intent, Pipeline
from recovery_api.selectors.evidence_places import stored_get
from recovery_api.selectors.grounds import attested_by
from recovery_api.selectors.images import image_base, image_mapping
from recovery_api.services.evidence_places import evidence_release
from recovery_api.services.images import image_record, images_forget
from workers.evidence.image import Base, ImageFound, ImageRequest, image_read
from workers.recovery.ends import archive_of, evidence_place, request_make, session_open


def image_run(intent: Intent, report: Any) -> None:
    """Compare the pipeline's copy of state with its history; the intent ends with what was recorded.

    Where target and history cannot be compared, or the login may not read the target, that is what is recorded: unknown.
    Raises: FrontierRefused; Unreachable and other transient errors, after which the intent is offered again.
    """
    started_at, pipeline = timezone.now(), intent.pipeline
    assert pipeline is not None
    asked = intent.arguments.get("frontier")
    evidence = evidence_place("images", str(intent.id))
    based = image_base(pipeline)
    try:
        with session_open(intent) as session:
            found = image_read(session, _request(pipeline, evidence, intent, asked, based), report)
    except (AccessDenied, Unsuitable) as error:
        evidence_release([uri_of(evidence)], timezone.now())
        verdict = ImageVerdict(ImageStatus.UNKNOWN, f"Not compared: {error}")
        image_record(intent, verdict, now=timezone.now(), started_at=started_at, weaknesses=[str(error)])
        return
    report(step="recording")
    verdict = image_conclude(found.frontier_says, found.counts, found.unread, found.givens)
    image_record(
        intent,
        verdict,
        now=timezone.now(),
        started_at=started_at,
        evidence=replace(found.stored, url=evidence),
        **_columns(pipeline, found, based),
    )
    if intent.arguments.get("is_scheduled"):
        images_forget(pipeline, timezone.now())


def _request(
    pipeline: Pipeline, evidence: str, intent: Intent, asked: dict[str, Any] | None, based: ImageAudit | None
) -> ImageRequest:
    audit = request_make(pipeline, evidence, frontier=frontier_from_row(asked) if asked else None)
    given = pipeline.source.options.get(KEY_ORDER)
    base = None
    if based is not None and len(based.frontier) == 1:
        (row,) = based.frontier.values()
        at = coordinate_from_row(row)
        base = Base(at, stored_get(based.evidence_uri), based.base_digest, based.base_incarnation, based.base_mapping)
    return ImageRequest(
        audit=replace(audit, archive=archive_of(pipeline, is_read=True)),
        order_given=attested_by(pipeline.source, KEY_ORDER) if given else "",
        mapping=image_mapping(pipeline),
        base=base,
        keeps_base=bool(intent.arguments.get("keeps_base")),
    )


def _columns(pipeline: Pipeline, found: ImageFound, based: ImageAudit | None) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "frontier": frontier_as_row(found.frontier),
        "target": found.target,
        "keys_count": found.counts.keys,
        "rows_count": found.counts.rows,
        "counts": {word: str(count) for word, count in found.counts.words.items()},
        "sample": [
            {
                "word": one.word,
                "key": one.key,
                "position": None if one.at is None else str(one.at.position),
                "ordinal": None if one.at is None else str(one.at.ordinal),
            }
            for one in found.named
        ],
        "givens": [] if found.unread else list(found.givens),
        "weaknesses": list(found.weaknesses),
        "gap": found.gap,
        "source_snapshot": found.source_reading.identity,
        "sink_snapshot": found.sink_reading.identity,
        "based_on": based if found.is_based else None,
    }
    if found.base_digest:
        columns |= {
            "base_digest": found.base_digest,
            "base_incarnation": found.incarnation,
            "base_mapping": image_mapping(pipeline),
        }
    return columns
