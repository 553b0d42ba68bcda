"""A freeze: nothing is sent, for one pipeline or for all of them, until somebody lifts it."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from recovery_api.models.pipelines import Pipeline


class Freeze(models.Model):
    """`pipeline` null: every pipeline. It stands while `lifted_at` is null; a lifted one stays, as what happened."""

    pipeline = models.ForeignKey(Pipeline, null=True, blank=True, on_delete=models.PROTECT, related_name="freezes")
    reason = models.TextField()
    frozen_by = models.CharField(max_length=200)
    frozen_at = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.CharField(max_length=200, blank=True, default="")
    lifted_because = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["-frozen_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=~Q(reason=""), name="a_freeze_has_a_reason"),
            models.CheckConstraint(
                condition=Q(lifted_at__isnull=True) | ~Q(lifted_because=""), name="a_lifted_freeze_says_why"
            ),
            models.UniqueConstraint(
                fields=["pipeline"],
                condition=Q(lifted_at__isnull=True, pipeline__isnull=False),
                name="a_pipeline_is_frozen_once",
            ),
            models.UniqueConstraint(
                models.Value(1),
                condition=Q(lifted_at__isnull=True, pipeline__isnull=True),
                name="everything_is_frozen_once",
            ),
        ]

    def __str__(self) -> str:
        return f"freeze of {self.pipeline.name if self.pipeline else 'everything'}"

    @property
    def what(self) -> str:
        """What it holds, at the end of a sentence."""
        return "every pipeline" if self.pipeline is None else f"pipeline {self.pipeline.name}"
