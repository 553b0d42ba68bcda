"""An intent: work somebody asked for. The row is the obligation; the broker only wakes someone up sooner."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from recovery_api.domain.words import choices, words
from recovery_api.domain.work import IntentAction
from recovery_api.models.ends import Sink, Source
from recovery_api.models.pipelines import Pipeline


class IntentState(models.TextChoices):
    """Where the work stands."""

    QUEUED = "queued"
    """Nobody has it. A worker moves it on by taking it; the sweep wakes workers for it; a crash changes nothing."""
    TAKEN = "taken"
    """`taken_by` works on it and beats. A crash leaves it taken; the sweep offers it again 30 s after the last beat."""
    DONE = "done"
    """Its result is recorded. Final."""
    FAILED = "failed"
    """It ended with `error`, or its takers died too often. Final; ask again with a new intent."""
    CANCELLED = "cancelled"
    """Withdrawn before anybody took it. Final."""


LIVE_STATES = (IntentState.QUEUED, IntentState.TAKEN)


class Intent(models.Model):
    """`attempts` counts takes, at take time, and guards every write of the taker together with `taken_by`.

    `is_joined` is no column: a service that answers a request with work that was queued before sets it on that instance.
    """

    is_joined = False

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    action = models.CharField(max_length=30, choices=choices(IntentAction))
    pipeline = models.ForeignKey(Pipeline, null=True, blank=True, on_delete=models.PROTECT, related_name="intents")
    source = models.ForeignKey(Source, null=True, blank=True, on_delete=models.PROTECT, related_name="intents")
    sink = models.ForeignKey(Sink, null=True, blank=True, on_delete=models.PROTECT, related_name="intents")
    plan = models.ForeignKey("Plan", null=True, blank=True, on_delete=models.PROTECT, related_name="intents")
    recovery = models.ForeignKey("Recovery", null=True, blank=True, on_delete=models.PROTECT, related_name="intents")
    arguments = models.JSONField(default=dict)
    state = models.CharField(max_length=20, choices=IntentState.choices, default=IntentState.QUEUED)
    taken_by = models.CharField(max_length=200, blank=True, default="")
    taken_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    attempts = models.IntegerField(default=0)
    not_before = models.DateTimeField(null=True, blank=True)
    progress = models.JSONField(null=True, blank=True)
    spark_session_id = models.CharField(max_length=100, blank=True, default="")
    spark_tag = models.CharField(max_length=200, blank=True, default="")
    error = models.JSONField(null=True, blank=True)
    result = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    woken_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["created_at"], condition=Q(state__in=LIVE_STATES), name="live_intents_by_age"),
            models.Index(fields=["pipeline", "-created_at"], name="intents_of_a_pipeline"),
            models.Index(fields=["-created_at", "-id"], name="intents_by_age"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=IntentState.values), name="an_intent_state_is_known"),
            models.CheckConstraint(condition=Q(action__in=words(IntentAction)), name="an_intent_action_is_known"),
            models.CheckConstraint(
                condition=~Q(state=IntentState.TAKEN)
                | (~Q(taken_by="") & Q(taken_at__isnull=False, heartbeat_at__isnull=False, attempts__gt=0)),
                name="a_taken_intent_has_a_taker_and_a_heartbeat",
            ),
            models.CheckConstraint(
                condition=Q(state__in=LIVE_STATES, finished_at__isnull=True)
                | Q(state__in=[IntentState.DONE, IntentState.FAILED, IntentState.CANCELLED], finished_at__isnull=False),
                name="an_intent_is_finished_when_its_state_says_so",
            ),
            models.CheckConstraint(
                condition=~Q(state=IntentState.FAILED) | Q(error__isnull=False), name="a_failed_intent_says_why"
            ),
            models.UniqueConstraint(
                fields=["recovery"],
                condition=Q(state__in=LIVE_STATES, recovery__isnull=False),
                name="a_recovery_has_one_live_intent",
            ),
            models.UniqueConstraint(
                fields=["plan"],
                condition=Q(state__in=LIVE_STATES, action=IntentAction.PLAN),
                name="a_plan_has_one_live_intent",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.id}"
