"""What is known about purging a source: every active pipeline's audits, open work and restore window, lane by lane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q

from recovery_api.domain.coordinates import INT64_MIN, Coordinate, coordinate_format, coordinate_parse
from recovery_api.domain.errors import BadInput
from recovery_api.domain.evidence_classes import EvidenceClass
from recovery_api.domain.findings import FindingWord
from recovery_api.domain.frontiers import SINGLE_LANE, coordinate_from_row, frontier_from_row, frontier_parse
from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.base import RESTORE_WINDOW
from recovery_api.domain.ledger.words import ItemWord
from recovery_api.domain.outcomes import Status
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.domain.purging import (
    Answer,
    Look,
    Open,
    Owing,
    Said,
    Uncleared,
    answers_together,
    needs_row,
    purge_said,
    uncleared_count,
)
from recovery_api.models import (
    WAITING_STATES,
    AcknowledgedOmission,
    Audit,
    Finding,
    Pipeline,
    Plan,
    PlanState,
    Recovery,
    Schedule,
    Source,
)
from recovery_api.selectors.audits import audit_readings
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.lanes import lanes_asked
from recovery_api.selectors.ledger import ledger_items_open
from recovery_api.selectors.omissions import stands
from recovery_api.selectors.plans import approval_until
from recovery_api.selectors.schedules import schedule_standing

AUDITS_LOOKED_AT = 200
"""Of each pipeline, the newest: how far back a restore window is looked through, and a frontier to purge at."""

NEEDS_ROW = (ItemWord.LOST, ItemWord.ALTERED)
"""Items of the ledger that are sent, or decided about, from the source's row."""
LOWEST = Coordinate(INT64_MIN, INT64_MIN)


@dataclass(frozen=True, slots=True)
class LaneAnswer:
    """One lane. `below` as it was asked. `highest`: the highest counted coordinate that may go, as spelled; None: none.

    `counted`: how many rows the audit that counted there found. `uncleared`: how many rows a purge up to `below` would take
    above that; None where it may go. `transaction`: empty where none can be printed, and
    `transaction_says` why.
    """

    lane: str
    below: str
    answer: Answer
    said: Sequence[Said]
    highest: str | None
    counted: int | None
    uncleared: Uncleared | None
    transaction: str
    transaction_says: str


@dataclass(frozen=True, slots=True)
class PurgeAnswer:
    """What is said of a source. `answer`: the worst of its lanes."""

    source: str
    answer: Answer
    lanes: Sequence[LaneAnswer]
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class _Counted:
    """An audit that counted the history at its frontier."""

    at: Coordinate
    read_at: datetime
    fingerprint: Mapping[str, str]
    pipeline: str


def purge_check(source: Source, below: str) -> PurgeAnswer:
    """Whether what lies at or below `below` may be purged at `source`, by the control database's clock.

    Raises: BadCoordinate, BadInput.
    """
    now = now_get()
    frontier = frontier_parse(below, source_spelling(source), "below")
    pipelines = list(
        Pipeline.objects.filter(source=source, retired_at__isnull=True)
        .select_related("source", "sink")
        .order_by("name")
    )
    audits = {one.pk: _audits(one, frontier) for one in pipelines}
    lanes = [_lane(source, lane, at, pipelines, audits, now) for lane, at in sorted(frontier.items())]
    answer = next(one for one in Answer if one in {lane.answer for lane in lanes})
    return PurgeAnswer(source.name, answer, lanes, now)


