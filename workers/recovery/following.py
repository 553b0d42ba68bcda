"""What an audit goes on from and leaves for the next one, between the evidence and the control database."""

from __future__ import annotations

from recovery_api.domain.kinds import deciding
from recovery_api.domain.ledger.epochs import epoch_digest
from recovery_api.domain.ledger.following import Known
from recovery_api.models import Pipeline
from recovery_api.services.blocks import blocks_remember
from workers.connectors.protocols.record import Record
from workers.evidence.increment import Reach
from workers.evidence.read import Evidence


def epoch_of(pipeline: Pipeline, record: Record) -> str:
    """What the pipeline's blocks are about: scope, what decides of both ends, and which sink this is now. (Which source
    it is stands with each lane.)"""
    source, sink = ({"kind": end.kind, **deciding(end.kind, end.options)} for end in (pipeline.source, pipeline.sink))
    return epoch_digest(scope=pipeline.scope, source=source, sink=sink, incarnations=[record.said().incarnation])


def learned_keep(pipeline: Pipeline, found: Evidence, epoch: str) -> bool:
    """Keeps what the audit judged, for the next one; whether it did. Late rows end every ground it could go on from."""
    learned = learned_of(found)
    return learned is not None and blocks_remember(pipeline, learned, epoch)


def learned_of(found: Evidence) -> Known | None:
    if found.followed is None or any(lane.late for lane in found.lanes.values()):
        return None
    return found.followed.learned


def reach_says(found: Evidence) -> tuple[str, ...]:
    """What was read, as a sentence; nothing where nothing else was ever possible."""
    if found.followed is None:
        return ()
    reach: Reach = found.followed.reach
    if reach.because:
        return (f"Both ends were read in full. {reach.because}",)
    if reach.is_whole or reach.since is None or reach.oldest is None:
        return ("Both ends were read in full.",)
    entries = reach.new.get("count", 0)
    return (
        f"Read since the audit of {reach.since:%Y-%m-%d %H:%M} UTC: {entries:,} new in the record, and what the source "
        f"committed since. Of the blocks judged before, {reach.opened:,} were judged anew and {reach.derived:,} read again "
        f"in their turn; of the others the oldest was read at {reach.oldest:%Y-%m-%d %H:%M} UTC.",
    )
