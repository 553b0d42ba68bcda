"""What is kept of the product's own, as pages, REST and commands show it: one spelling of its rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from recovery_api.domain.counts import number_says
from recovery_api.domain.retention import PIECES, Piece
from recovery_api.models import Audit, Pipeline, Plan
from recovery_api.selectors.retention import Kept, ages_get, pipeline_kept, settled_gone

Row = dict[str, Any]
SHOWN = 20


def evidence_as_row(row: Audit | Plan) -> Row:
    """Where the parts of an audit or a plan are, their digest, and since when they are gone (null: they are not)."""
    gone_at = row.evidence_gone_at
    return {"uri": row.evidence_uri, "digest": row.evidence_digest, "gone_at": gone_at.isoformat() if gone_at else None}


def retention_as_row(pipeline: Pipeline, now: datetime) -> Row:
    """How long what is kept, how much there is, and what stays though it is older, with the reason."""
    ages, found = ages_get(), pipeline_kept(pipeline)
    there = [(one, one.keeping(ages, now)) for one in found if one.gone_at is None]
    pinned = [(one, keeping.says) for one, keeping in there if keeping.is_pinned]
    gone = [one.gone_at for one in found if one.gone_at is not None]
    return {
        "pipeline": pipeline.name,
        "evidence_days": ages.evidence.days,
        "records_days": ages.records.days,
        "history_days": ages.history.days,
        "kept": len(there),
        "pinned": len(pinned),
        "gone": len(gone),
        "last_gone_at": max(gone).isoformat() if gone else None,
        "settled_gone": settled_gone(pipeline),
        "pins": [_pin_as_row(one, says) for one, says in pinned[:SHOWN]],
    }


def _pin_as_row(one: Kept, says: str) -> Row:
    return {
        "piece": one.parts.piece.value,
        "id": str(one.id),
        "ended_at": one.parts.ended_at.isoformat(),
        "says": says,
    }


def retention_shown(pipeline: Pipeline, now: datetime) -> Row:
    """The same for the pipeline's page, with moments as moments. `has_page`: there is a page of it."""
    row = retention_as_row(pipeline, now)
    row["last_gone_at"] = row["last_gone_at"] and datetime.fromisoformat(row["last_gone_at"])
    for one in row["pins"]:
        one["ended_at"] = datetime.fromisoformat(one["ended_at"])
        one["has_page"], one["piece"] = one["piece"] != Piece.IMAGE, PIECES[Piece(one["piece"])]
    return row


def keeping_says(kept: Kept | None, now: datetime) -> str:
    """Of one's parts, in a sentence: gone since when, pinned by what, or kept until when."""
    if kept is None:
        return "It wrote no parts."
    if kept.gone_at is not None:
        return gone_says(kept.gone_at)
    return kept.keeping(ages_get(), now).says


def gone_says(gone_at: datetime) -> str:
    return f"The parts are gone since {gone_at:%Y-%m-%d %H:%M} UTC, by age. Figures and digest stay."


def retention_lines(row: Row) -> list[str]:
    """The same for a terminal."""
    lines = [
        f"{row['pipeline']}: parts of evidence are kept for {row['evidence_days']:,} days, rows of finished work for "
        f"{row['records_days']:,}, the history for {row['history_days']:,}.",
        f"  {row['kept']:,} audits, plans and image audits have parts, {row['pinned']:,} of them pinned; {row['gone']:,} had.",
    ]
    if row["settled_gone"]:
        went = number_says(row["settled_gone"], "settled item of the ledger went", "settled items of the ledger went")
        lines.append(f"  {went} by age; their count and the sum of their digests stay.")
    lines += [f"  {one['piece']} {one['id']} of {one['ended_at'][:16]}: {one['says']}" for one in row["pins"]]
    if row["pinned"] > len(row["pins"]):
        lines.append(f"  {row['pinned'] - len(row['pins']):,} more are pinned.")
    return lines
