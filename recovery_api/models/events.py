"""The timeline: who or what did which step, when, on which evidence. The database makes it append-only."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from recovery_api.domain.events import EventKind
from recovery_api.domain.words import choices, words
from recovery_api.models.audits import Audit
from recovery_api.models.pipelines import Pipeline
from recovery_api.models.plans import Plan
from recovery_api.models.recoveries import Recovery


class Event(models.Model):
    """One step. `generation` null: none was involved. Never updated, never deleted: a trigger says so."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    kind = models.CharField(max_length=40, choices=choices(EventKind))
    actor = models.CharField(max_length=200)
    pipeline = models.ForeignKey(Pipeline, null=True, blank=True, on_delete=models.PROTECT, related_name="events")
    recovery = models.ForeignKey(Recovery, null=True, blank=True, on_delete=models.PROTECT, related_name="events")
    plan = models.ForeignKey(Plan, null=True, blank=True, on_delete=models.PROTECT, related_name="events")
    audit = models.ForeignKey(Audit, null=True, blank=True, on_delete=models.PROTECT, related_name="events")
    generation = models.BigIntegerField(null=True, blank=True)
    says = models.TextField()
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["pipeline", "id"], name="events_of_a_pipeline"),
            models.Index(fields=["kind", "id"], name="events_of_a_kind"),
            models.Index(fields=["actor", "id"], name="events_of_an_actor"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=words(EventKind)), name="an_event_kind_is_known"),
            models.CheckConstraint(condition=~Q(actor=""), name="an_event_has_an_actor"),
            models.CheckConstraint(condition=~Q(says=""), name="an_event_says_what_happened"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.at.isoformat()}"
