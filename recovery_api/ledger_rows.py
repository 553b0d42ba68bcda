"""The ledger as pages, REST and commands show it: one spelling of its rows."""

from __future__ import annotations

from typing import Any

from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format
from recovery_api.domain.findings import finding_means
from recovery_api.domain.frontiers import coordinate_from_row
from recovery_api.domain.ledger.words import ItemWord
from recovery_api.models import LedgerItem, LedgerLane
from recovery_api.selectors.archives import is_covered
from recovery_api.selectors.ends import source_spelling

Row = dict[str, Any]

GONE_MEANS = "Its row is gone at the source, content and all: no recovery can send it."


ARCHIVED_MEANS = "Its row is gone at the source. A file of the archive covers its place: plan, to see whether it can be sent from there."


def item_as_row(item: LedgerItem) -> Row:
    """One item. `content_gone`: the source does not hold it any more; `means` says what that comes to."""
    held = Coordinate(item.position, item.ordinal)
    word = ItemWord(item.word)
    is_gone = item.is_content_gone and word is ItemWord.LOST and item.settled_at is None
    gone = f" {ARCHIVED_MEANS if is_covered(item) else GONE_MEANS}" if is_gone else ""
    means = finding_means("lost", "", True, False) if item.is_acknowledged else word.means
    return {
        "pipeline": item.pipeline.name,
        "lane": item.lane,
        "coordinate": coordinate_format(held, source_spelling(item.pipeline.source)),
        "word": item.word,
        "cause": item.cause or None,
        "means": f"{means}{gone}",
        "key": item.shown_key if item.key is None else item.key,
        "event_id": item.event_id,
        "committed_at": item.committed_at.isoformat() if item.committed_at else None,
        "is_acknowledged": item.is_acknowledged,
        "is_content_gone": item.is_content_gone,
        "accepted_count": None if item.copies is None else str(item.copies),
        "first_seen_at": item.first_seen_at.isoformat(),
        "first_audit": str(item.first_audit_id),
        "last_seen_at": item.last_seen_at.isoformat(),
        "last_audit": str(item.last_audit_id),
        "settled_by": item.settled_by or None,
        "settled_at": item.settled_at.isoformat() if item.settled_at else None,
    }


def ledger_lane_as_row(row: LedgerLane) -> Row:
    """One lane: up to where it was seen, below where nobody knows, and who decided what."""
    spelling = source_spelling(row.pipeline.source)
    return {
        "pipeline": row.pipeline.name,
        "lane": row.lane,
        "seen_to": _spelled(row.frontier, spelling),
        "unknown_above": _spelled(row.unseen_above, spelling),
        "unknown_below": _spelled(row.unseen_below, spelling),
        "unjustifiable": str(row.unjustifiable_count),
        "is_whole": row.is_whole,
        "audit": str(row.audit_id),
        "read_at": row.read_at.isoformat(),
        "nothing_owed_below": _spelled(row.decided_below, spelling),
        "decided_by": row.decided_by or None,
        "decided_at": row.decided_at.isoformat() if row.decided_at else None,
        "decided_because": row.decided_because or None,
    }


def item_lines(rows: list[Row]) -> list[str]:
    """Open items for a terminal."""
    return [
        f"{row['lane']}={row['coordinate']}  {row['word']}"
        f"{' (' + row['cause'] + ')' if row['cause'] else ''}"
        f"{', key ' + repr(row['key']) if row['key'] is not None else ''}"
        f"{', event id ' + row['event_id'] if row['event_id'] else ''}"
        f"{', committed ' + row['committed_at'][:16] if row['committed_at'] else ''}"
        f"{', acknowledged' if row['is_acknowledged'] else ''}{', content gone' if row['is_content_gone'] else ''}"
        f"  first seen {row['first_seen_at'][:16]}, last {row['last_seen_at'][:16]}"
        for row in rows
    ] or ["Nothing is open."]


def ledger_lane_lines(rows: list[Row]) -> list[str]:
    """What is known of each lane, in a sentence."""
    return [_lane_says(row) for row in rows] or ["No audit has told the ledger anything yet."]


def _lane_says(row: Row) -> str:
    said = [f"lane {row['lane']}: seen up to {row['seen_to'] or 'nowhere'}"]
    if row["unknown_below"]:
        above = f"above {row['unknown_above']} and " if row["unknown_above"] else ""
        said.append(f"unknown {above}below {row['unknown_below']}")
    if row["nothing_owed_below"]:
        said.append(f"nothing owed below {row['nothing_owed_below']} ({row['decided_by']}: {row['decided_because']})")
    if row["unjustifiable"] != "0":
        said.append(f"{int(row['unjustifiable']):,} acceptances not shown to be committed")
    if not row["is_whole"]:
        said.append("more is open than is listed; the rest lies with the audit's evidence")
    return "; ".join(said)


def _spelled(row: dict[str, str] | None, spelling: Spelling) -> str | None:
    return None if row is None else coordinate_format(coordinate_from_row(row), spelling)
