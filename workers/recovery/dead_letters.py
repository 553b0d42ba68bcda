"""The omission_look_up intent: which events a dead-letter export names, and what each of them is now. Reads only.

The law: an event counts as owed where the newest audit found it lost and the record still does not hold it; as accepted
where the record holds it with the committed content. What neither shows is told apart, and nobody acknowledges it unseen.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from django.db import transaction
from django.utils import timezone

from recovery_api.domain.coordinates import INT64_MAX, Coordinate
from recovery_api.domain.dead_letters import Payload, payload_of
from recovery_api.domain.errors import Refused
from recovery_api.domain.findings import ABSENCES, FindingWord
from recovery_api.domain.frontiers import frontier_from_row
from recovery_api.domain.identity import is_by_event_id
from recovery_api.domain.omissions import Word
from recovery_api.domain.outcomes import Status
from recovery_api.models import Audit, Intent, OmissionPreview, PreviewedOmission
from recovery_api.selectors.evidence_places import stored_get
from recovery_api.selectors.omissions import audit_deciding, preview_get
from recovery_api.services.intents import intent_finish
from recovery_api.services.omission_previews import Place, export_looked_up, preview_says
from workers.connectors.protocols.source import Source
from workers.connectors.readings import CoordinateRange, Reading, Width
from workers.connectors.registry import record_make, source_make
from workers.evidence.canonical import (
    ABSENT,
    UncanonicalContent,
    content_digest,
    content_parse,
    payload_digest,
)
from workers.evidence.schemas import FINDING, HISTORY
from workers.evidence.store import FINDINGS, parts_read

Held = tuple[str, int, int]
"""Lane, position, ordinal."""


@dataclass(slots=True)
class Asked:
    """The places of an export. `ids`: those that lines name by event id alone; `payloads`: by key and content alone, with the
    payload digests that each may mean."""

    places: list[Place]
    held: dict[str, set[Coordinate]] = field(default_factory=lambda: defaultdict(set))
    ids: set[str] = field(default_factory=set)
    payloads: dict[str, set[bytes]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether every event must be looked at."""
        return bool(self.ids or self.payloads)

    @classmethod
    def of(cls, preview: OmissionPreview) -> Asked:
        rows = PreviewedOmission.objects.filter(preview=preview).order_by("line", "id")
        names = ("line", "lane", "position", "ordinal", "event_id", "word", "payload")
        found = cls(list(rows.values_list(*names).iterator(chunk_size=10_000)))
        for _, lane, position, ordinal, event_id, _, payload in found.places:
            if payload:
                found.payloads[payload] = set(_digests(payload_of(payload)))
            elif position is None or ordinal is None:
                found.ids.add(event_id)
            else:
                found.held[lane].add(Coordinate(position, ordinal))
        return found


@dataclass(frozen=True, slots=True)
class Committed:
    """One committed event: its id, its key where a scope is asked for, its payload digest."""

    event_id: str | None
    key: str | None
    digest: bytes | None


def export_look_up(intent: Intent, report: Any) -> None:
    """Gives every place of the preview its word, and ends the intent with the counts."""
    pipeline = intent.pipeline
    assert pipeline is not None
    preview = preview_get(pipeline, intent.arguments["preview"])
    audit = audit_deciding(pipeline)
    if audit is None:
        raise Refused("Looking up the export", "no audit stands any more", f"Run manage.py audit {pipeline.name}.")
    asked = Asked.of(preview)
    report(step="reading the source", total=len(asked.places), unit="events")
    source = source_make(pipeline.source.kind, pipeline.source.options)
    with source.hold_snapshot() as reading:
        committed = _committed(source, reading, asked, with_key=pipeline.scope is not None)
    report(step="reading the sink's record")
    accepted = None
    if not is_by_event_id(pipeline.sink.options):
        accepted = _accepted(record_make(pipeline.sink.kind, pipeline.sink.options), committed)
    lost, undecided = _findings(audit, set(committed))
    judge = _Judge(audit, committed, accepted, lost, undecided, pipeline.scope, asked.payloads)
    places = list(judge.places(asked.places))
    with transaction.atomic():
        counts = export_looked_up(preview, audit, places)
        result = {"preview": str(preview.pk), "counts": counts, "says": preview_says(preview)}
        intent_finish(intent, result, timezone.now())


