"""What is said of purging a source, as a JSON object: one spelling for command, REST and page."""

from __future__ import annotations

from recovery_api.rows import Row
from recovery_api.selectors.purging import LaneAnswer, PurgeAnswer


def purge_as_row(found: PurgeAnswer) -> Row:
    """Whether a source may be purged: `answer` of all pipelines and lanes together, then lane by lane."""
    return {
        "source": found.source,
        "answer": found.answer.value,
        "asked_at": found.asked_at.isoformat(),
        "lanes": [
            {
                "lane": lane.lane,
                "below": lane.below,
                "answer": lane.answer.value,
                "pipelines": [
                    {
                        "pipeline": one.pipeline or None,
                        "answer": one.answer.value,
                        "says": one.says,
                        "remedy": one.remedy,
                        "until": one.until.isoformat() if one.until else None,
                    }
                    for one in lane.said
                ],
                "highest": lane.highest,
                "counted": None if lane.counted is None else str(lane.counted),
                **_uncleared(lane),
                "transaction": lane.transaction or None,
                "transaction_says": lane.transaction_says,
            }
            for lane in found.lanes
        ],
    }


def _uncleared(lane: LaneAnswer) -> Row:
    found = lane.uncleared
    if found is None:
        return {"uncleared_at_least": None, "uncleared_at_most": None, "uncleared_says": ""}
    return {
        "uncleared_at_least": str(found.at_least),
        "uncleared_at_most": None if found.at_most is None else str(found.at_most),
        "uncleared_says": found.says(lane.below, lane.highest or ""),
    }
