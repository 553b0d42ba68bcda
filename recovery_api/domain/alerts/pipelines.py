"""What is observed of one pipeline: facts of the control database in, observations out.

The law: an observation is as old as what it rests on. Of what rests on a reading of the record that is the reading; of what rests on
the control database alone it is now. Where nothing can be told, nothing is observed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from recovery_api.domain.alerts.causes import OF_OUTCOMES, Cause, Scope, Severity
from recovery_api.domain.alerts.evaluation import Observed, Subject
from recovery_api.domain.alerts.source_growth import over_bounds
from recovery_api.domain.headroom.evidence import is_expired
from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.headroom.seen import EndSeen
from recovery_api.domain.outcomes import OUTCOMES, Alert, Outcome, Status
from recovery_api.domain.schedules import span_at_least, span_says
from recovery_api.domain.statuses import RecordReading, readings_standing

STUCK_AFTER = timedelta(minutes=5)
"""A recovery that neither moved nor made progress for so long is stuck."""
HEADROOM = {Standing.LOW: Cause.HEADROOM_LOW, Standing.GONE: Cause.HEADROOM_GONE}


@dataclass(frozen=True, slots=True)
class ReadingSeen:
    """A reading of the record that stands. `is_of_recovery`: a recovery's own, after it fired."""

    audit: str
    reading: RecordReading
    owed: int
    hazards: int
    is_of_recovery: bool = False


@dataclass(frozen=True, slots=True)
class RunNow:
    """The newest recovery. `moved_at`: its last step or sign of progress. `is_paused`: it waits because people said so, by a pause or a freeze."""

    id: str
    created_at: datetime
    moved_at: datetime
    step: str
    is_paused: bool = False
    problem: str = ""
    outcome: Outcome | None = None
    finished_at: datetime | None = None
    says: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """One audit that could tell, as far as the relay, the source and the ground are asked. Newest first they are compared.

    `waiting`: what was not accepted, suspected events included. `unproven`: lane -> why its frontier is not proven; `proven`: the lanes
    whose frontier was.
    """

    audit: str
    read_at: datetime
    is_scheduled: bool
    obligations: int
    accepted: int
    waiting: int
    proven: frozenset[str] = frozenset()
    unproven: Mapping[str, str] = field(default_factory=dict)
    source: EndSeen | None = None


@dataclass(frozen=True, slots=True)
class PipelineNow:
    """One pipeline in use. `source`, `sink`: how its ends are named in a group. `period`: how far apart its audits are.

    `waiting_since`, `last_read_at`: as the schedule has them. `overdue_since`: when an audit was due that nobody made; `failure`: why
    the last attempt failed, and `failed_end`: at which end. `headroom` None: not known now. `looks`: the newest first.
    """

    key: int
    source: str
    sink: str
    period: timedelta
    readings: Sequence[ReadingSeen] = ()
    run: RunNow | None = None
    sla: timedelta | None = None
    waiting_since: datetime | None = None
    last_read_at: datetime | None = None
    is_scheduled: bool = True
    overdue_since: datetime | None = None
    failure: str = ""
    failed_end: str = ""
    headroom: Standing | None = None
    decide_by: datetime | None = None
    looks: Sequence[Look] = ()
    most_table_bytes: int | None = None
    least_slot_room_bytes: int | None = None


def observations(of: PipelineNow, now: datetime) -> Iterator[Observed]:
    """Everything that can be told of it now."""
    standing = readings_standing([one.reading for one in of.readings])
    known = [one for one in of.readings if any(one.reading is reading for reading in standing)]
    newest = max(of.readings, key=lambda one: one.reading.read_at, default=None)
    yield from _of_record(of, known, newest, now)
    yield from _overdue(of, now)
    yield from _headroom(of, known, now)
    yield from _run(of, newest, now)
    yield from _relay(of)
    yield from _source(of, now)
    yield from _ground(of)


def _make(of: PipelineNow, cause: Cause, is_shown: bool, at: datetime, says: str = "", **more: object) -> Observed:
    given = {"period": of.period if cause.period is None else None, "end": of.sink, **more}
    return Observed(cause, Subject(Scope.PIPELINE, of.key), is_shown, at, says, **given)  # type: ignore[arg-type]


