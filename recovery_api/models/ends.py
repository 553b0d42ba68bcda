"""The two ends of a pipeline, as registered. Their credentials are references inside `options`, never values."""

from __future__ import annotations

from django.db import models


class End(models.Model):
    """What source and sink share. `report` is the last connection test, as the worker found it.

    A retired end is out of use and gives its name free; its row stays for the history that points at it.
    """

    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=100)
    options = models.JSONField(default=dict)
    report = models.JSONField(null=True, blank=True)
    tested_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    updated_at = models.DateTimeField(null=True, blank=True)
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name


class Source(End):
    """The authority of a committed history."""

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(retired_at__isnull=True), name="a_source_name_is_registered_once"
            ),
            models.CheckConstraint(condition=~models.Q(name=""), name="a_source_has_a_name"),
            models.CheckConstraint(
                condition=models.Q(report__isnull=True, tested_at__isnull=True)
                | models.Q(report__isnull=False, tested_at__isnull=False),
                name="a_source_report_has_its_time",
            ),
        ]


class Sink(End):
    """The authority whose acceptance is judged, and what it last said about itself.

    `said_*` is a memory, never the truth: recovery_api.domain.restores compares it with the sink. `restored_at` set:
    the sink was found behind this memory; nothing fires until its counter passed `counter_floor` and a full audit ran.
    `drill_every_hours` null: drilled only when asked. `drill_passed_at`: when every drill that applies last passed.
    """

    capability = models.JSONField(null=True, blank=True)
    said_identity = models.TextField(null=True, blank=True)
    said_counter = models.BigIntegerField(null=True, blank=True)
    said_fence = models.BigIntegerField(null=True, blank=True)
    said_last_entry = models.BigIntegerField(null=True, blank=True)
    said_at = models.DateTimeField(null=True, blank=True)
    restored_at = models.DateTimeField(null=True, blank=True)
    restored_says = models.TextField(blank=True, default="")
    counter_floor = models.BigIntegerField(null=True, blank=True)
    drill_every_hours = models.PositiveIntegerField(null=True, blank=True)
    drill_passed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(retired_at__isnull=True), name="a_sink_name_is_registered_once"
            ),
            models.CheckConstraint(condition=~models.Q(name=""), name="a_sink_has_a_name"),
            models.CheckConstraint(
                condition=models.Q(report__isnull=True, tested_at__isnull=True)
                | models.Q(report__isnull=False, tested_at__isnull=False),
                name="a_sink_report_has_its_time",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    said_at__isnull=True,
                    said_identity__isnull=True,
                    said_counter__isnull=True,
                    said_fence__isnull=True,
                )
                | models.Q(said_at__isnull=False, said_identity__isnull=False)
                & (
                    models.Q(said_counter__isnull=False, said_fence__isnull=False)
                    | models.Q(said_counter__isnull=True, said_fence__isnull=True)
                ),
                name="what_a_sink_said_is_remembered_whole",
            ),
            models.CheckConstraint(
                condition=models.Q(restored_at__isnull=True) | models.Q(counter_floor__isnull=False),
                name="a_restored_sink_has_a_counter_floor",
            ),
            models.CheckConstraint(
                condition=models.Q(drill_every_hours__isnull=True) | models.Q(drill_every_hours__gt=0),
                name="a_drill_schedule_is_positive",
            ),
        ]
