"""Two exports in, a verdict out: reading the files, asking the kernel, choosing the engine. Nothing is registered.

The history stands as the journal unless one is given; with a floor, only where it still holds something below it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format, coordinate_parse
from recovery_api.domain.errors import BadInput
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.verdicts import Below, Evidence, LaneCounts, Verdict, verdict_make
from workers.evidence import schemas
from workers.evidence.answer import answer_make
from workers.evidence.canonical import content_digest
from workers.evidence.files import EventFile, SpellingSigns, event_at, events_read
from workers.evidence.kernel import LaneQuestion, fold, image_mismatches, judge_block

SPARK_BYTES = 256 << 20
"""Above this much input `auto` asks Spark, where there is one. Some two million records: reading them takes minutes
whichever engine meets them (a process reads about 4 MB a second), and meeting them in this process as much again in
memory as it holds of them, 160 bytes a record; Parquet holds several times as many records a byte."""

IMAGES = schemas.HISTORY.append(pa.field("content_digest", pa.string()))


@dataclass(frozen=True)
class JudgeRequest:
    """What `judge` was asked. Coordinates are text as given; `spelling` None: seen from the files."""

    history: Path
    accepted: Path
    frontier: str
    journal: Path | None = None
    scope: Sequence[str] | None = None
    floor: str | None = None
    omissions: Sequence[str] = ()
    delivered: Path | None = None
    base: dict[str, Any] | None = None
    spelling: Spelling | None = None
    engine: str = "auto"
    folder: Path | None = None


@dataclass(frozen=True)
class Judgement:
    """`answer`: the keys of the conformance cases' `expect`. `mended`: what was taken in stride while reading."""

    verdict: Verdict
    answer: dict[str, Any]
    findings: pa.Table
    spelling: Spelling
    engine: str
    records: dict[str, int]
    mended: tuple[str, ...]


def judge(request: JudgeRequest) -> Judgement:
    """The verdict on these files. Raises: BadInput (BadFile, BadCoordinate) where they cannot serve; and Spark's."""
    signs = SpellingSigns()
    given = {"--frontier": request.frontier} | ({"--floor": request.floor} if request.floor is not None else {})
    given |= {f"omission {place}": text for place, text in enumerate(request.omissions, 1)}
    for where, text in given.items():
        signs.see(text.strip(), where)
    paths = {
        "history": request.history,
        "accepted": request.accepted,
        "journal": request.journal,
        "delivered": request.delivered,
    }
    files = {end: events_read(path, signs, _name(end, path)) for end, path in paths.items() if path is not None}
    lane = _lane(files)
    spelling = request.spelling or signs.decide()
    held = {where: coordinate_parse(text, spelling, where) for where, text in given.items()}
    question = LaneQuestion(
        lane=lane,
        frontier=held.pop("--frontier"),
        floor=held.pop("--floor", None),
        scope=None if request.scope is None else pa.array(request.scope, pa.string()),
        acknowledged=_listed(list(held.values())),
    )
    engine = _engine(request, list(files.values()))
    counts, findings, question, lowest = _meet(request, engine, files, spelling, question)
    evidence = _evidence(request, signs, files, question, lowest, spelling)
    answer = answer_make(counts, findings, lambda held: _spelled(held, spelling), _events_of(findings, request))
    if "delivered" in files:
        answer["mismatched_keys"] = _mismatches(request, files, spelling, question)
        if answer["mismatched_keys"] is None:
            says = "The image is unknown: in this spelling coordinate order is not each key's commit order."
            evidence = _with_unread(evidence, says)
    return Judgement(
        verdict=verdict_make(lane, coordinate_format(question.frontier, spelling), counts, evidence),
        answer=answer,
        findings=findings,
        spelling=spelling,
        engine=engine,
        records={end: file.notes.rows for end, file in files.items()},
        mended=tuple(line for file in files.values() for line in file.notes.mended()),
    )


def _name(end: str, path: Path) -> str:
    return f"--{end} {path.name}"


def _lane(files: dict[str, EventFile]) -> str:
    lanes = sorted(set().union(*(file.lanes for file in files.values())))
    if len(lanes) > 1:
        raise BadInput(
            "lane", f"the files hold lanes {', '.join(lanes)}", "A verdict is of one lane: judge each alone."
        )
    return lanes[0] if lanes else SINGLE_LANE


def _listed(coordinates: list[Coordinate]) -> pa.Table:
    return pa.table(
        {
            "position": pa.array([held.position for held in coordinates], pa.int64()),
            "ordinal": pa.array([held.ordinal for held in coordinates], pa.int64()),
        }
    )


def _engine(request: JudgeRequest, files: list[EventFile]) -> str:
    if request.engine != "auto":
        return request.engine
    is_large = sum(file.path.stat().st_size for file in files) > SPARK_BYTES
    return "spark" if is_large and os.environ.get("SPARK_REMOTE") else "arrow"


