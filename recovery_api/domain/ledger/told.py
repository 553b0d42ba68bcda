"""What a verdict tells of what is remembered, in sentences."""

from __future__ import annotations

from recovery_api.domain.counts import LaneCounts, number_says

UNJUDGED = (
    "that an earlier audit found missing cannot be judged by this scope: their keys were not read then. Acknowledge them, "
    "or judge once more without a scope."
)


def gone_says(counts: LaneCounts) -> list[str]:
    """That some of the missing cannot be sent by anybody any more.

    >>> gone_says(LaneCounts(lost_remembered=1))
    ['1 of the missing is gone at the source, content and all: no recovery can send it.']
    >>> gone_says(LaneCounts(lost_remembered=2, lost_archived=2))
    ['2 of the missing are gone at the source, and in the archive: a recovery can send them from there.']
    """
    said = []
    if archived := min(counts.lost_archived, counts.lost_remembered):
        gone = number_says(archived, "of the missing is", "of the missing are")
        them = "it" if archived == 1 else "them"
        said.append(f"{gone} gone at the source, and in the archive: a recovery can send {them} from there.")
    if gone_count := counts.lost_remembered - archived:
        gone = number_says(gone_count, "of the missing is", "of the missing are")
        them = "it" if gone_count == 1 else "them"
        said.append(f"{gone} gone at the source, content and all: no recovery can send {them}.")
    return said


def kept_says(frontier: str, counts: LaneCounts, given: tuple[str, ...]) -> str:
    """What *nothing owed of what is kept* says first.

    >>> kept_says("9", LaneCounts(obligations_retained=1), ())
    'Nothing is owed of what the source keeps at 9: its only event reached the sink, once.'
    """
    on = f", given {'; and '.join(given)}" if given else ""
    match counts.obligations_retained:
        case 0:
            whole = "it keeps no event now"
        case 1:
            whole = "its only event reached the sink, once"
        case kept:
            whole = f"all {kept:,} events there reached the sink, none of them twice"
    return f"Nothing is owed of what the source keeps at {frontier}{on}: {whole}."


def share_says(counts: LaneCounts) -> str:
    """How many of the acceptances are shown to be committed.

    >>> share_says(LaneCounts(accepted_rows=9, justification_unknown=3))
    'Of 9 acceptances 6 (66 %) are shown to be committed; the rows of the others were gone before an audit saw them.'
    """
    if not counts.accepted_rows:
        return "The sink has accepted nothing yet."
    shown = counts.accepted_rows - counts.justification_unknown
    if not counts.justification_unknown:
        return f"All {number_says(counts.accepted_rows, 'acceptance is', 'acceptances are')} shown to be committed."
    share = 100 * shown // counts.accepted_rows
    return (
        f"Of {number_says(counts.accepted_rows, 'acceptance', 'acceptances')} {shown:,} ({share} %) are shown to be "
        "committed; the rows of the others were gone before an audit saw them."
    )
