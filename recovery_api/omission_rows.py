"""Omissions, and previews of them, as JSON objects: one spelling for command, REST and page."""

from __future__ import annotations

from recovery_api.domain.coordinates import Coordinate, coordinate_format
from recovery_api.models import AcknowledgedOmission, OmissionPreview
from recovery_api.rows import Row, time_as_text
from recovery_api.selectors.ends import source_spelling
from recovery_api.services.omission_previews import preview_says


def preview_as_row(preview: OmissionPreview) -> Row:
    return {
        "preview": str(preview.pk),
        "pipeline": preview.pipeline.name,
        "audit": str(preview.audit_id),
        "way": preview.way,
        "asked": preview.asked,
        "counts": preview.counts,
        "says": preview_says(preview),
        "created_by": preview.created_by,
        "created_at": preview.created_at.isoformat(),
        "confirmed_by": preview.confirmed_by or None,
        "confirmed_at": preview.confirmed_at.isoformat() if preview.confirmed_at else None,
    }


def omission_as_row(omission: AcknowledgedOmission) -> Row:
    held = Coordinate(omission.position, omission.ordinal)
    return {
        "pipeline": omission.pipeline.name,
        "lane": omission.lane,
        "coordinate": coordinate_format(held, source_spelling(omission.pipeline.source)),
        "reason": omission.reason,
        "reference": omission.reference or None,
        "act": str(omission.act),
        "until": time_as_text(omission.until),
        "is_by_content": omission.is_by_content,
        "accepted_seen_at": time_as_text(omission.accepted_seen_at),
        "acknowledged_by": omission.acknowledged_by,
        "acknowledged_at": time_as_text(omission.acknowledged_at),
        "withdrawn_by": omission.withdrawn_by or None,
        "withdrawn_at": time_as_text(omission.withdrawn_at),
    }
