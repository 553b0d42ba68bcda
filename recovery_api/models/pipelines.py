"""A pipeline: one source, one sink, and the keys it owes."""

from __future__ import annotations

from django.db import models

from recovery_api.models.ends import Sink, Source


class Pipeline(models.Model):
    """`scope` null owes every key; a list owes just those. An empty list is refused: it would owe nothing unnoticed.

    A retired pipeline is out of use and gives its name and its sink free; its history stays.
    """

    name = models.CharField(max_length=200)
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="pipelines")
    sink = models.ForeignKey(Sink, on_delete=models.PROTECT, related_name="pipelines")
    scope = models.JSONField(null=True, blank=True)
    options = models.JSONField(default=dict)
    requires_other_approver = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(retired_at__isnull=True), name="a_pipeline_name_is_registered_once"
            ),
            models.CheckConstraint(condition=~models.Q(name=""), name="a_pipeline_has_a_name"),
            models.CheckConstraint(
                condition=models.Q(scope__isnull=True) | ~models.Q(scope=[]), name="a_scope_names_at_least_one_key"
            ),
            models.UniqueConstraint(
                fields=["sink"], condition=models.Q(retired_at__isnull=True), name="a_sink_serves_one_pipeline"
            ),
        ]

    def __str__(self) -> str:
        return self.name