def _committed(source: Source, reading: Reading, asked: Asked, *, with_key: bool) -> dict[Held, Committed]:
    """Of the history, the events that the export names. Lanes are read as far as they need to be, batch by batch."""
    found: dict[Held, Committed] = {}
    ids = pa.array(sorted(asked.ids), pa.string())
    contents = set().union(*asked.payloads.values())
    digests = pa.array(sorted(contents), HISTORY.field("payload_digest").type)
    for lane in reading.lanes:
        wanted = asked.held.get(lane, set())
        if not wanted and not asked.is_whole:
            continue
        positions = pa.array(sorted({one.position for one in wanted}), pa.int64())
        for batch in source.read_history(reading, _range(lane, wanted, asked.is_whole), Width.FULL, with_key=with_key):
            is_named = pc.or_(
                pc.is_in(batch["position"], value_set=positions),
                pc.is_in(batch["event_id"], value_set=ids, skip_nulls=True),
            )
            if contents:
                is_named = pc.or_(is_named, pc.is_in(batch["payload_digest"], value_set=digests, skip_nulls=True))
            for row in batch.filter(is_named).to_pylist():
                place = Coordinate(row["position"], row["ordinal"])
                if place in wanted or row["event_id"] in asked.ids or row["payload_digest"] in contents:
                    key = row["key"] if with_key else None
                    found[(lane, *_pair(place))] = Committed(row["event_id"], key, row["payload_digest"])
    return found


def _accepted(record: Any, committed: Mapping[Held, Committed]) -> set[Held]:
    """Of these events those that the record holds with the committed content."""
    found: set[Held] = set()
    by_lane: dict[str, set[Coordinate]] = defaultdict(set)
    for lane, position, ordinal in committed:
        by_lane[lane].add(Coordinate(position, ordinal))
    with record.hold_snapshot() as reading:
        for lane, wanted in by_lane.items():
            positions = pa.array(sorted({one.position for one in wanted}), pa.int64())
            for batch in record.read_accepted(reading, _range(lane, wanted, False), Width.PAYLOAD):
                for row in batch.filter(pc.is_in(batch["position"], value_set=positions)).to_pylist():
                    held = (lane, row["position"], row["ordinal"])
                    if held in committed and row["payload_digest"] == committed[held].digest:
                        found.add(held)
    return found


def _findings(audit: Audit, among: set[Held]) -> tuple[set[Held], set[Held]]:
    """Which of these the audit found lost, and of which it could not tell. Raises: Refused where its evidence is gone."""
    lost: set[Held] = set()
    undecided: set[Held] = set()
    stored = stored_get(audit.evidence_uri)
    if stored is None:
        if audit.evidence_rows:
            problem = f"the evidence of the audit at {audit.evidence_uri} is gone"
            raise Refused("Looking up the export", problem, f"Run manage.py audit {audit.pipeline.name}.")
        return lost, undecided
    is_open = ds.field("finding").isin([FindingWord.LOST.value, FindingWord.UNKNOWN.value])
    columns = ["finding", "cause", "lane", "position", "ordinal"]
    absences = {one.value for one in ABSENCES}
    for _, rows in parts_read(stored, FINDINGS, FINDING, columns=columns, wanted=is_open):
        for row in rows.to_pylist():
            held = (row["lane"], row["position"], row["ordinal"])
            if held not in among:
                continue
            if row["finding"] == FindingWord.LOST:
                lost.add(held)
            elif row["cause"] in absences:
                undecided.add(held)
    return lost, undecided


