"""A pipeline: one source, one record, one delivery (mostly the same sink), and the keys it owes."""

from __future__ import annotations

from django.db import models

from recovery_api.models.ends import Sink, Source


class Pipeline(models.Model):
    """`sink` is the record's end: what was accepted is read there. `delivery` is the end that is fired into; null: the
    record itself, as one end.

    `scope` null owes every key; a list owes just those. An empty list is refused: it would owe nothing unnoticed.
    A retired pipeline is out of use and gives its name and its sinks free; its history stays.
    """

    name = models.CharField(max_length=200)
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="pipelines")
    sink = models.ForeignKey(Sink, on_delete=models.PROTECT, related_name="pipelines")
    delivery = models.ForeignKey(Sink, null=True, blank=True, on_delete=models.PROTECT, related_name="pipelines_fed")
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
            models.UniqueConstraint(
                fields=["delivery"],
                condition=models.Q(retired_at__isnull=True),
                name="a_delivery_serves_one_pipeline",
            ),
            models.CheckConstraint(
                condition=models.Q(delivery__isnull=True) | ~models.Q(delivery=models.F("sink")),
                name="a_delivery_of_its_own_is_not_the_record",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def fired_into(self) -> Sink:
        """The end that a recovery would send to."""
        return self.sink if self.delivery is None else self.delivery