def _lane(
    source: Source,
    lane: str,
    below: Coordinate,
    pipelines: Sequence[Pipeline],
    audits: Mapping[int, Sequence[Audit]],
    now: datetime,
) -> LaneAnswer:
    spelling = source_spelling(source)
    owing = [_owing(one, lane, audits[one.pk], now) for one in pipelines]
    said = [purge_said(one, below, coordinate_format(below, spelling), now) for one in owing]
    counted = _counted(lane, pipelines, audits)
    found = None
    if owing:
        for one in counted:
            if one.at <= below and all(
                purge_said(each, one.at, coordinate_format(one.at, spelling), now).answer is Answer.YES
                for each in owing
            ):
                found = one
                break
    transaction, says = _transaction(source, lane, below, found, pipelines)
    answer = answers_together(said)
    may = (found.at, int(found.fingerprint["count"])) if found else None
    counts = [(one.at, int(one.fingerprint["count"])) for one in counted]
    return LaneAnswer(
        lane,
        coordinate_format(below, spelling),
        answer,
        said or [Said("", Answer.UNKNOWN, "No active pipeline reads this source: nothing shows what is owed of it.")],
        coordinate_format(found.at, spelling) if found else None,
        int(found.fingerprint["count"]) if found else None,
        None if answer is Answer.YES else uncleared_count(below, counts, may),
        transaction,
        says,
    )


def _transaction(
    source: Source, lane: str, below: Coordinate, found: _Counted | None, pipelines: Sequence[Pipeline]
) -> tuple[str, str]:
    """What a person runs to delete at or below the highest counted coordinate, and what is to be said of it."""
    spelling = source_spelling(source)
    if found is None:
        return "", "No audit counted the history at a coordinate that may go."
    since = f"the audit of {found.pipeline} of {found.read_at:%Y-%m-%d %H:%M} UTC"
    kind = kind_get(source.kind)
    text = kind.purge(options_parse(kind, source.options), found.at, found.fingerprint, since)
    if not text or lane != SINGLE_LANE:
        says = "No transaction can be printed for this source (its kind, or a filter that looks into JSON)."
        return "", f"{says} Purge it by its own means, and compare the count: {int(found.fingerprint['count']):,} rows."
    at = coordinate_format(found.at, spelling)
    says = f"It deletes the {int(found.fingerprint['count']):,} rows at or below {at} that {since} counted, but for the newest, or none."
    if found.at < below:
        asked = coordinate_format(below, spelling)
        says += f" No audit counted at {asked} itself: manage.py audit {pipelines[0].name} --frontier {asked} does."
    return text, says


def _audits(pipeline: Pipeline, lanes: Iterable[str]) -> list[Audit]:
    """Those that are not void, newest reading first, with what is looked at of these lanes alone."""
    found = Audit.objects.filter(pipeline=pipeline, void_since__isnull=True)
    asked = lanes_asked("status", "given", "history", "late", "lowest_says", of=lanes)
    newest = found.order_by("-record_read_at").defer("findings", "weaknesses", "says", "lanes")
    audits = list(newest.annotate(asked=asked)[:AUDITS_LOOKED_AT])
    for audit in audits:
        audit.lanes = audit.asked
    return audits


def _owing(pipeline: Pipeline, lane: str, audits: Sequence[Audit], now: datetime) -> Owing:
    looks = [look for audit in audits if (look := _look(pipeline, audit, lane)) is not None]
    window = options_parse(kind_get(pipeline.sink.kind), pipeline.sink.options).get(RESTORE_WINDOW)
    restored = ""
    if pipeline.sink.restored_at is not None:
        restored = pipeline.sink.restored_says or "it lies behind what it said before."
    options = pipeline_options_parse(pipeline.options)
    return Owing(
        pipeline.name,
        pipeline.sink.name,
        timedelta(seconds=options["stale_after_seconds"]),
        looks,
        remembered=_remembered(pipeline, lane),
        work=_work(pipeline, lane),
        overdue_since=_overdue_since(pipeline, options, now),
        restored=restored,
        restore_window=timedelta(seconds=window) if window is not None else None,
    )


def _overdue_since(pipeline: Pipeline, options: Mapping[str, Any], now: datetime) -> datetime | None:
    readings = [reading for _, reading in audit_readings([pipeline.pk])]
    row = Schedule.objects.filter(pipeline=pipeline).first()
    return schedule_standing(str(pipeline.pk), row, options, readings, now).overdue_since


