"""An incident: what somebody gave a name. What happened in it is the timeline's; here is what people decided of it."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from recovery_api.domain.alerts.causes import Severity
from recovery_api.domain.incidents import IncidentState
from recovery_api.domain.words import choices, words
from recovery_api.models.pipelines import Pipeline


class Incident(models.Model):
    """`noticed_at`: when somebody, or an alert, first said so. `commander` empty: nobody is named. `cause`: written at its end.
    `alerts`: the keys of the alerts that it was opened from, or that were added to it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    title = models.CharField(max_length=200)
    state = models.CharField(max_length=20, choices=choices(IncidentState), default=IncidentState.OPEN)
    severity = models.CharField(max_length=20, choices=choices(Severity), default=Severity.ERROR)
    commander = models.CharField(max_length=200, blank=True, default="")
    cause = models.TextField(blank=True, default="")
    alerts = models.JSONField(default=list)
    pipelines = models.ManyToManyField(Pipeline, related_name="incidents")
    noticed_at = models.DateTimeField()
    opened_at = models.DateTimeField()
    opened_by = models.CharField(max_length=200)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at", "-id"]
        indexes = [models.Index(fields=["-opened_at", "-id"], name="incidents_by_age")]
        constraints = [
            models.CheckConstraint(condition=~Q(title=""), name="an_incident_has_a_title"),
            models.CheckConstraint(condition=Q(state__in=words(IncidentState)), name="an_incident_state_is_known"),
            models.CheckConstraint(condition=Q(severity__in=words(Severity)), name="an_incident_severity_is_known"),
            models.CheckConstraint(
                condition=Q(state=IncidentState.CLOSED, closed_at__isnull=False)
                | (~Q(state=IncidentState.CLOSED) & Q(closed_at__isnull=True)),
                name="a_closed_incident_says_when",
            ),
            models.CheckConstraint(
                condition=~Q(state=IncidentState.CLOSED) | ~Q(cause=""), name="a_closed_incident_has_a_cause"
            ),
        ]

    def __str__(self) -> str:
        return f"incident {self.title}"
