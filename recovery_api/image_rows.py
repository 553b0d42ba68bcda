"""An image audit as pages, REST and commands show it: one spelling of its rows. Never a content."""

from __future__ import annotations

from typing import Any

from recovery_api.domain.commands import command_line
from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format
from recovery_api.domain.frontiers import frontier_format
from recovery_api.domain.images import ImageWord
from recovery_api.domain.outcomes import OUTCOMES
from recovery_api.models import ImageAudit
from recovery_api.rows import Row, time_as_text
from recovery_api.selectors.ends import source_spelling


def image_as_row(image: ImageAudit) -> Row:
    """Everything that is shown of one. `words`: how many keys are told as what, in the order of the words."""
    spelling = source_spelling(image.pipeline.source)
    return {
        "image": str(image.id),
        "pipeline": image.pipeline.name,
        "status": image.status,
        "says": image.says,
        "exit_code": image.exit_code,
        "is_scheduled": image.is_scheduled,
        "target": image.target or None,
        "frontier": frontier_format(image.frontier, spelling) if image.frontier and is_told(image) else None,
        "keys": image.keys_count,
        "rows": image.rows_count,
        "words": words_as_rows(image),
        "sample": [_named(number, row, spelling) for number, row in enumerate(image.sample)],
        "given": image.givens,
        "weaknesses": image.weaknesses,
        "gap": image.gap or None,
        "keeps_base": bool(image.base_digest) and image.evidence_gone_at is None,
        "based_on": str(image.based_on_id) if image.based_on_id else None,
        "source_snapshot": image.source_snapshot,
        "sink_snapshot": image.sink_snapshot,
        "evidence": {"uri": image.evidence_uri, "gone_at": time_as_text(image.evidence_gone_at)},
        "started_at": time_as_text(image.started_at),
        "finished_at": time_as_text(image.finished_at),
    }


def is_told(image: ImageAudit) -> bool:
    """Whether any key was compared."""
    return bool(image.keys_count or image.givens or image.status != "unknown")


def words_as_rows(image: ImageAudit) -> list[Row]:
    return [
        {
            "word": word.value,
            "keys": int(image.counts.get(word.value, 0)),
            "is_unknown": word.is_unknown,
            "means": word.means,
            "remedy": word.remedy,
        }
        for word in ImageWord
    ]


def image_lines(row: Row) -> list[str]:
    """The same for a terminal."""
    said = [f"{row['pipeline']}: {OUTCOMES[row['status']].words}", row["says"]]
    for one in row["words"]:
        if one["keys"]:
            said.append(f"  {one['word']}: {one['keys']:,}. {one['means']} {one['remedy']}")
            named = [each for each in row["sample"] if each["word"] == one["word"]]
            said += [f"    {_line(each)}" for each in named]
    if row["gap"]:
        said.append(f"The history is not whole: {row['gap']}.")
    if row["keeps_base"]:
        said.append("What the history gives each key is kept: a later comparison goes on from there.")
    if row["evidence"]["gone_at"]:
        said.append("What it found of each key is gone, by age; the figures stay.")
    said += [f"Weakness: {one}" for one in row["weaknesses"] if one not in row["says"]]
    said.append(f"Of what was delivered this says nothing: {command_line('pipelines', 'show', row['pipeline'])}")
    return said


def _line(named: Row) -> str:
    at = f", latest event at {named['coordinate']}" if named["coordinate"] else ", no event of it"
    return f"{named['key']!a}{at}"


def _named(number: int, row: Row, spelling: Spelling) -> dict[str, Any]:
    at = None
    if row["position"] is not None:
        at = coordinate_format(Coordinate(int(row["position"]), int(row["ordinal"])), spelling)
    return {"number": number, "word": row["word"], "key": row["key"], "coordinate": at}
