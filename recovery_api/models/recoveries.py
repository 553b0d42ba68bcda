"""A recovery: one run of the protocol for one approved plan. What it says about the sink is a memory (THEORY 4.8)."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from recovery_api.domain.outcomes import Outcome
from recovery_api.models.pipelines import Pipeline
from recovery_api.models.plans import Plan


class RecoveryState(models.TextChoices):
    """The step a recovery is at. A worker moves it on; its strategy (recovery_api.domain.strategies) has the allowed moves."""

    REQUESTED = "requested"
    """Asked for, nothing done at the sink. A crash changes nothing."""
    CLAIMING = "claiming"
    """A generation is allocated and its claim asked for. A crash may leave the fence raised and a claim open."""
    ARMING = "arming"
    """The record is read under the claim. A crash leaves an open claim; the successor supersedes it."""
    STAGING = "staging"
    """The batch goes to the sink's staging. A crash leaves staged rows, which no other arm takes for its own."""
    FIRING = "firing"
    """The batch lands in one transaction. A crash leaves it landed or not: only the sink knows, after locking."""
    READING = "reading"
    """Without a fence: both ends are read for the next part. Nothing is held at the sink; a crash leaves nothing."""
    APPENDING = "appending"
    """Without a fence: a part lands in one transaction. A crash leaves it landed or not; a successor runs it again."""
    VERIFYING = "verifying"
    """The sink is audited at the frontier. A crash leaves the landing as it is; the successor verifies."""
    HANDING_OVER = "handing_over"
    """The relay's start position is checked. A crash leaves it stored by the fire."""
    SETTLING = "settling"
    """A successor locks the claim to learn what became of it. A crash changes nothing."""
    FINISHED = "finished"
    """`outcome` says how. Final, except that asking to settle an unknown outcome makes it unfinished again."""


class RecoveryOutcome(models.TextChoices):
    """How a recovery ended, as verified at the sink: domain.outcomes says what each means."""

    EXACTLY_ONCE = Outcome.EXACTLY_ONCE.value
    EXACTLY_ONCE_GIVEN = Outcome.EXACTLY_ONCE_GIVEN.value
    NOTHING_OWED_OF_KEPT = Outcome.NOTHING_OWED_OF_KEPT.value
    COMPLETE_WITH_ACKNOWLEDGED = Outcome.COMPLETE_WITH_ACKNOWLEDGED.value
    COMPLETE_HAND_OVER_UNVERIFIED = Outcome.COMPLETE_HAND_OVER_UNVERIFIED.value
    INCOMPLETE = Outcome.INCOMPLETE.value
    INCOMPLETE_ALTERED = Outcome.INCOMPLETE_ALTERED.value
    HAZARD = Outcome.HAZARD.value
    FENCED = Outcome.FENCED.value
    REFUSED = Outcome.REFUSED.value
    STOPPED = Outcome.STOPPED.value
    UNKNOWN = Outcome.UNKNOWN.value


class Wanted(models.TextChoices):
    """What a person asked of a running recovery; the worker reads it between steps."""

    RUN = "run"
    """Go on."""
    PAUSE = "pause"
    """Wait at the next safe point; the claim stays open."""
    STOP = "stop"
    """End at the next safe point; a fence already raised stays raised."""


class Recovery(models.Model):
    """`revision` grows with every move and guards the next one. `batch_index` of `batches`: parts split by frontier.
    `certificate_evidence_until`: when what the certificate rests on may be gone; null: no such moment is known."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="recoveries")
    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="recoveries")
    frontier = models.JSONField()
    generation = models.BigIntegerField(null=True, blank=True)
    state = models.CharField(max_length=20, choices=RecoveryState.choices, default=RecoveryState.REQUESTED)
    revision = models.IntegerField(default=0)
    wanted = models.CharField(max_length=10, choices=Wanted.choices, default=Wanted.RUN)
    wanted_by = models.CharField(max_length=200, blank=True, default="")
    outcome = models.CharField(max_length=40, choices=RecoveryOutcome.choices, null=True, blank=True)
    says = models.TextField(blank=True, default="")
    reason = models.TextField()
    requested_by = models.CharField(max_length=200)
    attestations = models.JSONField(default=list)
    batch_index = models.IntegerField(default=0)
    batches = models.IntegerField(default=1)
    armed_count = models.BigIntegerField(null=True, blank=True)
    landed_count = models.BigIntegerField(default=0)
    absorbed_count = models.BigIntegerField(default=0)
    altered_count = models.BigIntegerField(default=0)
    start = models.JSONField(null=True, blank=True)
    progress = models.JSONField(null=True, blank=True)
    problem = models.JSONField(null=True, blank=True)
    certificate = models.JSONField(null=True, blank=True)
    certificate_digest = models.TextField(blank=True, default="")
    certificate_evidence_until = models.DateTimeField(null=True, blank=True)
    certificate_void_since = models.DateTimeField(null=True, blank=True)
    certificate_void_says = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True, blank=True)
    fired_at = models.DateTimeField(null=True, blank=True)
    moved_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        verbose_name_plural = "recoveries"
        indexes = [
            models.Index(fields=["pipeline", "-created_at"], name="recoveries_of_a_pipeline"),
            models.Index(fields=["-created_at", "-id"], name="recoveries_by_age"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=RecoveryState.values), name="a_recovery_state_is_known"),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True) | Q(outcome__in=RecoveryOutcome.values),
                name="a_recovery_outcome_is_known",
            ),
            models.CheckConstraint(condition=Q(wanted__in=Wanted.values), name="what_is_wanted_of_a_recovery_is_known"),
            models.CheckConstraint(
                condition=Q(state=RecoveryState.FINISHED, outcome__isnull=False, finished_at__isnull=False)
                | (~Q(state=RecoveryState.FINISHED) & Q(outcome__isnull=True, finished_at__isnull=True)),
                name="a_recovery_has_an_outcome_when_it_is_finished",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="a_recovery_has_a_reason"),
            models.CheckConstraint(
                condition=Q(batch_index__gte=0, batches__gte=1, batch_index__lte=models.F("batches")),
                name="a_recovery_part_is_one_of_its_parts",
            ),
            models.UniqueConstraint(fields=["plan"], name="a_plan_is_applied_once"),
            models.UniqueConstraint(
                fields=["pipeline"],
                condition=~Q(state=RecoveryState.FINISHED),
                name="a_pipeline_has_one_unfinished_recovery",
            ),
        ]

    def __str__(self) -> str:
        return f"recovery {self.id}"
