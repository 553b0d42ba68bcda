"""Until when the evidence of a verdict that is being recorded lasts."""

from __future__ import annotations

from datetime import datetime

from recovery_api.domain.headroom.evidence import EvidenceUntil, evidence_terms, evidence_until
from recovery_api.domain.outcomes import Status
from recovery_api.models import Pipeline
from recovery_api.selectors.declarations import declarations_of
from recovery_api.selectors.headroom import Anchored


def verdict_evidence(
    pipeline: Pipeline, status: Status, before: Anchored, after: Anchored, now: datetime
) -> EvidenceUntil:
    """`before`, `after`: the anchor as of what was recorded before this verdict, and with it."""
    said = declarations_of(pipeline)
    read_since = min(before.since, after.since) if before.since and after.since else None
    terms = evidence_terms(
        status,
        said.source,
        said.retention,
        said.record,
        said.into,
        said.keeps,
        read_since,
        after.since,
        after.clocks,
        now,
    )
    return evidence_until(status, terms)
