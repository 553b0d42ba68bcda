"""What answers look like, for the OpenAPI document. Rows are made by recovery_api.rows; a test compares the two."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from recovery_api.domain.findings import FindingWord
from recovery_api.domain.points import Point
from recovery_api.domain.timelines import AlertKind
from recovery_api.domain.words import words
from recovery_api.models import (
    AuditStatus,
    ClaimState,
    DrillState,
    EventKind,
    GenerationFate,
    GenerationPurpose,
    PlanState,
)
from recovery_api.serializers.freezes import FreezeShape
from recovery_api.serializers.headroom import HeadroomShortShape
from recovery_api.serializers.members import Anything, Counts, Moment, WideField, maybe, texts, things
from recovery_api.serializers.retention import EvidenceShape, PlanEvidence


class ProblemShape(serializers.Serializer):
    """RFC 9457. Read `code` and the data; `detail` is for people."""

    type = serializers.CharField(help_text="Where the code is explained.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField()
    detail = serializers.CharField()
    remedy = serializers.CharField(required=False, help_text="What would lift it.")
    field = serializers.CharField(required=False, help_text="Which field, parameter or member.")
    data = Anything(required=False)
    errors = things("Every field that cannot be used.")
    known = texts("The names that are known.")
    roles = texts("The roles that may.")
    limit_bytes = serializers.CharField(required=False)

    def get_fields(self) -> dict[str, Any]:
        found = super().get_fields()
        for name in ("errors", "known", "roles"):
            found[name].required = False
        return found


class EndShape(serializers.Serializer):
    name = serializers.CharField()
    kind = serializers.CharField()
    options = Anything(help_text="As given and filled. Credentials are references, never values.")
    filled = serializers.ListField(
        child=serializers.CharField(), help_text="Of the options those that are as their preset has them."
    )
    is_usable = maybe(serializers.BooleanField, help_text="By the last connection test; null: never tested.")
    report = maybe(Anything)
    tested_at = maybe(Moment)
    created_at = Moment()
    created_by = serializers.CharField()


class SourceShape(EndShape):
    pass


class SinkSaid(serializers.Serializer):
    identity = serializers.CharField(allow_blank=True)
    counter = maybe(WideField, help_text="Null: the sink keeps no counter.")
    fence = maybe(WideField, help_text="Null: the sink keeps no fence.")
    last_entry = maybe(WideField)
    at = Moment()


class PointShape(serializers.Serializer):
    """One point of a sink, declared and tested side by side. The weaker counts."""

    point = serializers.ChoiceField(words(Point))
    asks = serializers.CharField()
    declared = serializers.CharField(help_text="By its kind and options, in words.")
    tested = serializers.CharField()
    counts = serializers.CharField(help_text="The weaker of the two.")
    is_weaker = serializers.BooleanField(help_text="The test found less than was declared.")
    how = serializers.CharField(allow_blank=True, help_text="How it was tested.")
    because = serializers.CharField(allow_blank=True, help_text="Why it is not there, where the test found out.")
    tested_at = maybe(Moment)


class SinkShape(EndShape):
    capability = maybe(Anything)
    points = PointShape(many=True, help_text="As last tested; empty: never tested.")
    said = maybe(SinkSaid, help_text="What the sink last said of itself; a memory, not the truth.")
    restored_at = maybe(Moment)
    restored_says = serializers.CharField(allow_blank=True)
    drill_every_hours = maybe(serializers.IntegerField, help_text="null: only when asked.")
    drill_passed_at = maybe(
        Moment, help_text="When every drill that applies last passed; null: not since its options changed."
    )


class PipelineShape(serializers.Serializer):
    name = serializers.CharField()
    source = serializers.CharField()
    sink = serializers.CharField(help_text="The record: what was accepted is read there.")
    delivery = maybe(serializers.CharField, help_text="The sink that is fired into; null: the record itself.")
    strategy = maybe(serializers.CharField, help_text="How it may be recovered; null: an end was not tested.")
    strategy_says = serializers.CharField(
        allow_blank=True, help_text="What a recovery does and what may be said then; where none runs, why."
    )
    scope = serializers.ListField(child=serializers.CharField(), allow_null=True, help_text="null owes every key.")
    options = Anything(help_text="With their defaults.")
    requires_other_approver = serializers.BooleanField()
    created_at = Moment()
    created_by = serializers.CharField()


class ScheduleShape(serializers.Serializer):
    """When the pipeline is audited by itself, and how long the oldest event that was not accepted has waited."""

    is_scheduled = serializers.BooleanField(help_text="False: nothing audits it by itself.")
    period_seconds = WideField()
    last_due_at = maybe(Moment)
    next_due_at = maybe(Moment, help_text="null: its schedule is off, or no worker has seen it yet.")
    overdue_since = maybe(Moment, help_text="When an audit was due that nobody made; the status is unknown then.")
    last_read_at = maybe(Moment, help_text="When the record was last read, by whomever.")
    says = serializers.CharField()
    waits_seconds = maybe(WideField, help_text="At least so long; null: nothing waits, as last audited.")
    is_past_sla = serializers.BooleanField(help_text="It waits longer than acceptance_sla_seconds.")
    waiting_says = serializers.CharField(allow_blank=True)
    owner = maybe(serializers.CharField)


class StatusShape(serializers.Serializer):
    name = serializers.CharField()
    status = serializers.ChoiceField([*AuditStatus.values, "running"])
    says = serializers.CharField(allow_blank=True)
    exit_code = serializers.IntegerField(help_text="As of the commands.")
    is_stale = serializers.BooleanField()
    is_expired = serializers.BooleanField(help_text="An end may have forgotten what the last audit rests on.")
    given = texts("What an exactly once at f rests on besides what was read.")
    audit = maybe(serializers.UUIDField)
    audited_at = maybe(Moment)
    frontier = maybe(serializers.CharField)
    recovery = maybe(serializers.UUIDField)
    drill_passed_at = maybe(Moment)
    suspected = maybe(WideField, help_text="Above the frontier and not accepted yet: on its way, perhaps. No status.")
    schedule = ScheduleShape()
    headroom = HeadroomShortShape()
    frozen = maybe(FreezeShape, help_text="What keeps it from sending; null: nothing.")


class LaneShape(serializers.Serializer):
    lane = serializers.CharField()
    status = maybe(serializers.CharField, help_text="As it reads now: unknown once its evidence expired.")
    status_found = maybe(serializers.CharField)
    frontier = maybe(serializers.CharField, help_text="Judged up to here, in the source's spelling.")
    safe_frontier = maybe(Anything, help_text="`says`, its `ground`, and whom it waits for.")
    head = maybe(serializers.CharField)
    cursor = maybe(
        Anything, help_text="The relay's own, where the source names its table: what it claims, what the record says."
    )
    above_frontier_owed = maybe(WideField)
    counts = Anything()
    says = texts()


class FrontiersShape(serializers.Serializer):
    name = serializers.CharField()
    audit = maybe(serializers.UUIDField)
    audited_at = maybe(Moment)
    is_stale = serializers.BooleanField()
    lanes = LaneShape(many=True)


class AuditShape(serializers.Serializer):
    audit = serializers.UUIDField()
    pipeline = serializers.CharField()
    status = serializers.ChoiceField(
        AuditStatus.values, help_text="As it reads now: unknown once its evidence expired."
    )
    status_found = serializers.CharField(help_text="The same words, as it was recorded.")
    says = serializers.CharField(allow_blank=True)
    exit_code = serializers.IntegerField(
        help_text="0 exactly once, 1 owed or hazard, 3 unknown, 4 given or by identity."
    )
    evidence_until = maybe(Moment, help_text="When an end may forget what it rests on; null: no such moment is known.")
    evidence_says = serializers.CharField(allow_blank=True)
    is_expired = serializers.BooleanField()
    is_full = serializers.BooleanField()
    is_scheduled = serializers.BooleanField(help_text="Its schedule asked: judged at what was pinned a window before.")
    is_void = serializers.BooleanField(help_text="The sink was restored since, or its ground was refuted.")
    void_says = serializers.CharField(help_text="Why it is void; empty where it is not.")
    frontier = maybe(serializers.CharField)
    lost = WideField()
    premature = maybe(WideField, help_text="Null: not judged, since the record knows only message ids.")
    duplicates = WideField()
    acknowledged = WideField()
    obligations = WideField()
    accepted = WideField()
    matching = serializers.CharField(allow_blank=True)
    given = texts("What an exactly once at f rests on besides what was read.")
    weaknesses = texts("Every assumption the verdict makes.")
    lanes = Anything()
    source_snapshot = serializers.CharField(allow_blank=True)
    sink_snapshot = serializers.CharField(allow_blank=True)
    evidence = EvidenceShape()
    record_read_at = Moment(help_text="When the record's snapshot was opened: readings are ordered by it.")
    started_at = Moment()
    finished_at = Moment()


class LeftShape(serializers.Serializer):
    """Somebody looked at what was found there, and left it as it is."""

    by = serializers.CharField()
    at = Moment()
    reason = serializers.CharField()


class FindingShape(serializers.Serializer):
    """Digests are hex. `coordinate` is in the source's spelling; position and ordinal are as held."""

    number = WideField(help_text="Its place, from 0.")
    finding = serializers.ChoiceField(words(FindingWord))
    cause = maybe(serializers.CharField)
    evidence_class = maybe(serializers.CharField, help_text="Of a lost one: whether and why it is sent.")
    lane = serializers.CharField()
    coordinate = serializers.CharField()
    position = WideField()
    ordinal = WideField()
    entry = maybe(WideField)
    accepted_count = maybe(WideField)
    is_acknowledged = maybe(serializers.BooleanField)
    history_digest = maybe(serializers.CharField)
    accepted_digest = maybe(serializers.CharField)
    key = maybe(serializers.CharField, help_text="Of the committed event; null: no audit looked it up, or it has none.")
    event_id = maybe(serializers.CharField, help_text="As `key`.")
    committed_at = maybe(Moment, help_text="As the source says; as `key`.")
    left = maybe(LeftShape)


