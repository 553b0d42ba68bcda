"""The verdict cases as Arrow tables and questions, and their answers compared."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.verdicts import LaneCounts
from workers.evidence import schemas
from workers.evidence.answer import answer_make
from workers.evidence.canonical import ABSENT, Number, content_digest, payload_digest
from workers.evidence.kernel import LaneQuestion, image_mismatches

HERE = Path(__file__).parent
OTHER_FOLDER = os.environ.get("FENCEPOST_VECTORS")
FOLDER = Path(OTHER_FOLDER or HERE / "vectors")


def cases_file(name: str) -> Path:
    """A file of cases. Another folder than ours may lack it, and its tests are skipped; ours may not."""
    path = FOLDER / name
    if not path.exists():
        says = f"{path} is absent: FENCEPOST_VECTORS names the folder"
        (pytest.skip if OTHER_FOLDER else pytest.fail)(says)  # whoever names a folder may have some of the files only
    return path


def cases_read(name: str) -> list[dict[str, Any]]:
    """The cases of a file, numbers as written."""
    path = cases_file(name)
    cases: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"), parse_float=Number)["cases"]
    return cases


def digest_of(event: dict[str, Any]) -> str:
    return content_digest(event.get("value", ABSENT), event["op"])


def history_of(events: Iterable[dict[str, Any]], lane: str) -> pa.Table:
    rows = [
        {
            "lane": lane,
            "position": event["coordinate"],
            "ordinal": 0,
            "entry": place,
            "op": event["op"],
            "key": event["key"],
            "payload_digest": payload_digest(event["op"], event["key"], digest_of(event)),
        }
        for place, event in enumerate(events)
    ]
    return pa.Table.from_pylist(rows, schema=schemas.HISTORY)


def accepted_of(events: Iterable[dict[str, Any]], lane: str) -> pa.Table:
    rows = [
        {
            "lane": lane,
            "position": event["coordinate"],
            "ordinal": 0,
            "payload_digest": payload_digest(event["op"], event["key"], digest_of(event)),
            "generation": event["generation"],
            "head_position": event["head"],
            "head_ordinal": None if event["head"] is None else 0,
            "entry": place,
        }
        for place, event in enumerate(events)
    ]
    return pa.Table.from_pylist(rows, schema=schemas.ACCEPTED)


def images_of(events: Iterable[dict[str, Any]]) -> pa.Table:
    rows = [
        {"position": e["coordinate"], "op": e["op"], "key": e["key"], "content_digest": digest_of(e)} for e in events
    ]
    text = [("op", pa.string()), ("key", pa.string()), ("content_digest", pa.string())]
    return pa.Table.from_pylist(rows, schema=pa.schema([("position", pa.int64()), *text]))


def question_of(case: dict[str, Any], lane: str) -> LaneQuestion:
    journal = case["history"] if case["journal"] is None else case["journal"]
    head = max((event["coordinate"] for event in journal), default=None)
    omissions = case["acknowledged_omissions"]
    listed = pa.table(
        {"position": pa.array(omissions, pa.int64()), "ordinal": pa.array([0] * len(omissions), pa.int64())}
    )
    return LaneQuestion(
        lane=lane,
        frontier=Coordinate(case["frontier"]),
        journal_head=None if head is None else Coordinate(head),
        floor=None if case["floor"] is None else Coordinate(case["floor"]),
        scope=None if case["scope"] is None else pa.array(case["scope"], pa.string()),
        acknowledged=listed,
    )


def answer_of(case: dict[str, Any], counts: LaneCounts, findings: pa.Table) -> dict[str, Any]:
    """The verdict in the words of `expect`; the image from the kernel."""

    def event_at(place: int) -> dict[str, Any]:
        return {name: case["accepted"][place][name] for name in ("op", "key", "value")}

    answer = answer_make(counts, findings, lambda coordinate: coordinate.position, event_at)
    if "delivered" in case:
        base = pa.table(
            {
                "key": pa.array(list(case["base"]), pa.string()),
                "content_digest": pa.array([content_digest(value) for value in case["base"].values()], pa.string()),
            }
        )
        scope = None if case["scope"] is None else pa.array(case["scope"], pa.string())
        images = images_of(case["history"]), images_of(case["delivered"])
        answer["mismatched_keys"] = image_mismatches(*images, base, Coordinate(case["frontier"]), scope).to_pylist()
    return answer


def failures(cases: Iterable[dict[str, Any]], answers: Iterable[dict[str, Any]]) -> list[str]:
    """A line for each case whose answer is not the expected one, naming the keys that differ."""
    lines = []
    for case, answer in zip(cases, answers, strict=True):
        wrong = {
            key: (expected, answer.get(key)) for key, expected in case["expect"].items() if answer.get(key) != expected
        }
        if wrong or set(answer) != set(case["expect"]):
            lines.append(f"{case['id']}: {wrong or sorted(set(answer) ^ set(case['expect']))}")
    return lines
