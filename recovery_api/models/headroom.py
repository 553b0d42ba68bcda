"""A pipeline's headroom as it was last worked out, so that a fleet can be sorted by it without working out each."""

from __future__ import annotations

from django.db import models

from recovery_api.domain.headroom.live import Standing
from recovery_api.models.pipelines import Pipeline


class HeadroomFigure(models.Model):
    """One row a pipeline: a memory, never the truth. It counts from `worked_out_at` until `holds_until`, as long as nothing
    happened to the pipeline since: `event_id` is its newest event then, 0 where it had none.
    """

    pipeline = models.OneToOneField(
        Pipeline, primary_key=True, on_delete=models.CASCADE, related_name="headroom_figure"
    )
    standing = models.CharField(max_length=10)
    decide_by = models.DateTimeField(null=True, blank=True)
    event_id = models.BigIntegerField()
    worked_out_at = models.DateTimeField()
    holds_until = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(standing__in=[one.value for one in Standing]), name="a_headroom_is_a_known_word"
            ),
        ]

    def __str__(self) -> str:
        return f"headroom of {self.pipeline_id}"