def _look(pipeline: Pipeline, audit: Audit, lane: str) -> Look | None:
    """What the audit says of the lane; None where it did not judge it. One that could read nothing speaks of every lane."""
    if not audit.frontier:
        return Look(audit.record_read_at, LOWEST, "nothing", audit.is_standing, is_unknown=True)
    at = frontier_from_row(audit.frontier).get(lane)
    if at is None:
        return None
    row = audit.lanes.get(lane) or {}
    status = row.get("status", audit.status)
    return Look(
        audit.record_read_at,
        at,
        coordinate_format(at, source_spelling(pipeline.source)),
        audit.is_standing,
        status == Status.UNKNOWN,
        _lowest(pipeline, audit, lane),
        tuple(row.get("given") or ()),
        audit.evidence_until,
    )


def _lowest(pipeline: Pipeline, audit: Audit, lane: str) -> Open | None:
    """The lowest open item of the audit in the lane, as it is now: what was acknowledged since is open no longer, and what
    was withdrawn since is open again. From the listing where that is whole; else from the groups, which count everything.
    """
    if audit.is_standing and audit.listed_count >= audit.evidence_rows:
        places = _listed(pipeline, audit, lane)
    else:
        places = [*_grouped(pipeline, audit, lane), *_owed_again(pipeline, audit, lane)]
    if not places:
        return None
    at, word = min(places)
    where = _where(pipeline, lane, at)
    if word == FindingWord.LOST:
        remedy = f"Recover it, or acknowledge it: manage.py plan {pipeline.name}."
        return Open(at, f"Event {where} is lost.", remedy)
    if word == FindingWord.PREMATURE:
        says = f"Event {where} was accepted with other content, and only the source holds the committed one."
        return Open(at, says, "Decide which one stands, and acknowledge it.")
    return Open(
        at, f"Whether the sink accepted event {where} is not known.", "Look for its effect, then acknowledge it."
    )


Place = tuple[Coordinate, str]


def _listed(pipeline: Pipeline, audit: Audit, lane: str) -> list[Place]:
    standing = AcknowledgedOmission.objects.filter(
        stands(), pipeline=pipeline, lane=lane, position=OuterRef("position"), ordinal=OuterRef("ordinal")
    )
    listed = Finding.objects.filter(~Exists(standing), audit=audit, lane=lane).order_by("position", "ordinal", "number")
    words = listed.order_by().values_list("finding", "cause").distinct()
    places = []
    for finding, cause in words:
        if needs_row(finding, cause):
            row = listed.filter(finding=finding, cause=cause).values_list("position", "ordinal").first()
            if row is not None:
                places.append((Coordinate(*row), finding))
    return places


def _grouped(pipeline: Pipeline, audit: Audit, lane: str) -> list[Place]:
    spelling = source_spelling(pipeline.source)
    places = []
    for group in audit.groups:
        if group["lane"] != lane or group["is_acknowledged"] or not needs_row(group["finding"], group["cause"]):
            continue
        first = group["runs"][0]
        held = first.get("first")
        at = coordinate_from_row(held) if held else coordinate_parse(first["first_says"], spelling)
        places.append((at, group["finding"]))
    return places


def _owed_again(pipeline: Pipeline, audit: Audit, lane: str) -> list[Place]:
    """What the audit found acknowledged, and is so no longer."""
    again = AcknowledgedOmission.objects.filter(
        stands(), pipeline=pipeline, lane=lane, position=OuterRef("position"), ordinal=OuterRef("ordinal")
    )
    ended = AcknowledgedOmission.objects.filter(
        ~Exists(again),
        Q(withdrawn_at__gt=audit.record_read_at) | Q(withdrawn_at__isnull=True, until__gt=audit.record_read_at),
        pipeline=pipeline,
        lane=lane,
    )
    row = ended.order_by("position", "ordinal").values_list("position", "ordinal").first()
    return [] if row is None else [(Coordinate(*row), FindingWord.LOST)]


def _remembered(pipeline: Pipeline, lane: str) -> Open | None:
    """The lowest event that the ledger has open and nobody acknowledged, of those that need their row."""
    standing = AcknowledgedOmission.objects.filter(
        stands(), pipeline=pipeline, lane=lane, position=OuterRef("position"), ordinal=OuterRef("ordinal")
    )
    found = ledger_items_open(pipeline).filter(~Exists(standing), lane=lane, word__in=NEEDS_ROW).first()
    if found is None:
        return None
    at = Coordinate(found.position, found.ordinal)
    named = f" (event id {found.event_id})" if found.event_id else ""
    what = "was accepted with other content" if found.word == ItemWord.ALTERED else "is owed"
    since = f"{found.first_seen_at:%Y-%m-%d %H:%M} UTC"
    says = f"Event {_where(pipeline, lane, at)}{named} {what}: an audit saw it at {since}, and nothing has settled it."
    remedy = f"Recover it, or acknowledge it, then audit: manage.py ledger list {pipeline.name}."
    return Open(at, says, remedy)


