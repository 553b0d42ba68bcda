"""What alerts, destinations and deliveries look like, for the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.domain.alerts.causes import Cause, Severity
from recovery_api.domain.alerts.outbox import DeliveryKind, DeliveryState
from recovery_api.domain.alerts.quiet import Mutes, Told
from recovery_api.domain.alerts.shapes.base import Shape
from recovery_api.domain.words import words
from recovery_api.serializers.members import Anything, Moment, WideField, maybe, texts, things

ALERT_STATES = ["open", "acknowledged", "muted", "resolved"]
CAUSES, SEVERITIES, DELIVERY_STATES = words(Cause), words(Severity), words(DeliveryState)


class AlertShape(serializers.Serializer):
    alert = serializers.UUIDField()
    cause = serializers.ChoiceField(CAUSES)
    label = serializers.CharField(help_text="What a person calls the cause.")
    about = serializers.CharField(help_text="The pipeline, source or sink; Fencepost for the installation.")
    pipeline = maybe(serializers.CharField)
    severity = serializers.ChoiceField(SEVERITIES)
    state = serializers.ChoiceField(ALERT_STATES)
    says = serializers.CharField(allow_blank=True)
    number = WideField(help_text="Events, bytes; 0: the cause has no number.")
    evidence = maybe(serializers.CharField, help_text="What it rests on: audit:<id>, recovery:<id>, …")
    end = maybe(serializers.CharField, help_text="To which end it is put down; alerts of one end are one page.")
    since = Moment(help_text="From when on it is so, as far as is known.")
    opened_at = Moment()
    first_opened_at = Moment()
    seen_at = Moment(help_text="When it was last observed to be so.")
    observed_says = serializers.CharField(allow_blank=True, help_text="That nothing newer is known of it.")
    reopened_count = WideField()
    resolved_at = maybe(Moment)
    acknowledged_by = maybe(serializers.CharField)
    acknowledged_note = maybe(serializers.CharField)
    acknowledged_until = maybe(Moment, help_text="Then it comes back by itself.")
    muted_until = maybe(Moment)
    told = serializers.ChoiceField(words(Told), help_text="What destinations were told last.")
    group = maybe(serializers.UUIDField, help_text="The page that it is on.")


class AlertLineShape(serializers.Serializer):
    at = Moment()
    change = serializers.CharField()
    actor = serializers.CharField()
    says = serializers.CharField(allow_blank=True)
    evidence = maybe(serializers.CharField)


class AlertWholeShape(AlertShape):
    means = serializers.CharField()
    opens = serializers.CharField()
    resolves = serializers.CharField()
    runbook = serializers.CharField(
        help_text="The address of the alert's runbook, filled in with the pipeline's values."
    )
    history = AlertLineShape(many=True)


class MuteShape(serializers.Serializer):
    mute = serializers.UUIDField()
    by = serializers.ChoiceField(words(Mutes))
    value = serializers.CharField()
    cause = maybe(serializers.CharField)
    says = serializers.CharField()
    note = serializers.CharField()
    until = Moment()
    created_at = Moment()
    created_by = serializers.CharField()
    ended_at = maybe(Moment)
    ended_by = maybe(serializers.CharField)


class DestinationShape(serializers.Serializer):
    name = serializers.CharField()
    shape = serializers.ChoiceField(words(Shape))
    address = serializers.CharField()
    secret = maybe(serializers.CharField, help_text="A reference, never the secret.")
    is_on = serializers.BooleanField()
    disabled_at = maybe(Moment)
    disabled_says = maybe(serializers.CharField)
    created_at = Moment()
    created_by = serializers.CharField()


class RouteShape(serializers.Serializer):
    route = serializers.UUIDField()
    position = WideField()
    destination = serializers.CharField()
    least = serializers.ChoiceField(SEVERITIES)
    causes = texts("Empty: every one.")
    labels = Anything()
    goes_on = serializers.BooleanField(help_text="The next route that fits is told, too.")
    says = serializers.CharField()


class DeliveryShape(serializers.Serializer):
    delivery = serializers.UUIDField(help_text="Sent with every attempt.")
    number = WideField()
    destination = serializers.CharField()
    key = serializers.CharField(help_text="The de-duplication key.")
    kind = serializers.ChoiceField(words(DeliveryKind))
    state = serializers.ChoiceField(DELIVERY_STATES)
    title = serializers.CharField()
    count = WideField(help_text="How many alerts it tells of.")
    created_at = Moment()
    due_since = Moment()
    due_at = maybe(Moment)
    sent_at = maybe(Moment)
    is_late = serializers.BooleanField()
    attempts = serializers.IntegerField()
    answers = things("Each with at, attempt, status, problem, excerpt, took_seconds.")
    spare_at = maybe(Moment, help_text="When the next route was paged because this one failed.")
    superseded_by = maybe(WideField, help_text="The number of the message that took its place.")


class RemovedRouteShape(serializers.Serializer):
    removed = serializers.UUIDField()