def _of_record(
    of: PipelineNow, known: Sequence[ReadingSeen], newest: ReadingSeen | None, now: datetime
) -> Iterator[Observed]:
    """What stands of the readings, by the table of outcomes: a reading shows what its outcome opens, and clears what it resolves."""
    if newest is None:
        return
    for alert in (Alert.OWED, Alert.HAZARD):
        cause = OF_OUTCOMES[alert]
        opening = [one for one in known if alert in OUTCOMES[one.reading.status].opens]
        showing = [one for one in opening if not _is_expired(one, now)]
        if showing:
            worst = max(showing, key=lambda one: one.reading.read_at)
            number = sum(one.hazards if alert is Alert.HAZARD else one.owed for one in showing)
            if alert is Alert.OWED and not _is_past_sla(of, now):
                continue
            says = _late(of, worst.reading.says, now) if alert is Alert.OWED else worst.reading.says
            yield _make(
                of,
                cause,
                True,
                worst.reading.read_at,
                says,
                number=number,
                evidence=f"audit:{worst.audit}",
                since=_since(of, alert, worst.reading.read_at),
            )
        elif (
            alert is Alert.OWED and of.sla and of.last_read_at and of.waiting_since and now - of.waiting_since > of.sla
        ):
            yield _make(of, cause, True, of.last_read_at, _late(of, "", now), since=of.waiting_since + of.sla)
        elif not opening and alert in OUTCOMES[newest.reading.status].resolves:
            yield _make(
                of,
                cause,
                False,
                newest.reading.read_at,
                evidence=f"audit:{newest.audit}",
                is_conclusive=newest.is_of_recovery,
            )
    yield from _unknown(of, known, newest, now)


def _is_expired(seen: ReadingSeen, now: datetime) -> bool:
    """It shows nothing any more, and that takes nothing back."""
    return is_expired(seen.reading.evidence_until, now)


def _is_past_sla(of: PipelineNow, now: datetime) -> bool:
    """Without a promise, what is owed is told at once; with one, once the oldest event waits longer."""
    return of.sla is None or of.waiting_since is None or now - of.waiting_since > of.sla


def _since(of: PipelineNow, alert: Alert, read_at: datetime) -> datetime:
    if alert is Alert.OWED and of.sla is not None and of.waiting_since is not None:
        return max(read_at, of.waiting_since + of.sla)
    return read_at


def _late(of: PipelineNow, says: str, now: datetime) -> str:
    if of.sla is None or of.waiting_since is None:
        return says
    waits = (
        f"The oldest event waits for at least {span_at_least(now - of.waiting_since)}; {span_says(of.sla)} is promised."
    )
    return f"{says} {waits}".strip()


def _unknown(of: PipelineNow, known: Sequence[ReadingSeen], newest: ReadingSeen, now: datetime) -> Iterator[Observed]:
    """A reading that expired is unknown, although a newer one stands that did not reach as far."""
    reading = newest.reading
    expired = [one for one in known if _is_expired(one, now)]
    if reading.status is Status.UNKNOWN:
        yield _make(of, Cause.UNKNOWN, True, reading.read_at, reading.says, evidence=f"audit:{newest.audit}")
    elif expired:
        last = max(expired, key=lambda one: one.reading.read_at)
        since = last.reading.evidence_until
        says = f"The evidence of the last check may be gone since {since:%Y-%m-%d %H:%M} UTC. Audit it."
        yield _make(of, Cause.UNKNOWN, True, now, says, evidence=f"audit:{last.audit}", since=since)
    elif Alert.UNKNOWN in OUTCOMES[reading.status].resolves:
        yield _make(of, Cause.UNKNOWN, False, reading.read_at, evidence=f"audit:{newest.audit}")


def _overdue(of: PipelineNow, now: datetime) -> Iterator[Observed]:
    """Put down to the end that the last attempt failed at, else to Fencepost: nobody made it."""
    if of.overdue_since is None:
        if of.last_read_at is not None or not of.is_scheduled:
            yield _make(of, Cause.OVERDUE, False, now)
        return
    says = f"The audit that was due at {of.overdue_since:%Y-%m-%d %H:%M} UTC was not made."
    if of.failure:
        says = f"{says} The last attempt failed: {of.failure}"
    yield _make(
        of, Cause.OVERDUE, True, now, says, since=of.overdue_since + of.period, end=of.failed_end or "Fencepost"
    )


def _headroom(of: PipelineNow, known: Sequence[ReadingSeen], now: datetime) -> Iterator[Observed]:
    """*Unknown* tells nothing. What is gone is low no longer: it has an alert of its own."""
    if of.headroom not in (Standing.OK, *HEADROOM):
        return
    owing = [one for one in known if one.owed]
    is_told = any(not _is_expired(one, now) for one in owing)
    for standing, cause in HEADROOM.items():
        is_shown = of.headroom is standing
        until = f" Somebody must have decided by {of.decide_by:%Y-%m-%d %H:%M} UTC." if of.decide_by else ""
        owed = " Nothing is known to be owed; it holds if the relay stopped now."
        if owing:
            owed = " Events are owed." if is_told else " Events were owed when that could last be told."
        yield _make(
            of,
            cause,
            is_shown,
            now,
            f"{cause.means}{until}{owed}" if is_shown else "",
            severity=Severity.CRITICAL if owing else None,
            is_conclusive=standing is Standing.LOW and of.headroom is Standing.GONE,
        )


