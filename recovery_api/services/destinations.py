"""Destinations and routes, as people change them; a test, and a delivery that is sent again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Max

from recovery_api.domain.alerts.addresses import url_check
from recovery_api.domain.alerts.causes import Cause, Severity
from recovery_api.domain.alerts.messages import Message
from recovery_api.domain.alerts.outbox import UNSENT, DeliveryKind
from recovery_api.domain.alerts.shapes.base import Shape
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.labels import label_parse
from recovery_api.domain.words import words
from recovery_api.models import Delivery, Destination, EventKind, Route
from recovery_api.selectors.versions import version_check
from recovery_api.services.constraints import constraints_mapped
from recovery_api.services.deliveries import waiting_refuse
from recovery_api.services.ends import name_check
from recovery_api.services.events import event_append

REFERENCES = ("env:", "file:")


def destination_add(
    name: str,
    shape: str,
    *,
    address: str = "",
    secret: str = "",
    is_routed: bool = True,
    actor: str,
    now: datetime,
) -> Destination:
    """A destination; `is_routed`: with a route at the end that takes everything.

    Raises: BadInput for a shape, an address or a secret that is none. A secret is a reference, never its text.
    """
    checked = _checked(name, shape, address, secret)
    with constraints_mapped(f"adding destination {name}"), transaction.atomic():
        row: Destination = Destination.objects.create(name=name, created_at=now, created_by=actor, **checked)
        _tell(f"Destination {name} ({Shape(shape).label}) was added.", actor, now, {"destination": name, **checked})
        if is_routed:
            route_add(row, actor=actor, now=now)
    return row


def destination_change(
    destination: Destination,
    *,
    address: str | None = None,
    secret: str | None = None,
    read: frozenset[str] | None = None,
    actor: str,
    now: datetime,
) -> Destination:
    """The destination with another address or secret. What waits is sent there. `read`: the versions that this is a change
    of (selectors.versions); None: of any. Raises: BadInput; Outdated."""
    with transaction.atomic():
        locked = Destination.objects.select_for_update().get(pk=destination.pk)
        version_check(locked, read)
        given = {"address": locked.address if address is None else address}
        given["secret"] = locked.secret if secret is None else secret
        checked = _checked(locked.name, locked.shape, given["address"], given["secret"])
        Destination.objects.filter(pk=destination.pk, retired_at__isnull=True).update(**checked)
        _tell(f"Destination {destination.name} was changed.", actor, now, {"destination": destination.name, **checked})
    destination.address, destination.secret = checked["address"], checked["secret"]
    return destination


def destination_turn(destination: Destination, *, is_on: bool, actor: str, now: datetime) -> Destination:
    """The destination, turned on or off. Off, what waits for it goes by the next route."""
    with transaction.atomic():
        says = "" if is_on else f"Turned off by {actor}."
        Destination.objects.filter(pk=destination.pk).update(disabled_at=None if is_on else now, disabled_says=says)
        destination.disabled_at, destination.disabled_says = None if is_on else now, says
        if not is_on:
            waiting_refuse(destination, "was turned off", now)
        word = "on" if is_on else "off"
        _tell(f"Destination {destination.name} was turned {word}.", actor, now, {"destination": destination.name})
    return destination


def destination_retire(destination: Destination, *, actor: str, now: datetime) -> None:
    """Takes it out of use, with its routes. Its deliveries stay to be seen."""
    with transaction.atomic():
        Destination.objects.filter(pk=destination.pk).update(retired_at=now)
        waiting_refuse(destination, "was taken out of use", now)
        destination.routes.all().delete()
        _tell(f"Destination {destination.name} was taken out of use.", actor, now, {"destination": destination.name})


def route_add(
    destination: Destination,
    *,
    least: str = Severity.WARNING.value,
    causes: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    goes_on: bool = False,
    position: int | None = None,
    actor: str,
    now: datetime,
) -> Route:
    """A route, after all others unless it has a position. Raises: BadInput."""
    if least not in words(Severity):
        raise BadInput("least", f"{least!r} is no severity", f"One of: {', '.join(words(Severity))}.")
    for cause in causes:
        if cause not in words(Cause):
            raise BadInput("causes", f"{cause!r} is no cause", f"One of: {', '.join(words(Cause))}.")
    checked = dict(label_parse(f"{name}={value}", "labels") for name, value in (labels or {}).items())
    with transaction.atomic():
        if position is None:
            position = (Route.objects.aggregate(last=Max("position"))["last"] or 0) + 10
        row: Route = Route.objects.create(
            destination=destination,
            position=position,
            least=least,
            causes=sorted(set(causes)),
            labels=checked,
            goes_on=goes_on,
            created_at=now,
            created_by=actor,
        )
        _tell(f"A route to {destination.name} was added: {route_says(row)}.", actor, now, {"route": str(row.pk)})
    return row


def route_remove(route: Route, *, actor: str, now: datetime) -> None:
    with transaction.atomic():
        says = f"The route to {route.destination.name} was removed: {route_says(route)}."
        route.delete()
        _tell(says, actor, now, {"destination": route.destination.name})


def route_says(route: Route) -> str:
    """What it takes."""
    what = ", ".join(Cause(one).label for one in route.causes if one in words(Cause)) or "every cause"
    labels = " and ".join(f"{name}={value}" for name, value in sorted(route.labels.items()))
    more = ", and the next route as well" if route.goes_on else ""
    return f"{what} of severity {route.least} or worse{f', with {labels}' if labels else ''}{more}"


def destination_test(destination: Destination, *, actor: str, now: datetime) -> Delivery:
    """A message that says that it is a test. Raises: Refused where the destination is off."""
    if destination.disabled_at is not None:
        raise Refused(f"testing {destination.name}", "it is turned off", "Turn it on first.")
    id_ = uuid4()
    message = Message(
        id=str(id_),
        key=f"test-{id_}",
        kind=DeliveryKind.TEST,
        cause="test",
        severity=Severity.WARNING,
        end=destination.name,
        count=0,
        members=(),
        since=now,
        due_since=now,
        note=f"{actor} asked for it.",
    )
    return Delivery.objects.create(
        message_id=id_,
        destination=destination,
        key=message.key,
        kind=DeliveryKind.TEST,
        message=message.as_row(),
        created_at=now,
        created_by=actor,
        due_since=now,
        due_at=now,
    )


def delivery_send_again(delivery: Delivery, *, actor: str, now: datetime) -> Delivery:
    """The same message with the same id, due at once; one that waits does so no longer.

    Raises: Refused where a newer message of its key took its place: what it says is not so any more.
    """
    action = f"sending message {delivery.message_id} again"
    with transaction.atomic():
        row = Delivery.objects.select_for_update(of=("self",)).select_related("destination").get(pk=delivery.pk)
        if row.destination.disabled_at is not None or row.destination.retired_at is not None:
            raise Refused(action, f"{row.destination.name} is turned off", "Turn it on first.")
        if Delivery.objects.filter(destination=row.destination, key=row.key, number__gt=row.pk).exists():
            raise Refused(action, "a newer message of the same page took its place", "Send that one again.")
        if row.state == "sending":
            raise Refused(action, "it is being sent", "Look again in a moment.")
        row.state, row.due_at = "waiting", now
        if row.state not in UNSENT or row.attempts:
            row.attempts = 0
        row.created_at = now  # it is tried for a day from now on
        row.save(update_fields=["state", "due_at", "attempts", "created_at"])
        _tell(
            f"Message {row.message_id} is sent to {row.destination.name} again.",
            actor,
            now,
            {"delivery": str(row.message_id)},
        )
    return row


def _checked(name: str, shape: str, address: str, secret: str) -> dict[str, Any]:
    name_check("destination", name)
    if shape not in words(Shape):
        raise BadInput("shape", f"{shape!r} is none", f"One of: {', '.join(words(Shape))}.")
    row = Shape(shape)
    given = address.strip() or row.default_address
    if not given:
        raise BadInput("address", "is missing", row.address_says)
    if row is Shape.EMAIL:
        _emails_check(given)
    elif not given.startswith(REFERENCES):
        if row is Shape.SLACK:
            raise BadInput(
                "address", "is a secret, and would be kept in plain text", "Give env:FENCEPOST_END_NAME or file:/path."
            )
        url_check(given, "address")
    if secret and not row.secret_says:
        raise BadInput("secret", f"{row.label} has none", "Leave it out.")
    if secret and not secret.startswith(REFERENCES):
        raise BadInput(
            "secret", "is not a reference", "Give env:FENCEPOST_END_NAME or file:/path; a secret is never stored."
        )
    if row.needs_secret and not secret:
        raise BadInput("secret", "is missing", f"{row.secret_says} Give env:FENCEPOST_END_NAME or file:/path.")
    return {"shape": shape, "address": given, "secret": secret}


def _emails_check(address: str) -> None:
    if address.startswith(REFERENCES):
        return
    for one in address.split(","):
        try:
            validate_email(one.strip())
        except ValidationError as error:
            raise BadInput(
                "address", f"{one.strip()!r} is no e-mail address", "Write them with commas between."
            ) from error


def _tell(says: str, actor: str, now: datetime, data: dict[str, Any]) -> None:
    event_append(EventKind.ALERTING_CHANGED, actor=actor, now=now, says=says, data=data)
