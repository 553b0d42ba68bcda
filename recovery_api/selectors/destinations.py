"""Reads of destinations, routes, and the outbox."""

from __future__ import annotations

import difflib
from datetime import datetime, timedelta
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, Q, QuerySet

from recovery_api.domain.alerts.causes import Severity
from recovery_api.domain.alerts.outbox import UNSENT, DeliveryKind, DeliveryState
from recovery_api.domain.alerts.routing import Route as Ruled
from recovery_api.domain.errors import NotFound
from recovery_api.models import Alert, Delivery, Destination, Route


def destination_list() -> QuerySet[Destination]:
    """Those in use, by name."""
    return Destination.objects.filter(retired_at__isnull=True).order_by("name")


def destination_get(name: str) -> Destination:
    """Raises: NotFound."""
    found = destination_list().filter(name=name).first()
    if found is None:
        names = list(destination_list().values_list("name", flat=True))
        nearest = difflib.get_close_matches(name, names, n=1)
        hint = f"Did you mean {nearest[0]!r}?" if nearest else f"Registered: {', '.join(names) or 'none'}."
        raise NotFound(f"Destination {name!r}", "the control database", hint)
    return found


def route_list() -> QuerySet[Route]:
    """In their order."""
    return Route.objects.select_related("destination").filter(destination__retired_at__isnull=True)


def route_get(route_id: UUID | str) -> Route:
    """Raises: NotFound."""
    try:
        found = route_list().filter(pk=route_id).first()
    except ValidationError:
        found = None
    if found is None:
        raise NotFound(f"Route {route_id}", "the control database", "List them: manage.py destinations routes.")
    return found


def routes_standing() -> list[Ruled]:
    """Those of destinations in use and turned on, for the domain's question."""
    return [
        Ruled(
            key=str(one.pk),
            position=one.position,
            destination=one.destination_id,
            least=Severity(one.least),
            causes=frozenset(one.causes),
            labels=one.labels,
            goes_on=one.goes_on,
        )
        for one in route_list().filter(destination__disabled_at__isnull=True)
    ]


def delivery_list(
    destination: Destination | None = None, alert: Alert | None = None, state: str = ""
) -> QuerySet[Delivery]:
    """Newest first; of one destination, or of the pages that an alert was on."""
    found = Delivery.objects.select_related("destination", "group").order_by("-number")
    if destination is not None:
        found = found.filter(destination=destination)
    if alert is not None:
        found = found.filter(group=alert.group_id) if alert.group_id else found.none()
    return found.filter(state=state) if state else found


def delivery_get(delivery_id: UUID | str) -> Delivery:
    """Raises: NotFound."""
    try:
        found = delivery_list().filter(message_id=delivery_id).first()
    except ValidationError:
        found = None
    if found is None:
        raise NotFound(
            f"Delivery {delivery_id}", "the control database", "List them: manage.py destinations deliveries."
        )
    return found


def deliveries_due(now: datetime) -> QuerySet[Delivery]:
    """What is to be sent now, oldest due first: of each destination and key the first that was not sent, and nothing else."""
    earlier = Delivery.objects.filter(
        destination=OuterRef("destination"),
        key=OuterRef("key"),
        number__lt=OuterRef("number"),
        state__in=[one.value for one in UNSENT],
    )
    is_mine = ~Q(state=DeliveryState.SENDING) | Q(taken_until__lte=now)
    on = Q(destination__disabled_at__isnull=True, destination__retired_at__isnull=True)
    return Delivery.objects.filter(is_mine, on, ~Exists(earlier), due_at__lte=now).order_by("due_at", "number")


def deliveries_overdue(now: datetime, bound: timedelta) -> int:
    """How many pages should have left longer than `bound` ago and reached nobody yet: neither their destination nor a spare."""
    reached = Delivery.objects.filter(
        group=OuterRef("group"), key=OuterRef("key"), sent_at__gte=OuterRef("created_at")
    ).exclude(pk=OuterRef("pk"))
    waiting = Delivery.objects.filter(
        state__in=[*(one.value for one in UNSENT), DeliveryState.REFUSED.value, DeliveryState.GIVEN_UP.value],
        kind=DeliveryKind.TRIGGER,
        group__closed_at__isnull=True,
        created_at__lt=now - bound,
    )
    return waiting.filter(~Exists(reached)).count()
