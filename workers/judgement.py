"""Exports in, a verdict out: reading the files, asking the kernel, choosing the engine. Nothing is registered.

The history stands as the journal unless one is given; with a floor, only where it still holds something below it. Every
lane has its own frontier, and the lanes come to one total.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format
from recovery_api.domain.counts import LaneCounts
from recovery_api.domain.errors import BadInput
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.identity import BY_COORDINATE, BY_EVENT_ID
from recovery_api.domain.verdicts import Below, Evidence, Total, Verdict, verdict_make, verdict_total
from workers.evidence import schemas
from workers.evidence.answer import answer_make
from workers.evidence.canonical import content_digest
from workers.evidence.files import EventFile, FileNotes, ReadOptions, SpellingSigns
from workers.evidence.files.reading import Ask, files_read, size_of
from workers.evidence.kernel import LaneQuestion, image_mismatches
from workers.evidence.lane_bounds import Bounds, bounds_parse
from workers.evidence.matching import Matching, match_by_event_id, match_known
from workers.evidence.showing import Shown
from workers.evidence.sides import Side, lane_judge, side_load, side_write

SPARK_BYTES = 1 << 30
"""Above this much input `auto` asks Spark, where there is one. Reading takes a process some 20 MB a second whichever engine
meets the records, and meeting them in this process takes 100 bytes a record of its memory."""

UNTIED_GIVEN = "messages that no transaction wrote are committed events"

IMAGES = schemas.HISTORY.append(pa.field("content_digest", pa.string()))


@dataclass(frozen=True)
class JudgeRequest:
    """What `judge` was asked. Coordinates are text as given; `spelling` None: seen from the files.

    `frontier`, `floor`: one for a single lane, or `LANE=COORDINATE`; a frontier may be `end`, the history's own. `reading`: how each
    end's file is to be read. `trimmed`: how many entries the record has lost from its beginning.
    """

    history: Path
    accepted: Path
    frontier: str | Sequence[str]
    journal: Path | None = None
    scope: Sequence[str] | None = None
    floor: str | Sequence[str] | None = None
    omissions: Sequence[str] = ()
    delivered: Path | None = None
    base: dict[str, Any] | None = None
    spelling: Spelling | None = None
    engine: str = "auto"
    folder: Path | None = None
    reading: Mapping[str, ReadOptions] = field(default_factory=dict)
    identity: str = BY_COORDINATE
    trimmed: int = 0

    @property
    def paths(self) -> dict[str, Path]:
        given = {
            "history": self.history,
            "accepted": self.accepted,
            "journal": self.journal,
            "delivered": self.delivered,
        }
        return {end: path for end, path in given.items() if path is not None}

    def options(self, end: str) -> ReadOptions:
        found = self.reading.get(end, ReadOptions())
        by_id = self.identity == BY_EVENT_ID
        return replace(
            found,
            is_record=end in ("accepted", "delivered"),
            by_event_id=by_id and end == "accepted",
            needs_contents=not by_id,
        )


@dataclass(frozen=True)
class LaneJudgement:
    """One lane. `answer`: the keys of the conformance cases' `expect`. `named`: lost events by what tells them apart.
    `altered`: for the first altered entries, in what they differ.
    """

    verdict: Verdict
    answer: dict[str, Any]
    findings: pa.Table
    named: tuple[str, ...] = ()
    altered: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgement:
    """`lanes` in order. `notes`: what was read of each file, and where every line went."""

    lanes: dict[str, LaneJudgement]
    total: Total
    spelling: Spelling
    engine: str
    notes: dict[str, FileNotes]

    @property
    def exit_code(self) -> int:
        return self.total.exit_code

    @property
    def mended(self) -> tuple[str, ...]:
        return tuple(line for notes in self.notes.values() for line in notes.mended())


def judge(request: JudgeRequest) -> Judgement:
    """The verdict on these files. Raises: BadInput (BadFile, BadCoordinate) where they cannot serve; and Spark's."""
    signs = SpellingSigns()
    bounds = bounds_parse(request.frontier, request.floor, request.omissions, signs)
    engine = _engine(request)
    with tempfile.TemporaryDirectory(dir=request.folder, prefix="judge-") as folder:
        asks = {
            end: Ask(path, f"--{end} {path.name}", request.options(end), _wanted(request, end))
            for end, path in request.paths.items()
        }
        files = files_read(asks, signs, Path(folder))
        spelling = request.spelling or signs.decide()
        lanes = _lanes(request, files)
        bounds.check(lanes)
        if len(lanes) > 1 and "delivered" in files:
            raise BadInput(
                "--delivered", f"the files hold lanes {', '.join(lanes)}", "An image is compared of one lane."
            )
        work = _Work(request, files, signs, spelling, bounds, engine, Path(folder), len(lanes) == 1)
        judged = {lane: work.judge(lane) for lane in lanes}
    return Judgement(
        lanes=judged,
        total=verdict_total({lane: one.verdict for lane, one in judged.items()}),
        spelling=spelling,
        engine=engine,
        notes={end: file.notes for end, file in files.items()},
    )


