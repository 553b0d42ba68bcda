"""The one table of causes: what somebody on call is told of, how it opens, and what takes it back.

Pages, REST, commands, routes, runbooks and the database's constraints read this table; none lists the causes a second time.
What an outcome opens and resolves stays with `domain.outcomes`: `OF_OUTCOMES` only says which cause each of its alerts is.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

from recovery_api.domain.outcomes import Alert
from recovery_api.domain.words import row_make


class Severity(StrEnum):
    """How much it matters, worst first."""

    CRITICAL = "critical"
    """Somebody should look now, at night too."""
    ERROR = "error"
    """Somebody should look today; it may become critical."""
    WARNING = "warning"
    """Somebody should know; nothing is wrong with any event yet."""

    @property
    def rank(self) -> int:
        """The greater the worse.

        >>> Severity.CRITICAL.rank > Severity.ERROR.rank > Severity.WARNING.rank
        True
        """
        return len(Severity) - list(Severity).index(self)


class Scope(StrEnum):
    """What one alert of a cause is about; another such thing has an alert of its own."""

    PIPELINE = "pipeline"
    SOURCE = "source"
    SINK = "sink"
    INSTALLATION = "installation"
    """Fencepost itself: no pipeline is named."""


MINUTE = timedelta(minutes=1)


class Cause(StrEnum):
    """A row: the word; what a person reads; how much it matters; what one alert is about; what it means; how it opens; what
    resolves it.

    `period`: how far apart the two observations must be that resolve it; None: as far as the pipeline's own audits are.
    `worse_by`: an alert is worse once its number (events owed, hazards, bytes) has grown by this factor; 0: a number says
    nothing here. The severity is the least one: evidence may raise it.
    """

    label: str
    severity: Severity
    scope: Scope
    means: str
    opens: str
    resolves: str
    period: timedelta | None
    worse_by: float

    def __new__(
        cls,
        word: str,
        label: str = "",
        severity: Severity = Severity.WARNING,
        scope: Scope = Scope.PIPELINE,
        means: str = "",
        opens: str = "",
        resolves: str = "",
        period: timedelta | None = None,
        worse_by: float = 0.0,
    ) -> Cause:
        said = {"label": label, "severity": severity, "scope": scope, "means": means, "opens": opens}
        return row_make(cls, word, **said, resolves=resolves, period=period, worse_by=worse_by)

    # what readings of the record found
    OWED = (
        "owed",
        "Owed",
        Severity.CRITICAL,
        Scope.PIPELINE,
        "Events were committed at the source and never reached the sink. The relay will not send them again by itself.",
        "A check finds events lost that nobody acknowledged. Where acceptance_sla_seconds is set: once the oldest event waits"
        " longer than that.",
        "Two later checks, a period apart, that find nothing owed; or the check that ends a recovery.",
        None,
        2.0,
    )
    HAZARD = (
        "hazard",
        "Hazard",
        Severity.CRITICAL,
        Scope.PIPELINE,
        "The sink accepted something wrong: an event twice, or one that was never committed. No recovery takes that away.",
        "A check finds a duplicate or a premature event, or an event with other content.",
        "Two later checks, a period apart, that find no hazard.",
        None,
        1.0,
    )
    UNKNOWN = (
        "unknown",
        "Unknown",
        Severity.ERROR,
        Scope.PIPELINE,
        "Nobody knows whether anything is owed or doubled: the last check could not be whole, or what it rests on is gone.",
        "A check ends unknown, or the evidence of the last one has expired. A pipeline that was never checked opens none.",
        "Two later checks, a period apart, that come to a verdict.",
    )
    OVERDUE = (
        "overdue",
        "Overdue",
        Severity.ERROR,
        Scope.PIPELINE,
        "Nothing has checked this pipeline for longer than it should go unchecked, so its last verdict counts no more.",
        "An audit of its schedule was not made, or its last verdict is older than stale_after_seconds.",
        "Two later looks, a period apart, that find its audits made.",
    )
    # how long a recovery may wait
    HEADROOM_LOW = (
        "headroom_low",
        "Headroom low",
        Severity.WARNING,
        Scope.PIPELINE,
        "A recovery that starts now still ends in time. One that waits as long as the declared operator delay may not.",
        "The moment by which somebody must have decided has passed. Critical while events are owed.",
        "Two later looks, a period apart, that find time to decide; or headroom that is gone, which has an alert of its own.",
        MINUTE,
    )
    HEADROOM_GONE = (
        "headroom_gone",
        "Headroom gone",
        Severity.ERROR,
        Scope.PIPELINE,
        "A recovery that starts now may end too late: an end may have forgotten what it needs.",
        "A memory that a recovery rests on ends too soon, or ended. Critical while events are owed.",
        "Two later looks, a period apart, that find it in time again.",
        MINUTE,
    )
    # recoveries
    RECOVERY_UNSETTLED = (
        "recovery_unsettled",
        "Recovery unsettled",
        Severity.CRITICAL,
        Scope.PIPELINE,
        "Work on a recovery failed half done: whether its batch landed is not known until the sink was asked.",
        "A recovery has a problem and waits to be settled, or ended unknown.",
        "Two later looks, a period apart, that find it settled or going on.",
        MINUTE,
    )
    RECOVERY_STUCK = (
        "recovery_stuck",
        "Recovery stuck",
        Severity.CRITICAL,
        Scope.PIPELINE,
        "A recovery is unfinished and does not move. The relay may be kept out of the sink meanwhile.",
        "Neither a step nor any progress for five minutes, and nobody asked it to pause.",
        "Two later looks, a period apart, that find it moving or finished.",
        MINUTE,
    )
    RECOVERY_ENDED_BADLY = (
        "recovery_ended_badly",
        "Recovery ended badly",
        Severity.CRITICAL,
        Scope.PIPELINE,
        "A recovery ended without delivering what it was to: it was fenced, refused or stopped.",
        "The newest recovery ended fenced, refused or stopped.",
        "A later recovery that ended otherwise, or two later checks, a period apart, that find nothing owed.",
    )
    HAND_OVER = (
        "hand_over",
        "Hand-over unverified",
        Severity.WARNING,
        Scope.PIPELINE,
        "A recovery delivered everything, but where the relay goes on from could not be checked.",
        "The newest recovery ended complete, hand-over unverified.",
        "A later recovery that ended otherwise, or two later checks, a period apart, that find nothing owed and no hazard.",
    )
    # the relay and the source
    RELAY_STALLED = (
        "relay_stalled",
        "Relay stalled",
        Severity.ERROR,
        Scope.PIPELINE,
        "The source grows and the sink accepts nothing. The relay is probably down; nothing is lost yet by that alone.",
        "Between two checks events were committed, none was accepted, and some wait.",
        "Two later checks, a period apart, between which something was accepted or nothing waits.",
        None,
        4.0,
    )
    SOURCE_GROWTH = (
        "source_growth",
        "Source grows",
        Severity.WARNING,
        Scope.PIPELINE,
        "The source's table, or the log kept for the relay's slot, is larger than was declared to be well.",
        "As read at the last audit, the table is over alert_table_bytes, or the slot leaves less than alert_slot_room_bytes.",
        "Two later audits, a period apart, that read it within its bounds.",
        None,
        2.0,
    )
    GROUND_LOST = (
        "ground_lost",
        "Proven ground lost",
        Severity.ERROR,
        Scope.PIPELINE,
        "A frontier of this source was proven safe before and is not any more: verdicts rest on somebody's word now.",
        "The newest check stands on an attested or assumed ground, or found a late row, where an earlier one was proven.",
        "Two later checks, a period apart, on a proven ground.",
    )
    # the sink
    GENERATION_BACKWARDS = (
        "generation_backwards",
        "Generation went backwards",
        Severity.CRITICAL,
        Scope.SINK,
        "The sink is behind what it said before: it was restored or replaced, and may have forgotten what it accepted.",
        "A worker found its identity, counter, fence or last entry behind what is remembered of it.",
        "Two later looks, a period apart, that find it cleared: its counter raised and a full audit made.",
        MINUTE,
    )
    CAPABILITY_WEAKER = (
        "capability_weaker",
        "Capability weaker",
        Severity.ERROR,
        Scope.SINK,
        "The sink can do less than was registered, so a recovery promises less than its people believe.",
        "The last connection test found less than is declared.",
        "A later connection test that finds all of it.",
    )
    KIT_OUTDATED = (
        "kit_outdated",
        "Sink kit outdated",
        Severity.WARNING,
        Scope.SINK,
        "The sink kit that is installed is older than the one that this release brings.",
        "The last connection test found an older version of the kit.",
        "A later connection test that finds the newest version.",
    )
    DRILL_FAILED = (
        "drill_failed",
        "Drill failed",
        Severity.ERROR,
        Scope.SINK,
        "A drill showed that the sink does not do what recoveries rest on. Do not rely on one before it passes.",
        "The newest drill of this sink failed, or could not be run to its end.",
        "A later drill that passed.",
    )
    DRILL_OLD = (
        "drill_old",
        "Drill too old",
        Severity.WARNING,
        Scope.SINK,
        "This sink is to be drilled regularly, and no drill has passed for twice that long.",
        "drill_every_hours is set, and the last drill that passed is older than twice that.",
        "Two later looks, a period apart, that find one that is young enough.",
        MINUTE,
    )
    # Fencepost itself
    NO_WORKER = (
        "no_worker",
        "No worker",
        Severity.CRITICAL,
        Scope.INSTALLATION,
        "No worker says that it is there: nothing is audited, and no recovery goes on.",
        "No worker was heard of for 35 s, and work waits or pipelines are to be audited by themselves.",
        "Two later looks, a period apart, that hear of one.",
        MINUTE,
    )
    NO_ENGINE = (
        "no_engine",
        "No Spark",
        Severity.ERROR,
        Scope.INSTALLATION,
        "The Spark server does not take connections: what reads many rows waits for it.",
        "The address in SPARK_REMOTE refuses a connection, or does not answer within a second, as seen by the pager.",
        "Two later looks, a period apart, that are let in.",
        MINUTE,
    )
    NO_BROKER = (
        "no_broker",
        "No broker",
        Severity.WARNING,
        Scope.INSTALLATION,
        "The broker does not answer, so nobody wakes a worker: what runs goes on, and nothing new is begun until it is back.",
        "The address in REDIS_URL refuses a connection, or does not answer within a second, as seen by the pager.",
        "Two later looks, a period apart, that are answered.",
        MINUTE,
    )


OF_OUTCOMES: Mapping[Alert, Cause] = {
    Alert.OWED: Cause.OWED,
    Alert.HAZARD: Cause.HAZARD,
    Alert.UNKNOWN: Cause.UNKNOWN,
    Alert.HAND_OVER: Cause.HAND_OVER,
    Alert.NOT_DELIVERED: Cause.RECOVERY_ENDED_BADLY,
}
"""Which cause each alert of the table of outcomes is."""