class ClassShape(serializers.Serializer):
    """Why owed events are, or are not, in a plan's batch. Every lost event is of exactly one class."""

    evidence_class = serializers.CharField(help_text="Of a later version: as it stands.")
    count = WideField()
    is_sent = serializers.BooleanField()
    says = serializers.CharField(allow_blank=True)
    remedy = serializers.CharField(allow_blank=True, help_text="What somebody can do about them.")


class PlanShape(serializers.Serializer):
    plan = serializers.UUIDField()
    audit = maybe(serializers.UUIDField, help_text="What its reading of both ends found.")
    pipeline = serializers.CharField()
    state = serializers.ChoiceField(PlanState.values)
    says = serializers.CharField(allow_blank=True)
    frontier = maybe(serializers.CharField)
    digest = serializers.CharField(allow_blank=True, help_text="What an approval binds to.")
    planned = maybe(WideField, help_text="How many events would be sent.")
    batch = Counts(help_text="Exact counts by evidence class; empty until it is computed.")
    classes = ClassShape(many=True, help_text="The same, with what becomes of each. Only what is sent is in the batch.")
    conditions = things("name, holds (null: unknown), says, remedy.")
    strategy = maybe(serializers.CharField, help_text="How its recovery would run; null until it is computed.")
    promise = maybe(serializers.CharField, help_text="What may be said once its recovery is verified.")
    attestations = things("What must be attested to apply it: name, asks, write.")
    samples = things()
    stranded = maybe(WideField, help_text="Accepted work above the frontier that the fence may strand.")
    evidence = PlanEvidence()
    author = serializers.CharField()
    approved_by = maybe(serializers.CharField)
    approved_at = maybe(Moment)
    created_at = Moment()
    computed_at = maybe(Moment)


