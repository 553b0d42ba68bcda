"""A preview of omissions as a JSON object: one spelling for command, REST and page."""

from __future__ import annotations

from recovery_api.models import OmissionPreview
from recovery_api.rows import Row
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
