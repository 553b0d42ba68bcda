"""A person's saved filters, and what changed since a moment, as pages and REST show them."""

from __future__ import annotations

from recovery_api.models import SavedFilter
from recovery_api.rows import Row, time_as_text
from recovery_api.selectors.looking import Changes


def saved_filter_as_row(kept: SavedFilter) -> Row:
    return {
        "filter": str(kept.pk),
        "name": kept.name,
        "query": kept.query,
        "url": f"/?{kept.query}",
        "created_at": time_as_text(kept.created_at),
    }


def changes_as_row(changes: Changes) -> Row:
    return {
        "since": time_as_text(changes.since),
        "verdicts": [
            {"pipeline": one.name, "was": one.was, "now": one.now, "is_worse": one.is_worse} for one in changes.verdicts
        ],
        "alerts_opened": changes.opened,
        "alerts_resolved": changes.resolved,
    }