def _run(of: PipelineNow, newest: ReadingSeen | None, now: datetime) -> Iterator[Observed]:
    run = of.run
    if run is None:
        return
    about = {"evidence": f"recovery:{run.id}"}
    is_unfinished = run.finished_at is None
    is_unsettled = (is_unfinished and bool(run.problem)) or run.outcome is Outcome.UNKNOWN
    says = run.problem or run.says
    yield _make(
        of, Cause.RECOVERY_UNSETTLED, is_unsettled, now, f"Recovery {run.id}: {says}" if is_unsettled else "", **about
    )
    still = now - run.moved_at
    is_stuck = is_unfinished and not run.problem and not run.is_paused and still > STUCK_AFTER
    stands = (
        f"Recovery {run.id} has been {run.step} without any progress for {span_at_least(still)}." if is_stuck else ""
    )
    yield _make(of, Cause.RECOVERY_STUCK, is_stuck, now, stands, since=run.moved_at + STUCK_AFTER, **about)
    if run.finished_at is None or run.outcome is None:
        return
    meaning = OUTCOMES[run.outcome]
    for alert in (Alert.NOT_DELIVERED, Alert.HAND_OVER):
        cause = OF_OUTCOMES[alert]
        if (
            newest is not None
            and newest.reading.read_at > run.finished_at
            and alert in OUTCOMES[newest.reading.status].resolves
        ):
            yield _make(of, cause, False, newest.reading.read_at, evidence=f"audit:{newest.audit}")
        elif alert in meaning.opens:
            yield _make(
                of, cause, True, run.finished_at, f"Recovery {run.id} ended {meaning.words}: {run.says}", **about
            )
        else:  # another end than that: the newest recovery says so by itself
            yield _make(of, cause, False, run.finished_at, is_conclusive=True, **about)


def _relay(of: PipelineNow) -> Iterator[Observed]:
    """Two audits of one sort, the newest and the one before it."""
    if not of.looks:
        return
    new = of.looks[0]
    old = next((one for one in of.looks[1:] if one.is_scheduled is new.is_scheduled), None)
    if old is None:
        return
    came, accepted = new.obligations - old.obligations, new.accepted - old.accepted
    if accepted < 0 or came < 0:
        return  # rows went, or it is another record: that shows nothing
    is_shown = came > 0 and accepted == 0 and new.waiting > 0
    says = f"{came:,} events were committed since {old.read_at:%Y-%m-%d %H:%M} UTC, none was accepted, and {new.waiting:,} wait."
    if not is_shown and not accepted and new.waiting:
        return  # nothing came in, and nothing was accepted of what waits
    yield _make(
        of,
        Cause.RELAY_STALLED,
        is_shown,
        new.read_at,
        says if is_shown else "",
        number=new.waiting if is_shown else 0,
        evidence=f"audit:{new.audit}",
        end=of.source,
    )


def _source(of: PipelineNow, now: datetime) -> Iterator[Observed]:
    """As declared. Without a bound there is nothing to be over."""
    if of.most_table_bytes is None and of.least_slot_room_bytes is None:
        yield _make(of, Cause.SOURCE_GROWTH, False, now, end=of.source)
        return
    read = [(look.audit, look.source) for look in of.looks if look.source is not None]
    over = over_bounds([source for _, source in read], of.most_table_bytes, of.least_slot_room_bytes)
    if over is not None:
        audit, source = read[0]
        about = {"number": over.number, "evidence": f"audit:{audit}", "end": of.source}
        yield _make(of, Cause.SOURCE_GROWTH, bool(over.says), source.read_at, over.says, **about)


def _ground(of: PipelineNow) -> Iterator[Observed]:
    """Lost is what an earlier audit had: a source whose ground never was proven loses nothing."""
    if not of.looks:
        return
    new = of.looks[0]
    before = frozenset().union(*(one.proven for one in of.looks[1:]))
    lost = sorted(set(new.unproven) & before)
    if lost:
        says = f"Lane {lost[0]}: {new.unproven[lost[0]]}" + (
            f" And {len(lost) - 1} lanes more." if len(lost) > 1 else ""
        )
        about = {"evidence": f"audit:{new.audit}", "end": of.source}
        yield _make(of, Cause.GROUND_LOST, True, new.read_at, says, **about)
    elif new.proven and not new.unproven:
        yield _make(of, Cause.GROUND_LOST, False, new.read_at, evidence=f"audit:{new.audit}", end=of.source)