def _meet(
    request: JudgeRequest, engine: str, files: dict[str, EventFile], spelling: Spelling, question: LaneQuestion
) -> tuple[LaneCounts, pa.Table, LaneQuestion, Coordinate | None]:
    """The lane's counts, its findings, the question completed with the journal's head, and the history's lowest."""
    ends = [end for end in ("history", "accepted", "journal") if end in files]
    if engine == "arrow":
        tables = {end: files[end].table(spelling, _shape(end)) for end in ends}
        lowest, head = _extremes(tables["history"])[0], _extremes(tables.get("journal", tables["history"]))[1]
        question = _complete(question, request, lowest, head)
        block = judge_block(question, tables["history"], tables["accepted"], tables.get("journal"))
        return fold([block.counts]), block.findings, question, lowest
    from workers.spark.meet import files_meet

    with tempfile.TemporaryDirectory(dir=request.folder, prefix="judge-") as folder:
        written = {end: files[end].parquet(Path(folder) / f"{end}.parquet", spelling, _shape(end)) for end in ends}
        lowest, head = written["history"][0], written.get("journal", written["history"])[1]
        question = _complete(question, request, lowest, head)
        counts, findings = files_meet(question, {end: Path(folder) / f"{end}.parquet" for end in ends})
    return counts, findings, question, lowest


def _shape(end: str) -> pa.Schema:
    return schemas.ACCEPTED if end == "accepted" else schemas.HISTORY


def _extremes(table: pa.Table) -> tuple[Coordinate | None, Coordinate | None]:
    from workers.evidence.kernel.questions import coordinate_max, coordinate_min, rows_of

    rows = rows_of(table, by_payload=False)
    return coordinate_min(rows.position, rows.ordinal), coordinate_max(rows.position, rows.ordinal)


def _complete(
    question: LaneQuestion, request: JudgeRequest, lowest: Coordinate | None, head: Coordinate | None
) -> LaneQuestion:
    return LaneQuestion(
        lane=question.lane,
        frontier=question.frontier,
        journal_head=head,
        floor=question.floor,
        scope=question.scope,
        acknowledged=question.acknowledged,
        has_journal=request.journal is not None or question.floor is None or _holds_below(lowest, question.floor),
    )


def _holds_below(lowest: Coordinate | None, floor: Coordinate) -> bool:
    return lowest is not None and lowest < floor


def _evidence(
    request: JudgeRequest,
    signs: SpellingSigns,
    files: dict[str, EventFile],
    question: LaneQuestion,
    lowest: Coordinate | None,
    spelling: Spelling,
) -> Evidence:
    head = question.journal_head
    reaches = head is not None and head >= question.frontier
    if request.journal is not None:
        below = Below.JOURNAL
    elif question.floor is None:
        below, reaches = Below.NOTHING_DROPPED, True
    elif _holds_below(lowest, question.floor):
        below, reaches = Below.NOTHING_DROPPED, reaches or (head is not None and head >= question.floor)
    else:
        below, reaches = Below.NOTHING, True
    return Evidence(
        below=below,
        journal_reaches=reaches,
        unread=tuple(line for file in files.values() for line in file.notes.unread()),
        doubts=_doubts(question, spelling),
        weaknesses=() if request.spelling else signs.weaknesses(),
        grounds=(
            "The files are taken as whole exports: the history read after the record, at or below a safe frontier.",
        ),
    )


def _doubts(question: LaneQuestion, spelling: Spelling) -> tuple[str, ...]:
    """A frontier beyond what was exported may be right, and nothing in the files shows that it is."""
    head, asked = question.journal_head, coordinate_format(question.frontier, spelling)
    if head is None or head >= question.frontier:
        return ()
    ends = coordinate_format(head, spelling)
    return (
        f"The history ends at {ends}: nothing shows what was committed from there to {asked}. "
        f"Judge at {ends}, or give an export that reaches {asked}.",
    )


def _with_unread(evidence: Evidence, says: str) -> Evidence:
    return replace(evidence, unread=(*evidence.unread, says))


def _events_of(findings: pa.Table, request: JudgeRequest) -> Any:
    repeated = findings.filter(pc.equal(findings["finding"], "duplicate"))
    events = event_at(request.accepted, set(repeated["entry"].to_pylist()))
    return events.__getitem__


def _mismatches(
    request: JudgeRequest, files: dict[str, EventFile], spelling: Spelling, question: LaneQuestion
) -> list[str | None] | None:
    if spelling is Spelling.XID8_BIGINT:
        return None
    base = request.base or {}
    shown = pa.table(
        {
            "key": pa.array(list(base), pa.string()),
            "content_digest": pa.array([content_digest(content) for content in base.values()], pa.string()),
        }
    )
    history, delivered = (files[end].table(spelling, IMAGES) for end in ("history", "delivered"))
    keys: list[str | None] = image_mismatches(history, delivered, shown, question.frontier, question.scope).to_pylist()
    return keys


def _spelled(held: Coordinate, spelling: Spelling) -> int | str:
    """A plain number as a number, anything else as its source's text."""
    text = coordinate_format(held, spelling)
    return int(text) if spelling in (Spelling.BIGINT, Spelling.UNSIGNED) else text
