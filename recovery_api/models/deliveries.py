"""Destinations of alerts and the messages sent to them. A message is written in the same transaction as the change it tells."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from recovery_api.domain.alerts.causes import Severity
from recovery_api.domain.alerts.outbox import UNSENT, DeliveryKind, DeliveryState
from recovery_api.domain.alerts.shapes.base import Shape
from recovery_api.domain.words import choices, words
from recovery_api.models.alerts import AlertGroup


class Destination(models.Model):
    """Where messages go. `address`: an address that may be shown, or a reference to one; `secret`: a reference, or "".

    What a reference holds is read by the pager alone. `disabled_at`: nothing is sent there; `disabled_says`: why. A retired one
    gives its name free; its deliveries stay.
    """

    name = models.CharField(max_length=100)
    shape = models.CharField(max_length=20, choices=choices(Shape))
    address = models.TextField(blank=True, default="")
    secret = models.TextField(blank=True, default="")
    disabled_at = models.DateTimeField(null=True, blank=True)
    disabled_says = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                condition=Q(retired_at__isnull=True),
                name="a_destination_name_is_registered_once",
            ),
            models.CheckConstraint(condition=~Q(name=""), name="a_destination_has_a_name"),
            models.CheckConstraint(condition=Q(shape__in=words(Shape)), name="a_destinations_shape_is_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Route(models.Model):
    """Which alerts a destination is told of (domain.alerts.routing.Route)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    position = models.IntegerField()
    destination = models.ForeignKey(Destination, on_delete=models.PROTECT, related_name="routes")
    least = models.CharField(max_length=10, choices=choices(Severity), default=Severity.WARNING.value)
    causes = models.JSONField(default=list)
    labels = models.JSONField(default=dict)
    goes_on = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)

    class Meta:
        ordering = ["position", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(least__in=words(Severity)), name="a_routes_severity_is_known"),
        ]

    def __str__(self) -> str:
        return f"route {self.position} to {self.destination_id}"


class Delivery(models.Model):
    """One message to one destination. `message_id` goes with it in every attempt. `key`: the de-duplication key. `number`: in which order
    they were made. `message`: domain.alerts.messages.Message, without any secret.

    `due_since`: when it should have left. `taken_by`, `taken_until`: the pager that sends it. `answers`: of the last attempts, each with
    its time and what was answered. `spare_at`: when the next route was paged because this one failed. `superseded_by`: the number of
    the message that took its place.
    """

    message_id = models.UUIDField(default=uuid.uuid4, editable=False, unique=True)
    number = models.BigAutoField(primary_key=True)
    destination = models.ForeignKey(Destination, on_delete=models.PROTECT, related_name="deliveries")
    group = models.ForeignKey(AlertGroup, null=True, blank=True, on_delete=models.CASCADE, related_name="deliveries")
    key = models.CharField(max_length=100)
    kind = models.CharField(max_length=20, choices=choices(DeliveryKind))
    state = models.CharField(max_length=20, choices=choices(DeliveryState), default=DeliveryState.WAITING.value)
    message = models.JSONField()
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    due_since = models.DateTimeField()
    due_at = models.DateTimeField(null=True, blank=True)
    attempts = models.IntegerField(default=0)
    taken_by = models.CharField(max_length=200, blank=True, default="")
    taken_until = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    is_late = models.BooleanField(default=False)
    answers = models.JSONField(default=list)
    spare_at = models.DateTimeField(null=True, blank=True)
    superseded_by = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["-number"]
        indexes = [
            models.Index(
                fields=["destination", "due_at", "number"],
                condition=Q(due_at__isnull=False),
                name="deliveries_that_are_due",
            ),
            models.Index(fields=["destination", "key", "number"], name="deliveries_of_a_key"),
            models.Index(fields=["group", "number"], name="deliveries_of_a_group"),
            models.Index(fields=["created_at"], name="deliveries_by_age"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=words(DeliveryKind)), name="a_deliverys_kind_is_known"),
            models.CheckConstraint(condition=Q(state__in=words(DeliveryState)), name="a_deliverys_state_is_known"),
            models.CheckConstraint(
                condition=Q(due_at__isnull=False) | ~Q(state__in=[one.value for one in UNSENT]),
                name="a_delivery_that_waits_is_due_some_time",
            ),
        ]

    def __str__(self) -> str:
        return f"delivery {self.number}"