class _Judge:
    """From what was read to the word of each place."""

    def __init__(
        self,
        audit: Audit,
        committed: Mapping[Held, Committed],
        accepted: set[Held] | None,
        lost: set[Held],
        undecided: set[Held],
        scope: list[str] | None,
        payloads: Mapping[str, set[bytes]],
    ) -> None:
        self.committed, self.accepted, self.lost, self.undecided = committed, accepted, lost, undecided
        self.scope = None if scope is None else set(scope)
        self.frontier = frontier_from_row(audit.frontier)
        self.unknown_lanes = {lane for lane, row in audit.lanes.items() if row.get("status") == Status.UNKNOWN}
        self.payloads = payloads
        self.by_id: dict[str, list[Held]] = defaultdict(list)
        self.by_digest: dict[bytes, list[Held]] = defaultdict(list)
        for held, one in committed.items():
            if one.event_id is not None:
                self.by_id[one.event_id].append(held)
            if one.digest is not None:
                self.by_digest[one.digest].append(held)

    def places(self, places: Iterable[Place]) -> Iterator[Place]:
        for line, lane, position, ordinal, event_id, _, payload in places:
            if payload:
                yield self._by_content(line, lane, payload)
            elif position is None or ordinal is None:
                yield self._by_id(line, lane, event_id)
            else:
                held = (lane, position, ordinal)
                yield line, *held, event_id, self._word(held, event_id).value, ""

    def _by_id(self, line: int | None, lane: str, event_id: str) -> Place:
        found = self.by_id.get(event_id, [])
        if len(found) != 1:
            word = Word.SEVERAL if found else Word.NEVER_COMMITTED
            return line, lane, None, None, event_id, word.value, ""
        return line, *found[0], event_id, self._word(found[0], event_id).value, ""

    def _by_content(self, line: int | None, lane: str, payload: str) -> Place:
        """Only where one committed event alone has this key and content, whatever became of it."""
        found = [held for digest in self.payloads[payload] for held in self.by_digest.get(digest, ())]
        if len(found) != 1:
            word = Word.ALIKE if found else Word.UNMATCHED
            return line, lane, None, None, "", word.value, ""
        word = self._word(found[0], "")
        return line, *found[0], "", (Word.BY_CONTENT if word is Word.OWED else word).value, ""

    def _word(self, held: Held, event_id: str) -> Word:
        judged, one = self.frontier.get(held[0]), self.committed.get(held)
        if judged is None or Coordinate(*held[1:]) > judged:
            return Word.ABOVE
        if one is None:
            return Word.NEVER_COMMITTED
        if event_id and one.event_id is not None and one.event_id != event_id:
            return Word.OTHER_ID
        if self.scope is not None and one.key not in self.scope:
            return Word.OUT_OF_SCOPE
        if self.accepted is not None:
            if held in self.accepted:
                return Word.ACCEPTED
            return Word.OWED if held in self.lost else Word.UNDECIDED
        if held in self.lost:
            return Word.OWED
        is_untold = held in self.undecided or held[0] in self.unknown_lanes
        return Word.UNDECIDED if is_untold else Word.ACCEPTED


def _digests(payload: Payload) -> Iterator[bytes]:
    """The payload digest of each thing that the line may mean."""
    for op, key, text in payload.readings:
        with contextlib.suppress(ValueError, UncanonicalContent):
            content = ABSENT if text is None else content_parse(text)
            yield payload_digest(op, key, content_digest(content, op))


def _range(lane: str, wanted: set[Coordinate], is_whole: bool) -> CoordinateRange:
    """From the lowest to the highest of these; the whole lane where ids or contents are looked for, too."""
    if is_whole or not wanted:
        return CoordinateRange(lane, None, None)
    high = max(wanted)
    end = Coordinate(high.position, high.ordinal + 1) if high.ordinal < INT64_MAX else None
    return CoordinateRange(lane, min(wanted), end)


def _pair(place: Coordinate) -> tuple[int, int]:
    return place.position, place.ordinal
