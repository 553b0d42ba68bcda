"""A freeze as a JSON object: one spelling for command, REST and page."""

from __future__ import annotations

from recovery_api.models import Freeze
from recovery_api.rows import Row, time_as_text


def freeze_as_row(freeze: Freeze) -> Row:
    """`pipeline` None: it holds every pipeline. `lifted_at` None: it stands."""
    return {
        "pipeline": freeze.pipeline.name if freeze.pipeline else None,
        "reason": freeze.reason,
        "frozen_by": freeze.frozen_by,
        "frozen_at": time_as_text(freeze.frozen_at),
        "lifted_at": time_as_text(freeze.lifted_at),
        "lifted_by": freeze.lifted_by,
        "lifted_because": freeze.lifted_because,
    }


def freeze_lines(rows: list[Row]) -> list[str]:
    """One line each, for a person."""
    return [
        f"{row['pipeline'] or 'every pipeline'}: frozen since {row['frozen_at'][:19]}Z by {row['frozen_by']}: {row['reason']}"
        for row in rows
    ]
