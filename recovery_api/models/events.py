"""The timeline: who or what did which step, when, on which evidence. The database makes it append-only."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from recovery_api.models.audits import Audit
from recovery_api.models.pipelines import Pipeline
from recovery_api.models.plans import Plan
from recovery_api.models.recoveries import Recovery


class EventKind(models.TextChoices):
    """The steps the timeline knows. `event_append` accepts these and refuses others."""

    PIPELINE_CREATED = "pipeline created"
    """A pipeline was registered."""
    END_CHANGED = "end changed"
    """The options of its source or sink changed; waiting plans lapsed."""
    AUDIT_REQUESTED = "audit requested"
    """Somebody asked for a verdict."""
    AUDIT_RECORDED = "audit recorded"
    """A verdict and its evidence were committed."""
    PLAN_REQUESTED = "plan requested"
    """Somebody asked for a plan."""
    PLAN_RECORDED = "plan recorded"
    """A plan is ready, or found nothing owed."""
    PLAN_REFUSED = "plan refused"
    """A plan's conditions do not hold."""
    PLAN_APPROVED = "plan approved"
    """Somebody approved a digest."""
    PLAN_LAPSED = "plan lapsed"
    """A plan was superseded or its approval grew too old."""
    RECOVERY_REQUESTED = "recovery requested"
    """Somebody applied an approved plan."""
    GENERATION_ALLOCATED = "generation allocated"
    """The sink gave a number."""
    CLAIM_GRANTED = "claim granted"
    """The sink's fence was raised for a recovery."""
    CLAIM_REFUSED = "claim refused"
    """The sink did not grant the claim."""
    CLAIM_SETTLED = "claim settled"
    """The sink said what became of a claim."""
    ARMED = "armed"
    """The batch was fixed: at the sink under a claim, or here before it is appended."""
    STAGED = "staged"
    """The batch is in the sink's staging."""
    FIRED = "fired"
    """The batch landed."""
    FIRE_REFUSED = "fire refused"
    """The sink landed nothing: fenced, not armed, or not the armed batch."""
    VERIFIED = "verified"
    """The sink was audited after the fire."""
    HANDED_OVER = "handed over"
    """The relay's start position is known and checked, or said to be unchecked."""
    STEP = "step"
    """A move between two steps that needs no name of its own."""
    WANTED = "wanted"
    """A person asked a running recovery to pause, run or stop."""
    RECOVERY_TAKEN_OVER = "recovery taken over"
    """A successor went on after a worker's death."""
    RECOVERY_TROUBLED = "recovery troubled"
    """Its work failed; the recovery waits to be settled."""
    RECOVERY_FINISHED = "recovery finished"
    """The outcome was recorded."""
    OMISSION_ACKNOWLEDGED = "omission acknowledged"
    """A coordinate was taken out of the obligation."""
    OMISSION_WITHDRAWN = "omission withdrawn"
    """The coordinate is owed again."""
    SINK_RESTORED = "sink restored"
    """The sink lies behind what it said before; certificates are void."""
    SINK_CLEARED = "sink cleared"
    """After a restore: counter raised, full audit run."""
    WORK_FAILED = "work failed"
    """An intent ended with an error."""
    END_REGISTERED = "end registered"
    """A source or a sink was registered."""
    RETIRED = "retired"
    """A source, a sink or a pipeline was taken out of use; its history stays."""
    PIPELINE_CHANGED = "pipeline changed"
    """Scope, options or the rule about approvers changed; waiting plans lapsed."""
    SINK_INSTALLED = "sink installed"
    """A worker installed the sink kit on request."""
    CONTENT_READ = "content read"
    """Somebody looked at a payload whole, or downloaded it."""
    ACCESS_DENIED = "access denied"
    """Somebody asked for what their roles do not allow."""
    TOKEN_CHANGED = "token changed"  # nosec B105 # a name, no secret
    """An API token was made or revoked."""
    DRILL_REQUESTED = "drill requested"
    """Somebody, or a schedule, asked a sink to prove its fence."""
    DRILL_RECORDED = "drill recorded"
    """A drill ended: passed, failed with its evidence, or not applicable."""


class Event(models.Model):
    """One step. `generation` null: none was involved. Never updated, never deleted: a trigger says so."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    kind = models.CharField(max_length=40, choices=EventKind.choices)
    actor = models.CharField(max_length=200)
    pipeline = models.ForeignKey(Pipeline, null=True, blank=True, on_delete=models.PROTECT, related_name="events")
    recovery = models.ForeignKey(Recovery, null=True, blank=True, on_delete=models.PROTECT, related_name="events")
    plan = models.ForeignKey(Plan, null=True, blank=True, on_delete=models.PROTECT, related_name="events")
    audit = models.ForeignKey(Audit, null=True, blank=True, on_delete=models.PROTECT, related_name="events")
    generation = models.BigIntegerField(null=True, blank=True)
    says = models.TextField()
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["pipeline", "id"], name="events_of_a_pipeline"),
            models.Index(fields=["kind", "id"], name="events_of_a_kind"),
            models.Index(fields=["actor", "id"], name="events_of_an_actor"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=EventKind.values), name="an_event_kind_is_known"),
            models.CheckConstraint(condition=~Q(actor=""), name="an_event_has_an_actor"),
            models.CheckConstraint(condition=~Q(says=""), name="an_event_says_what_happened"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.at.isoformat()}"
