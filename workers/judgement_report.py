"""A judgement as text for a person and as data for a program: first what each file was taken for, then the verdict."""

from __future__ import annotations

from typing import Any

from recovery_api.domain.outcomes import OUTCOMES, Status
from workers.evidence.canonical import json_string
from workers.judgement import Judgement, LaneJudgement

SHOWN = 20


def answer_of(judgement: Judgement) -> dict[str, Any]:
    """The verdict's keys (of each lane, where there are several), and where every line of each file went."""
    read = {end: notes.as_row() for end, notes in judgement.notes.items()}
    if len(judgement.lanes) == 1:
        return {**next(iter(judgement.lanes.values())).answer, "read": read}
    return {
        "status": judgement.total.status.value,
        "lanes": {
            lane: {"frontier": one.verdict.frontier, "status": one.verdict.status.value, **one.answer}
            for lane, one in judgement.lanes.items()
        },
        "read": read,
    }


def grounds_of(judgement: Judgement) -> list[str]:
    """Status, and everything that bounds it."""
    lines = [f"Status: {OUTCOMES[judgement.total.status].words}."]
    for lane, one in judgement.lanes.items():
        of = "" if len(judgement.lanes) == 1 else f"Lane {lane}: "
        lines += [f"{of}Unknown because: {reason}" for reason in one.verdict.unknown_because]
        lines += [f"{of}Weakness: {weakness}" for weakness in one.verdict.weaknesses]
    return list(dict.fromkeys(lines)) + [f"Note: {line}" for line in judgement.mended]


def report_of(judgement: Judgement) -> list[str]:
    """A page for a person: what was read as what, the sentence, what is wrong and where, what the verdict rests on."""
    lanes = judgement.lanes
    lines = (
        []
        if _is_plain(judgement)
        else [f"{notes.name} read as {notes.seen_as}." for notes in judgement.notes.values() if notes.seen_as]
    )
    lines += judgement.total.says
    for lane, one in lanes.items():
        if len(lanes) > 1:
            lines.append(f"Lane {lane}: {' '.join(one.verdict.says)}")
        lines += _wrong(one)
        lines += [f"Details: {line}" for line in one.verdict.details]
    lines += grounds_of(judgement)[1:]
    lines += [f"{notes.name} ({notes.seen_as}): {notes.account()}" for notes in judgement.notes.values()]
    records = ", ".join(f"{end} {notes.rows}" for end, notes in judgement.notes.items())
    spelled = f"coordinates spelled {judgement.spelling.value}; engine {judgement.engine}"
    lines += [f"Read: {records} (records; {spelled})."]
    if judgement.total.status is not Status.UNKNOWN:
        lines += list(dict.fromkeys(ground for one in lanes.values() for ground in one.verdict.grounds))
    return lines


def _is_plain(judgement: Judgement) -> bool:
    """Nothing had to be recognised: every file is in the product's own columns."""
    return all(notes.seen_as.endswith(": Fencepost's own columns") for notes in judgement.notes.values())


def _wrong(one: LaneJudgement) -> list[str]:
    verdict, answer = one.verdict, one.answer
    lines = []
    premature = {row["entry"]: row for row in one.findings.to_pylist() if row["finding"] in ("premature", "unknown")}
    named = [
        (f"record entry {place}: {premature[place]['cause']}" if place in premature else str(place))
        for place in answer["premature"][:SHOWN]
    ]
    doubled = [_doubled(event) for event in answer["duplicates"][:SHOWN]]
    differ = [f"entry {entry}: {says}" for entry, says in one.altered.items() if says]
    lost = list(one.named) or [str(held) for held in answer["sink_delta"][:SHOWN]]
    for title, shown, count in (
        ("Lost", lost, len(answer["sink_delta"])),
        ("Not justified", named, len(answer["premature"])),
        ("Accepted more than once", doubled, len(answer["duplicates"])),
        ("Acknowledged", [str(held) for held in answer["acknowledged"][:SHOWN]], len(answer["acknowledged"])),
    ):
        if count:
            lines.append(f"{title}: {', '.join(shown)}{_more(count)}")
    if differ:
        lines.append(f"Altered: {'; '.join(differ)}")
    if answer["journal"]["lost"] != answer["sink_delta"] and verdict.journal.lost is not None:
        below = answer["journal"]["lost"]
        lines.append(f"Lost by the journal: {', '.join(map(str, below[:SHOWN]))}{_more(len(below))}")
    mismatched = answer.get("mismatched_keys")
    if mismatched is not None:
        names = ", ".join("null" if key is None else json_string(key) for key in mismatched[:SHOWN])
        lines.append(
            f"Mismatched keys: {names}{_more(len(mismatched))}"
            if mismatched
            else f"Mismatch-free at {verdict.frontier}, on every key."
        )
    return lines


def _doubled(event: dict[str, Any]) -> str:
    published = f"; its connector published it {event['published']} times" if "published" in event else ""
    return f"{event['coordinate']} ({event['count']} times{published})"


def _more(count: int) -> str:
    return f" and {count - SHOWN} more" if count > SHOWN else ""