def _where(pipeline: Pipeline, lane: str, at: Coordinate) -> str:
    spelled = coordinate_format(at, source_spelling(pipeline.source))
    return spelled if lane == SINGLE_LANE else f"{lane}={spelled}"


def _work(pipeline: Pipeline, lane: str) -> list[Open]:
    """The lowest event that each plan that has not ended and each unfinished recovery still sends."""
    found = []
    running = Recovery.objects.filter(pipeline=pipeline, finished_at__isnull=True).select_related("plan")
    for plan in Plan.objects.filter(pipeline=pipeline, state__in=[PlanState.DRAFT, PlanState.COMPUTING]):
        says = f"Plan {plan.pk} is being made: what it sends is not known yet."
        found.append(Open(None, says, "Let it be made, or withdraw its work."))
    waiting = Plan.objects.filter(pipeline=pipeline, state__in=WAITING_STATES).select_related("pipeline")
    named: Iterable[tuple[Plan, str, str, datetime | None]] = [
        *((one.plan, f"recovery {one.pk}", "Let it end, or settle it.", None) for one in running),
        *((one, f"plan {one.pk}", _plan_remedy(one), approval_until(one)) for one in waiting),
    ]
    for plan, name, remedy, until in named:
        if not plan.batch_count:
            continue
        sent = Finding.objects.filter(plan=plan, evidence_class__in=[one.value for one in EvidenceClass if one.is_sent])
        if sent.count() < plan.batch_count:
            found.append(Open(None, f"Not every event that {name} sends is listed.", remedy, until))
            continue
        row = sent.filter(lane=lane).order_by("position", "ordinal").values_list("position", "ordinal").first()
        if row is not None:
            at = Coordinate(*row)
            says = f"Event {_where(pipeline, lane, at)} is still to be sent by {name}."
            found.append(Open(at, says, remedy, until))
    return sorted(found, key=lambda one: (one.at is not None, one.at or Coordinate(0)))


def _plan_remedy(plan: Plan) -> str:
    """What ends a plan that waits, and when its approval does by itself."""
    if (until := approval_until(plan)) is None:
        return "Approve and apply it, or plan again."
    return f"Apply it, or plan again; its approval lapses at {until:%Y-%m-%d %H:%M:%S} UTC."


def _counted(lane: str, pipelines: Sequence[Pipeline], audits: Mapping[int, Sequence[Audit]]) -> list[_Counted]:
    """Frontiers at which an audit counted the history of the lane, highest first; of one frontier the newest count.

    A count that is older than the last purge would only make the transaction roll back, so those are left out: since then
    the lane's lowest coordinate is another.
    """
    found: dict[Coordinate, _Counted] = {}
    rows = [
        (audit, audit.lanes[lane], pipeline.name)
        for pipeline in pipelines
        for audit in audits[pipeline.pk]
        if lane in audit.lanes and lane in audit.frontier
    ]
    rows.sort(key=lambda one: one[0].record_read_at, reverse=True)
    for audit, row, name in rows:
        history: Mapping[str, Any] = row.get("history") or {}
        if "positions" not in history or row.get("late") or row.get("lowest_says") != rows[0][1].get("lowest_says"):
            continue
        at = coordinate_from_row(audit.frontier[lane])
        found.setdefault(at, _Counted(at, audit.record_read_at, history, name))
    return [found[at] for at in sorted(found, reverse=True)]


def below_check(below: str | None) -> str:
    """Raises: BadInput where nothing was said."""
    if not below or not below.strip():
        raise BadInput("below", "is missing", "Give the coordinate up to which you want to purge.")
    return below.strip()