def _lanes(request: JudgeRequest, files: Mapping[str, EventFile]) -> list[str]:
    """In order, whole numbers as such. By event id the record's own lanes are no lanes of the source."""
    ends = [file for end, file in files.items() if end != "accepted" or request.identity != BY_EVENT_ID]
    found = set().union(*(file.lanes for file in ends)) or {SINGLE_LANE}
    return sorted(found, key=lambda lane: (not lane.isdigit(), int(lane) if lane.isdigit() else 0, lane))


def _wanted(request: JudgeRequest, end: str) -> frozenset[str]:
    """The columns that this question needs of an end: digests always, the rest where something asks for it."""
    wanted = {"lane", "payload_digest"}
    if end == "accepted":
        wanted |= {"head"}
    elif end != "delivered":
        wanted |= {"entry"}
    if request.scope is not None and end in ("history", "journal"):
        wanted |= {"key"}
    if request.identity == BY_EVENT_ID and end in ("history", "accepted"):
        wanted |= {"event_id"}
    if request.delivered is not None and end in ("history", "delivered"):
        wanted |= {"op", "key", "content_digest", "entry"}
    return frozenset(wanted)


def _engine(request: JudgeRequest) -> str:
    if request.engine != "auto":
        return request.engine
    is_large = sum(map(size_of, request.paths.values())) > SPARK_BYTES
    return "spark" if is_large and os.environ.get("SPARK_REMOTE") else "arrow"