class GenerationShape(serializers.Serializer):
    generation = WideField()
    pipeline = serializers.CharField()
    purpose = serializers.ChoiceField(GenerationPurpose.values)
    asked_by = serializers.CharField()
    fate = serializers.ChoiceField(GenerationFate.values)
    recovery = maybe(serializers.UUIDField)
    taken_at = Moment()
    settled_at = maybe(Moment)


class ClaimShape(serializers.Serializer):
    generation = WideField()
    pipeline = serializers.CharField()
    recovery = serializers.UUIDField()
    part = serializers.IntegerField()
    state = serializers.ChoiceField(ClaimState.values)
    claimed_by = serializers.CharField(allow_blank=True)
    frontier = maybe(serializers.CharField)
    arm = maybe(WideField)
    armed = maybe(WideField)
    armed_digest = maybe(serializers.CharField)
    landed = maybe(WideField)
    absorbed = maybe(WideField)
    start = maybe(serializers.CharField)
    superseded_by = maybe(WideField)
    superseded_at = maybe(Moment)
    superseded_who = maybe(serializers.CharField)
    claimed_at = Moment()
    said_at = Moment()
    settled_at = maybe(Moment)


class DrillShape(serializers.Serializer):
    """A sink proving its fence in a namespace of its own."""

    drill = serializers.UUIDField()
    sink = serializers.CharField()
    state = serializers.ChoiceField(DrillState.values)
    says = serializers.CharField(allow_blank=True)
    names = texts("Which were asked for; empty: all.")
    results = things("One object a drill, with its evidence.")
    intent = serializers.UUIDField()
    requested_by = serializers.CharField()
    requested_at = Moment()
    finished_at = maybe(Moment)


