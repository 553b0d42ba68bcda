"""What an audit goes on from and leaves for the next one, between the evidence and the control database."""

from __future__ import annotations

from recovery_api.domain.kinds import deciding
from recovery_api.domain.ledger.epochs import epoch_digest
from recovery_api.domain.ledger.following import Known
from recovery_api.domain.ledger.lanes import base_lost
from recovery_api.models import Pipeline
from recovery_api.services.blocks import blocks_forget, blocks_remember
from workers.evidence.read import Evidence
from workers.evidence.segments import Reach


def epoch_of(pipeline: Pipeline, sink_incarnation: str) -> str:
    """What the pipeline's blocks are about: scope, what decides of both ends, and which sink this is now. (Which source
    it is stands with each lane.)"""
    source, sink = ({"kind": end.kind, **deciding(end.kind, end.options)} for end in (pipeline.source, pipeline.sink))
    return epoch_digest(scope=pipeline.scope, source=source, sink=sink, incarnations=[sink_incarnation])


def learned_keep(pipeline: Pipeline, found: Evidence, epoch: str) -> None:
    """Keeps what the audit judged, for the next one; where it can leave nothing, what was kept goes, and the next one
    reads everything."""
    learned = learned_of(found)
    if learned is None:
        blocks_forget(Pipeline.objects.filter(pk=pipeline.pk))
    else:
        blocks_remember(pipeline, learned, epoch)


def learned_of(found: Evidence) -> Known | None:
    """What can be gone on from. None: an end was not read whole, a late row ended the ground, or acceptances that an
    earlier audit saw are not there any more, which every audit must find again until one in full takes a new base."""
    if found.followed is None or any(lane.late for lane in found.lanes.values()):
        return None
    is_rebased = found.opened is not None and found.opened.ledger.is_rebased
    for lane in found.lanes.values():
        if lane.found is not None and base_lost(lane.known, lane.found) is not None and not is_rebased:
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
