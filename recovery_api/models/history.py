"""What each audit observed, small enough to be kept for a year and drawn (domain.history says what the columns mean)."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.history import Grain
from recovery_api.domain.outcomes import Status
from recovery_api.domain.words import choices, words
from recovery_api.models.pipelines import Pipeline


class Observation(models.Model):
    """One audit, or the worst of an hour's or a day's. It outlives its audits, and goes with its pipeline.

    `until`: cut short by the next observation, and by whatever makes the verdict void. `observed_seconds` null: all of its
    time. Figures that are null were not known.
    """

    pipeline = models.ForeignKey(Pipeline, on_delete=models.CASCADE, related_name="observations")
    at = models.DateTimeField()
    until = models.DateTimeField()
    grain = models.CharField(max_length=5, choices=choices(Grain), default=Grain.AUDIT.value)
    audits = models.IntegerField(default=1)
    observed_seconds = models.FloatField(null=True, blank=True)
    status = models.CharField(max_length=20, choices=choices(Status))
    owed = models.BigIntegerField(null=True, blank=True)
    oldest_owed_seconds = models.BigIntegerField(null=True, blank=True)
    lag_events = models.BigIntegerField(null=True, blank=True)
    lag_seconds = models.BigIntegerField(null=True, blank=True)
    accepted_per_second = models.FloatField(null=True, blank=True)
    hazards = models.BigIntegerField(null=True, blank=True)
    headroom = models.CharField(max_length=10, blank=True, default="", choices=choices(Standing))
    headroom_seconds = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["pipeline", "at", "id"]
        indexes = [
            models.Index(fields=["pipeline", "at"], name="observations_of_a_pipeline"),
            models.Index(fields=["grain", "at"], name="observations_by_age"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(until__gte=F("at")), name="an_observation_ends_after_it_begins"),
            models.CheckConstraint(condition=Q(grain__in=words(Grain)), name="an_observation_grain_is_known"),
            models.CheckConstraint(condition=Q(status__in=words(Status)), name="an_observation_status_is_known"),
            models.CheckConstraint(condition=Q(audits__gte=1), name="an_observation_is_of_an_audit"),
        ]

    def __str__(self) -> str:
        return f"{self.status} of pipeline {self.pipeline_id} at {self.at.isoformat()}"


class Upkeep(models.Model):
    """When a chore of the sweep was last done, so that of many sweeps one does it; or a part last reached. `name`: which."""

    name = models.CharField(max_length=40, primary_key=True)
    done_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} at {self.done_at.isoformat()}"