class EventShape(serializers.Serializer):
    id = WideField()
    at = Moment()
    kind = serializers.ChoiceField(words(EventKind))
    actor = serializers.CharField()
    pipeline = maybe(serializers.CharField)
    generation = maybe(WideField)
    says = serializers.CharField()
    data = Anything()
    plan = maybe(serializers.UUIDField)
    recovery = maybe(serializers.UUIDField)
    audit = maybe(serializers.UUIDField)


TIMELINE_KINDS = [*words(EventKind), *words(AlertKind)]


class TimelineLineShape(EventShape):
    """An event, or what happened to an alert; of that `data` is empty."""

    id = serializers.CharField(
        help_text="Of an event its number; of what happened to an alert the newest event's number then, a point, and the line's own."
    )
    kind = serializers.ChoiceField(TIMELINE_KINDS)
    alert = maybe(serializers.UUIDField)


class OmissionShape(serializers.Serializer):
    pipeline = serializers.CharField()
    lane = serializers.CharField()
    coordinate = serializers.CharField()
    reason = serializers.CharField()
    reference = maybe(serializers.CharField, help_text="A ticket's address or number.")
    act = serializers.UUIDField(help_text="Those that were acknowledged together share it.")
    until = maybe(Moment, help_text="Then it is owed again by itself; null: for good.")
    is_by_content = serializers.BooleanField(
        help_text="A dead-letter export named it by its key and content alone, which shows less than a coordinate or an id."
    )
    accepted_seen_at = maybe(Moment, help_text="When an audit first found it accepted all the same; null: none did.")
    acknowledged_by = serializers.CharField()
    acknowledged_at = Moment()
    withdrawn_by = maybe(serializers.CharField)
    withdrawn_at = maybe(Moment)


def page_of(
    shape: type[serializers.Serializer], name: str = "", **more: serializers.Field
) -> type[serializers.Serializer]:
    """The shape of a page of `shape`; `more` are further members."""
    name = name or f"{shape.__name__.removesuffix('Shape')}Page"
    following = serializers.CharField(
        allow_null=True, help_text="The address of the next page; null: this is the last."
    )
    return type(name, (serializers.Serializer,), {**more, "items": shape(many=True), "next": following})
