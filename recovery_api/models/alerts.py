"""Alerts: what somebody must be told of, as last evaluated, and everything that happened to each."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q

from recovery_api.domain.alerts.causes import Cause, Scope, Severity
from recovery_api.domain.alerts.quiet import Mutes, Told
from recovery_api.domain.words import choices, words
from recovery_api.models.ends import Sink, Source
from recovery_api.models.pipelines import Pipeline


class AlertGroup(models.Model):
    """Alerts of one cause at one end that go the same way: one page. `way`: the destinations, as domain.alerts.routing writes it.

    `round` counts how often it had to page anew under another key. `told_at`: when its last message was made; `told_count`: how
    many members that named. `closed_at`: when its last member resolved.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cause = models.CharField(max_length=40, choices=choices(Cause))
    end = models.CharField(max_length=300)
    way = models.CharField(max_length=500)
    severity = models.CharField(max_length=10, choices=choices(Severity))
    round = models.IntegerField(default=1)
    opened_at = models.DateTimeField()
    told_at = models.DateTimeField(null=True, blank=True)
    told_count = models.IntegerField(default=0)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["cause", "end", "way"], condition=Q(closed_at__isnull=True), name="an_open_group_is_one"
            ),
        ]

    @property
    def key(self) -> str:
        """The de-duplication key that destinations see."""
        return f"{self.id}-{self.round}"

    def __str__(self) -> str:
        return f"{self.cause} at {self.end}"


class Alert(models.Model):
    """One cause of one subject: a pipeline, a source, a sink, or none of them for the installation. `subject`: its row's key as
    text, so that one unique index covers all.

    The columns up to `reopened_count` are domain.alerts.evaluation.Held. `told`: what destinations were told last; `told_since`: from
    when on it is to be told. `acknowledged_until`: then it comes back by itself. All times are this database's.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cause = models.CharField(max_length=40, choices=choices(Cause))
    subject = models.CharField(max_length=40)
    pipeline = models.ForeignKey(Pipeline, null=True, blank=True, on_delete=models.PROTECT, related_name="alerts")
    source = models.ForeignKey(Source, null=True, blank=True, on_delete=models.PROTECT, related_name="alerts")
    sink = models.ForeignKey(Sink, null=True, blank=True, on_delete=models.PROTECT, related_name="alerts")
    end = models.CharField(max_length=300, blank=True, default="")
    severity = models.CharField(max_length=10, choices=choices(Severity))
    number = models.BigIntegerField(default=0)
    says = models.TextField(blank=True, default="")
    evidence = models.CharField(max_length=200, blank=True, default="")
    since = models.DateTimeField()
    opened_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    observed_at = models.DateTimeField()
    level_severity = models.CharField(max_length=10, choices=choices(Severity))
    level_number = models.BigIntegerField(default=0)
    clear_at = models.DateTimeField(null=True, blank=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    reopened_count = models.IntegerField(default=0)
    first_opened_at = models.DateTimeField()
    told = models.CharField(max_length=10, choices=choices(Told), default=Told.NOTHING.value)
    told_since = models.DateTimeField()
    group = models.ForeignKey(AlertGroup, null=True, blank=True, on_delete=models.SET_NULL, related_name="alerts")
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_until = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=200, blank=True, default="")
    acknowledged_note = models.TextField(blank=True, default="")
    muted_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at"]
        indexes = [
            models.Index(fields=["pipeline", "-opened_at"], name="alerts_of_a_pipeline"),
            models.Index(fields=["-resolved_at"], name="alerts_by_their_end"),
            models.Index(fields=["group"], condition=Q(resolved_at__isnull=True), name="open_alerts_of_a_group"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["cause", "subject"],
                condition=Q(resolved_at__isnull=True),
                name="a_cause_has_one_open_alert_a_subject",
            ),
            models.CheckConstraint(condition=Q(cause__in=words(Cause)), name="an_alerts_cause_is_known"),
            models.CheckConstraint(condition=Q(severity__in=words(Severity)), name="an_alerts_severity_is_known"),
            models.CheckConstraint(condition=Q(told__in=words(Told)), name="what_was_told_of_an_alert_is_known"),
            models.CheckConstraint(
                condition=Q(pipeline__isnull=False, source__isnull=True, sink__isnull=True)
                | Q(pipeline__isnull=True, source__isnull=False, sink__isnull=True)
                | Q(pipeline__isnull=True, source__isnull=True, sink__isnull=False)
                | Q(pipeline__isnull=True, source__isnull=True, sink__isnull=True, subject=Scope.INSTALLATION.value),
                name="an_alert_is_about_one_thing",
            ),
            models.CheckConstraint(
                condition=Q(acknowledged_at__isnull=True, acknowledged_until__isnull=True)
                | Q(acknowledged_at__isnull=False, acknowledged_until__gt=F("acknowledged_at"))
                & ~Q(acknowledged_note=""),
                name="an_acknowledgement_has_a_note_and_an_end",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cause} {self.subject}"


class AlertLine(models.Model):
    """One line of an alert's history. `actor`: who, where a person did it; the pager otherwise. `change`: a word of Change or
    Silence. `after_event`: the number of the newest event when it was written, by which timelines have their order."""

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="lines")
    at = models.DateTimeField()
    change = models.CharField(max_length=20)
    actor = models.CharField(max_length=200)
    says = models.TextField(blank=True, default="")
    evidence = models.CharField(max_length=200, blank=True, default="")
    after_event = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["at", "id"]
        indexes = [
            models.Index(fields=["alert", "at"], name="lines_of_an_alert"),
            models.Index(fields=["after_event", "id"], name="lines_of_alerts_in_order"),
        ]

    def __str__(self) -> str:
        return f"{self.change} {self.at.isoformat()}"


class Mute(models.Model):
    """What is told to nobody until its end. `value`: a name of a pipeline, source or sink, or `name=value` of a label.

    `cause` "": every one. `ended_at`: somebody ended it sooner.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    by = models.CharField(max_length=10, choices=choices(Mutes))
    value = models.CharField(max_length=300)
    cause = models.CharField(max_length=40, blank=True, default="")
    note = models.TextField()
    until = models.DateTimeField()
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        ordering = ["until"]
        constraints = [
            models.CheckConstraint(condition=Q(by__in=words(Mutes)), name="a_mute_names_a_known_thing"),
            models.CheckConstraint(condition=Q(until__gt=F("created_at")), name="a_mute_has_an_end"),
            models.CheckConstraint(condition=~Q(note="") & ~Q(value=""), name="a_mute_says_what_and_why"),
        ]

    def __str__(self) -> str:
        return f"mute of {self.by} {self.value}"
