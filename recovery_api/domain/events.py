"""The steps that the timeline records: one row for each, with its word, what happened, and where else it is listed."""

from __future__ import annotations

from enum import StrEnum

from recovery_api.domain.words import row_make


class Listed(StrEnum):
    """Where a step is shown besides the timeline."""

    NOWHERE = "nowhere"
    REFUSAL = "refusal"
    """Marked as something that was refused."""
    REGISTRY = "registry"
    """In the history of the source, the sink or the pipeline whose configuration it changed."""


class EventKind(StrEnum):
    """A row: the word, what happened, where else it is listed. `event_append` refuses any other word."""

    means: str
    listed: Listed

    def __new__(cls, word: str, means: str = "", listed: Listed = Listed.NOWHERE) -> EventKind:
        return row_make(cls, word, means=means, listed=listed)

    PIPELINE_CREATED = "pipeline created", "A pipeline was registered.", Listed.REGISTRY
    END_CHANGED = "end changed", "The options of its source or sink changed; waiting plans lapsed.", Listed.REGISTRY
    AUDIT_REQUESTED = "audit requested", "Somebody asked for a verdict."
    AUDIT_RECORDED = "audit recorded", "A verdict and its evidence were committed."
    IMAGE_REQUESTED = "image requested", "Somebody asked to compare a copy of state with the history."
    IMAGE_RECORDED = "image recorded", "What comparing a copy of state with the history found was committed."
    PLAN_REQUESTED = "plan requested", "Somebody asked for a plan."
    PLAN_RECORDED = "plan recorded", "A plan is ready, or found nothing owed."
    PLAN_REFUSED = "plan refused", "A plan's conditions do not hold.", Listed.REFUSAL
    PLAN_APPROVED = "plan approved", "Somebody approved a digest."
    PLAN_LAPSED = "plan lapsed", "A plan was superseded or its approval grew too old."
    RECOVERY_REQUESTED = "recovery requested", "Somebody applied an approved plan."
    GENERATION_ALLOCATED = "generation allocated", "The sink gave a number."
    CLAIM_GRANTED = "claim granted", "The sink's fence was raised for a recovery."
    CLAIM_REFUSED = "claim refused", "The sink did not grant the claim.", Listed.REFUSAL
    CLAIM_SETTLED = "claim settled", "The sink said what became of a claim."
    ARMED = "armed", "The batch was fixed: at the sink under a claim, or here before it is appended."
    STAGED = "staged", "The batch is in the sink's staging."
    FIRED = "fired", "The batch landed."
    FIRE_REFUSED = "fire refused", "The sink landed nothing: fenced, not armed, or not the armed batch.", Listed.REFUSAL
    VERIFIED = "verified", "The sink was audited after the fire."
    HANDED_OVER = (
        "handed over",
        "Where the next relay run starts was stored; the entry says whether that could be checked.",
    )
    STEP = "step", "A move between two steps that needs no name of its own."
    WANTED = "wanted", "A person asked a running recovery to pause, run or stop."
    RECOVERY_TAKEN_OVER = "recovery taken over", "A successor went on after a worker's death."
    RECOVERY_TROUBLED = "recovery troubled", "Its work failed; the recovery waits to be settled."
    RECOVERY_FINISHED = "recovery finished", "The outcome was recorded."
    OMISSION_ACKNOWLEDGED = "omission acknowledged", "A coordinate was taken out of the obligation."
    OMISSION_WITHDRAWN = "omission withdrawn", "The coordinate is owed again."
    FINDING_LEFT = "finding left", "Somebody looked at what an audit found and left it as it is, with a reason."
    LEDGER_DECIDED = "ledger decided", "Somebody decided that nothing is owed where no audit saw what was committed."
    ARCHIVE_REGISTERED = "archive registered", "Somebody registered files of the source's events in the archive."
    SINK_RESTORED = "sink restored", "The sink lies behind what it said before; certificates are void."
    SINK_CLEARED = "sink cleared", "After a restore: counter raised, full audit run."
    WORK_FAILED = "work failed", "An intent ended with an error."
    END_REGISTERED = "end registered", "A source or a sink was registered.", Listed.REGISTRY
    RETIRED = (
        "retired",
        "A source, a sink or a pipeline was taken out of use, and its history stays; or old events went from the timeline.",
        Listed.REGISTRY,
    )
    PIPELINE_CHANGED = (
        "pipeline changed",
        "Scope, options or the rule about approvers changed; waiting plans lapsed.",
        Listed.REGISTRY,
    )
    SINK_INSTALLED = "sink installed", "A worker installed the sink kit on request.", Listed.REGISTRY
    CONTENT_READ = "content read", "Somebody looked at a payload whole, or downloaded it."
    ACCESS_DENIED = "access denied", "Somebody asked for what their roles do not allow.", Listed.REFUSAL
    TOKEN_CHANGED = "token changed", "An API token was made or revoked."  # nosec B105 # a name, no secret
    FROZEN = "frozen", "Somebody stopped all sending, for one pipeline or for all of them."
    UNFROZEN = "unfrozen", "Somebody lifted a freeze."
    INCIDENT_OPENED = "incident opened", "Somebody gave an incident a name."
    INCIDENT_CHANGED = "incident changed", "The state, severity, commander or pipelines of an incident changed."
    INCIDENT_NOTED = "incident noted", "Somebody wrote a note into an incident."
    DRILL_REQUESTED = "drill requested", "Somebody, or a schedule, asked a sink to prove what its recoveries rest on."
    ALERT_ACKNOWLEDGED = "alert acknowledged", "Somebody took an alert over until a moment, or gave it back."
    ALERTING_CHANGED = "alerting changed", "A destination, a route or a mute was made, changed or ended."
    DRILL_RECORDED = "drill recorded", "A drill ended: passed, failed with its evidence, or not applicable."


REFUSALS = frozenset(kind for kind in EventKind if kind.listed is Listed.REFUSAL)
OF_THE_REGISTRY = tuple(kind for kind in EventKind if kind.listed is Listed.REGISTRY)
