"""An acknowledged omission: a coordinate somebody took out of the obligation on purpose (a dead letter)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from recovery_api.models.pipelines import Pipeline


class AcknowledgedOmission(models.Model):
    """Position and ordinal as held. A withdrawn one is kept, and the coordinate is owed again."""

    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="omissions")
    lane = models.TextField()
    position = models.BigIntegerField()
    ordinal = models.BigIntegerField(default=0)
    reason = models.TextField()
    acknowledged_by = models.CharField(max_length=200)
    acknowledged_at = models.DateTimeField()
    withdrawn_by = models.CharField(max_length=200, blank=True, default="")
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pipeline", "lane", "position", "ordinal"]
        constraints = [
            models.UniqueConstraint(
                fields=["pipeline", "lane", "position", "ordinal"],
                condition=Q(withdrawn_at__isnull=True),
                name="a_coordinate_is_acknowledged_once",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="an_omission_has_a_reason"),
        ]

    def __str__(self) -> str:
        return f"omission {self.lane}:{self.position}:{self.ordinal}"
