"""Drills: a sink's fence proved in a namespace of its own. Every run is kept."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from recovery_api.models.ends import Sink
from recovery_api.models.intents import Intent


class DrillState(models.TextChoices):
    """How far a run of drills is, and how it ended."""

    REQUESTED = "requested"
    """Asked for; its intent moves it on. A crash of the worker leaves a namespace that the next drill removes."""
    PASSED = "passed"
    """Every drill that applies passed. Final."""
    FAILED = "failed"
    """At least one was not as the protocol says; its evidence is in the results. Final."""
    NOT_APPLICABLE = "not_applicable"
    """There was nothing to prove at this sink. Final."""
    UNKNOWN = "unknown"
    """It could not be run to its end. Final; ask again."""


class Drill(models.Model):
    """One run. `names`: which drills were asked for, empty for all. `results`: one object a drill, as
    recovery_api.domain.drills.DrillResult gives it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    sink = models.ForeignKey(Sink, on_delete=models.PROTECT, related_name="drills")
    intent = models.OneToOneField(Intent, on_delete=models.PROTECT, related_name="drill")
    names = models.JSONField(default=list)
    state = models.CharField(max_length=20, choices=DrillState.choices, default=DrillState.REQUESTED)
    says = models.TextField(blank=True, default="")
    results = models.JSONField(default=list)
    requested_by = models.CharField(max_length=200)
    requested_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-requested_at"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=DrillState.values), name="a_drill_state_is_known"),
            models.CheckConstraint(
                condition=Q(state=DrillState.REQUESTED, finished_at__isnull=True)
                | (~Q(state=DrillState.REQUESTED) & Q(finished_at__isnull=False)),
                name="a_drill_that_ended_has_its_time",
            ),
            models.UniqueConstraint(
                fields=["sink"], condition=Q(state=DrillState.REQUESTED), name="a_sink_has_one_drill_at_a_time"
            ),
        ]

    def __str__(self) -> str:
        return f"drill {self.id}"