@dataclass
class _Work:
    """Everything read, lane after lane to be judged."""

    request: JudgeRequest
    files: dict[str, EventFile]
    signs: SpellingSigns
    spelling: Spelling
    bounds: Bounds
    engine: str
    folder: Path
    is_only_lane: bool

    @property
    def _shown(self) -> Shown:
        paths = {end: (file, self.request.options(end)) for end, file in self.files.items()}
        return Shown(paths, self.spelling, self.is_only_lane)

    def judge(self, lane: str) -> LaneJudgement:
        sides, matching = self._sides(lane)
        history, journal = sides["history"], sides.get("journal", sides["history"])
        frontier = self.bounds.frontier(lane, self.spelling, history.position, history.ordinal)
        question = LaneQuestion(
            lane=lane,
            frontier=frontier,
            journal_head=journal.highest,
            floor=self.bounds.floor(lane, self.spelling),
            scope=None if self.request.scope is None else pa.array(self.request.scope, pa.string()),
            acknowledged=_listed(self.bounds.omissions(lane, self.spelling)),
        )
        lowest = history.lowest
        question = replace(question, has_journal=self._has_journal(question, lowest))
        counts, findings = self._meet(question, sides)
        counts = matching.counts(counts)
        verdict = verdict_make(
            lane, coordinate_format(frontier, self.spelling), counts, self._evidence(question, lowest, counts, matching)
        )
        answer = answer_make(counts, findings, self._spelled, self._shown.doubled(findings))
        self._shown.published(answer["duplicates"], lane, self._spelled)
        named: tuple[str, ...] = ()
        if counts.coordinates_repeated and counts.lost:
            named = self._shown.named(findings, self._spelled)
        if "delivered" in self.files:
            answer["mismatched_keys"] = self._mismatches(question)
            if answer["mismatched_keys"] is None:
                says = "The image is unknown: in this spelling coordinate order is not each key's commit order."
                evidence = self._evidence(question, lowest, counts, matching)
                evidence = replace(evidence, unread=(*evidence.unread, says))
                verdict = verdict_make(lane, verdict.frontier, counts, evidence)
        altered = self._shown.altered(findings, journal, "journal" if "journal" in sides else "history")
        return LaneJudgement(verdict, answer, findings, named, altered)

    def _sides(self, lane: str) -> tuple[dict[str, Side], Matching]:
        """The lane's rows on every side, and how entries were matched to events."""
        sides: dict[str, Side] = {}
        by_id = self.request.identity == BY_EVENT_ID
        for end in ("history", "accepted", "journal"):
            if end not in self.files:
                continue
            extra = tuple(
                name
                for name, is_asked in (
                    ("key", self.request.scope is not None and end != "accepted"),
                    ("event_id", by_id and end != "journal"),
                )
                if is_asked
            )
            one = None if self.is_only_lane or (by_id and end == "accepted") else lane
            sides[end] = side_load(self.files[end], self.spelling, one, extra, end == "accepted")
        matching = Matching()
        if by_id:
            has_contents = all(self.files[end].has_contents for end in ("history", "accepted"))
            matching = match_by_event_id(sides, has_contents, self.is_only_lane)
        known = match_known(
            sides, {end: (file.path, file.unknown, self.request.options(end)) for end, file in self.files.items()}
        )
        return sides, replace(matching, uncompared=known)

    def _meet(self, question: LaneQuestion, sides: dict[str, Side]) -> tuple[LaneCounts, pa.Table]:
        if self.engine == "arrow":
            return lane_judge(question, sides)
        from workers.spark.meet import files_meet

        written = {}
        for end in sides:
            written[end] = self.folder / f"{end}.parquet"
            schema = schemas.ACCEPTED if end == "accepted" else schemas.HISTORY
            side_write(sides[end], written[end], question.lane, schema)
        return files_meet(question, written)

    def _has_journal(self, question: LaneQuestion, lowest: Coordinate | None) -> bool:
        return "journal" in self.files or question.floor is None or _holds_below(lowest, question.floor)

    def _evidence(
        self, question: LaneQuestion, lowest: Coordinate | None, counts: LaneCounts, matching: Matching
    ) -> Evidence:
        head = question.journal_head
        reaches = head is not None and head >= question.frontier
        if "journal" in self.files:
            below = Below.JOURNAL
        elif question.floor is None:
            below, reaches = Below.NOTHING_DROPPED, True
        elif _holds_below(lowest, question.floor):
            below, reaches = Below.NOTHING_DROPPED, reaches or (head is not None and head >= question.floor)
        else:
            below, reaches = Below.NOTHING, True
        unread = [line for file in self.files.values() for line in file.notes.unread()]
        if self.request.trimmed:
            unread.append(_trimmed(self.request.trimmed, counts))
        weaknesses = () if self.request.spelling else self.signs.weaknesses()
        return Evidence(
            below=below,
            journal_reaches=reaches,
            unread=tuple(unread),
            doubts=(*_doubts(question, self.spelling), *matching.doubts),
            given=(*matching.given, *self._given()),
            weaknesses=(*weaknesses, *self._shown.shared(question, counts)),
            grounds=(
                "The files are taken as whole exports: the history read after the record, at or below a safe frontier.",
                *matching.grounds,
            ),
            identity=matching.identity,
        )

    def _given(self) -> tuple[str, ...]:
        ends = [file for end, file in self.files.items() if end in ("history", "journal")]
        return (UNTIED_GIVEN,) if any(file.notes.mild["untied"] for file in ends) else ()

    def _mismatches(self, question: LaneQuestion) -> list[str | None] | None:
        if self.spelling is Spelling.XID8_BIGINT:
            return None
        base = self.request.base or {}
        shown = pa.table(
            {
                "key": pa.array(list(base), pa.string()),
                "content_digest": pa.array([content_digest(content) for content in base.values()], pa.string()),
            }
        )
        history, delivered = (self.files[end].table(self.spelling, IMAGES) for end in ("history", "delivered"))
        mismatched = image_mismatches(history, delivered, shown, question.frontier, question.scope)
        keys: list[str | None] = mismatched.to_pylist()
        return keys

    def _spelled(self, held: Coordinate) -> int | str:
        """A plain number as a number, anything else as its source's text."""
        text = coordinate_format(held, self.spelling)
        return int(text) if self.spelling in (Spelling.BIGINT, Spelling.UNSIGNED) else text


def _listed(coordinates: list[Coordinate]) -> pa.Table:
    return pa.table(
        {
            "position": pa.array([held.position for held in coordinates], pa.int64()),
            "ordinal": pa.array([held.ordinal for held in coordinates], pa.int64()),
        }
    )


def _holds_below(lowest: Coordinate | None, floor: Coordinate) -> bool:
    return lowest is not None and lowest < floor


def _trimmed(trimmed: int, counts: LaneCounts) -> str:
    """What is certain of a record that has lost entries: a bound, and no more."""
    lost, _ = counts.lost_of
    at_least = max(0, lost - trimmed)
    return (
        f"The record lost {trimmed:,} {'entry' if trimmed == 1 else 'entries'} from its beginning (evidence trimmed): of "
        f"{lost:,} missing events at most {min(trimmed, lost):,} may have been accepted there, so at least {at_least:,} "
        f"never {'was' if at_least == 1 else 'were'}; nothing shows which."
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
