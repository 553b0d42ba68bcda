"""A schedule: when a pipeline is audited by itself next, and which frontiers its audits pinned."""

from __future__ import annotations

from django.db import models

from recovery_api.models.pipelines import Pipeline


class Schedule(models.Model):
    """One row a pipeline. All times are the control database's; domain.schedules says what is made of them.

    `next_due_at` null: it is not audited by itself. `due_at`: the oldest due time that was asked for and that no reading
    has answered yet; null: none. `last_due_at`: the due time that was asked for last. `next_full_at`: the first audit
    from then on is made in full. `pins`: frontiers and when they were pinned, oldest first. `waiting`: lane -> the
    lowest event not accepted when last audited, and since when it is known to wait; `waiting_since`: the earliest of
    these.
    """

    pipeline = models.OneToOneField(Pipeline, primary_key=True, on_delete=models.PROTECT, related_name="schedule")
    next_due_at = models.DateTimeField(null=True, blank=True)
    next_full_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True, blank=True)
    last_due_at = models.DateTimeField(null=True, blank=True)
    pins = models.JSONField(default=list)
    waiting = models.JSONField(default=dict)
    waiting_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["next_due_at"], name="schedules_by_due_time")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(due_at__isnull=True) | models.Q(last_due_at__gte=models.F("due_at")),
                name="what_is_unanswered_was_asked_for",
            ),
        ]

    def __str__(self) -> str:
        return f"schedule of {self.pipeline_id}"
