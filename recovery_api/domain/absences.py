"""What an audit by message id says of ids that match nothing: what it cannot decide, and why.

The law: where an absence proves nothing, the reason is given, and the event counts neither as lost nor as delivered.
"""

from __future__ import annotations

from recovery_api.domain.counts import LaneCounts, number_says
from recovery_api.domain.identity import Identity


def absences_says(counts: LaneCounts) -> str:
    """The start of a sentence on events whose absence from the record decides nothing."""
    events = number_says(counts.absent_unknown, "event has", "events have")
    return f"{events} no entry in the record any more, and nothing shows whether the sink accepted them"


def judged_says(identity: Identity) -> str:
    """Which rows the verdict covers, and what was not judged."""
    rows = f" with {identity.consumer}" if identity.consumer else ""
    return f"Events were matched{rows} by their ids alone: contents and premature entries were not judged."


def headroom_says(identity: Identity) -> str:
    """Until when it can be shown that the lost events are lost."""
    assert identity.shown_until is not None
    until = f"{identity.shown_until:%Y-%m-%d %H:%M:%S} UTC"
    return f"From {until} on, the first of the missing is unknown instead: the sink may have deleted its row by then."


def absences_unknown(counts: LaneCounts, identity: Identity | None) -> tuple[str, ...]:
    """What an audit by ids cannot decide, one sentence for each reason. Acknowledged events count for none of them."""
    if identity is None:
        return ()
    reasons = []
    if counts.absent_unknown > counts.absent_acknowledged:
        kept, certain = identity.lifetime.seconds, identity.lifetime.certain_seconds
        if counts.absent_trimmed:
            reasons.append(
                f"{number_says(counts.absent_trimmed, 'event', 'events')} without an entry: the record keeps rows for"
                f" {kept or 0:,} s, and they may be gone (record trimmed). Audit at least every {certain or 0:,} s."
            )
        if counts.absent_untimed:
            reasons.append(
                f"{number_says(counts.absent_untimed, 'event', 'events')} without an entry and without a commit time to"
                " believe: whether their rows may be gone is not known. Map committed_at at the source."
            )
        if counts.absent_unreadable:
            reasons.append(
                f"{number_says(counts.absent_unreadable, 'event', 'events')} without an entry, while"
                f" {number_says(counts.ids_unreadable, 'id', 'ids')} of the record cannot be {identity.id_type}"
                f"{_named(identity.first_unreadable)}: they may be theirs. Mend the mapping, or filter those rows out."
            )
    if counts.ids_missing:
        reasons.append(
            f"{number_says(counts.ids_missing, 'event has', 'events have')} no id that the record could hold, so nothing"
            " shows whether the sink accepted them."
        )
    return tuple(reasons)


def identity_weaknesses(counts: LaneCounts, identity: Identity) -> tuple[str, ...]:
    """A sentence on accepted ids that match no event: they are not a hazard, and they do not prove anything."""
    said = []
    if counts.ids_unmatched:
        said.append(
            f"{number_says(counts.ids_unmatched, 'accepted id is', 'accepted ids are')} not at the source"
            f"{_named(identity.first_unmatched)}: dropped there since, or never committed; nothing shows which."
        )
    if counts.ids_unreadable and not counts.absent_unreadable:
        said.append(
            f"{number_says(counts.ids_unreadable, 'id', 'ids')} of the record cannot be {identity.id_type}"
            f"{_named(identity.first_unreadable)}: they were matched with nothing."
        )
    if identity.first_repeated:
        said.append(f"Accepted more than once, and not at the source any more: {', '.join(identity.first_repeated)}.")
    return tuple(said)


def _named(ids: tuple[str, ...]) -> str:
    return f" ({', '.join(ids)}, …)" if ids else ""
