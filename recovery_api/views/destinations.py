"""Destinations, routes and the outbox by REST."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.alert_rows import delivery_as_row, destination_as_row, route_as_row
from recovery_api.domain.alerts.causes import Severity
from recovery_api.domain.alerts.outbox import DeliveryState
from recovery_api.domain.alerts.shapes.base import Shape
from recovery_api.domain.words import words
from recovery_api.schema import operation
from recovery_api.selectors.alerts import alert_get
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.destinations import (
    delivery_get,
    delivery_list,
    destination_get,
    destination_list,
    route_get,
    route_list,
)
from recovery_api.serializers.alerts import DeliveryShape, DestinationShape, RemovedRouteShape, RouteShape
from recovery_api.serializers.fields import Body, Choice, Flag, Name, OptionsField, Text, TextList, Whole
from recovery_api.serializers.shapes import page_of
from recovery_api.services import destinations as services
from recovery_api.views.base import ApiView, answer, referenced, segment
from recovery_api.views.conditional import tagged, versions_read
from recovery_api.views.idempotent import idempotent
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor

SECRET = "A reference: env:FENCEPOST_END_NAME or file:/path. It is resolved by the pager alone."  # nosec B105 # no secret


class DestinationBody(Body):
    name = Name(help_text="What people call it.")
    shape = Choice(words(Shape))
    address = Text(required=False, help_text="Where to; a reference where it is a secret (Slack).")
    secret = Text(required=False, help_text=SECRET)
    is_routed = Flag(required=False, help_text="true, unless said: with a route at the end that takes everything.")


class DestinationChangeBody(Body):
    address = Text(required=False, help_text="Where to.")
    secret = Text(required=False, help_text=SECRET)


class RouteBody(Body):
    destination = Name(help_text="Who is told.")
    position = Whole(required=False, min_value=0, max_value=1_000_000, help_text="At the end, unless said.")
    least = Choice(words(Severity), required=False, help_text="The least severity that it takes; warning, unless said.")
    causes = TextList(required=False, help_text="Every one, unless said.")
    labels = OptionsField(required=False, help_text="All of them must be the pipeline's.")
    goes_on = Flag(required=False, help_text="true: the next route that fits is told, too.")


class DeliveriesQuery(PageQuery):
    destination = Name(help_text="Only to this one.")
    alert = Text(help_text="Only of the pages that this alert was on.")
    state = Choice(words(DeliveryState))


class Destinations(ApiView):
    query_class = PageQuery

    @operation(
        "list_destinations",
        "Destinations, by name.",
        answer=page_of(DestinationShape),
        query=PageQuery,
        tag="destinations",
    )
    def get(self, request: Request) -> Response:
        return page(request, self.asked, destination_list(), ("name", "id"), destination_as_row)

    @operation(
        "add_destination",
        "Add a destination of alerts.\n\nWith a route that takes everything, after all others, unless said otherwise.",
        answer=DestinationShape,
        status=201,
        body=DestinationBody,
        request_example={"name": "on call", "shape": "pagerduty", "secret": "env:FENCEPOST_END_PAGERDUTY"},  # nosec B105 # a reference
        tag="destinations",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = DestinationBody.read(request.data)
        row = services.destination_add(
            given["name"],
            given["shape"],
            address=given.get("address", ""),
            secret=given.get("secret", ""),
            is_routed=given.get("is_routed", True),
            actor=actor(request),
            now=now_get(),
        )
        return answer(destination_as_row(row), 201, location=f"/api/v1/destinations/{segment(row.name)}")


class DestinationOne(ApiView):
    @operation(
        "show_destination", "One destination.", answer=DestinationShape, is_named=True, errors=[404], tag="destinations"
    )
    def get(self, request: Request, name: str) -> Response:
        found = destination_get(name)
        return tagged(answer(destination_as_row(found)), found)

    @operation(
        "update_destination",
        "Give a destination another address or secret. What waits is sent there.",
        answer=DestinationShape,
        body=DestinationChangeBody,
        is_named=True,
        errors=[404, 412],
        request_example={"address": "https://hooks.example/fencepost"},
        tag="destinations",
    )
    def patch(self, request: Request, name: str) -> Response:
        given, read = DestinationChangeBody.read(request.data), versions_read(request)
        row = services.destination_change(
            destination_get(name), **given, read=read, actor=actor(request), now=now_get()
        )
        return tagged(answer(destination_as_row(row)), row)


class DestinationTest(ApiView):
    @operation(
        "test_destination",
        "Send a message that says that it is a test.\n\nThe pager sends it; look at its delivery for the answer.",
        answer=DeliveryShape,
        status=201,
        is_named=True,
        errors=[404],
        tag="destinations",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        made = services.destination_test(destination_get(name), actor=actor(request), now=now_get())
        return answer(delivery_as_row(made), 201, location=f"/api/v1/deliveries/{made.message_id}")


class DestinationOn(ApiView):
    @operation(
        "turn_destination_on", "Turn it on.", answer=DestinationShape, is_named=True, errors=[404], tag="destinations"
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        return _turned(request, name, is_on=True)


class DestinationOff(ApiView):
    @operation(
        "turn_destination_off",
        "Turn it off: what waits for it goes by the next route.",
        answer=DestinationShape,
        is_named=True,
        errors=[404],
        tag="destinations",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        return _turned(request, name, is_on=False)


class DestinationRetire(ApiView):
    @operation(
        "retire_destination",
        "Take it out of use, with its routes. Its deliveries stay to be seen.",
        answer=DestinationShape,
        is_named=True,
        errors=[404],
        tag="destinations",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        row = destination_get(name)
        services.destination_retire(row, actor=actor(request), now=now_get())
        return answer(destination_as_row(row))


class Routes(ApiView):
    query_class = PageQuery

    @operation(
        "list_routes", "Routes, in their order.", answer=page_of(RouteShape), query=PageQuery, tag="destinations"
    )
    def get(self, request: Request) -> Response:
        return page(request, self.asked, route_list(), ("position", "id"), route_as_row)

    @operation(
        "add_route",
        "Add a route.\n\nAn alert is told by the first that fits it; where its destination fails, by the next.",
        answer=RouteShape,
        status=201,
        body=RouteBody,
        request_example={"destination": "on call", "least": "critical", "labels": {"team": "payments"}},
        tag="destinations",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given: dict[str, Any] = dict(RouteBody.read(request.data))
        destination = referenced("destination", destination_get, given.pop("destination"))
        return answer(route_as_row(services.route_add(destination, **given, actor=actor(request), now=now_get())), 201)


class RouteOne(ApiView):
    @operation("show_route", "One route.", answer=RouteShape, errors=[404], tag="destinations")
    def get(self, request: Request, route_id: UUID) -> Response:
        return answer(route_as_row(route_get(route_id)))

    @operation("revoke_route", "Remove a route.", answer=RemovedRouteShape, errors=[404], tag="destinations")
    def delete(self, request: Request, route_id: UUID) -> Response:
        services.route_remove(route_get(route_id), actor=actor(request), now=now_get())
        return answer({"removed": str(route_id)})


class Deliveries(ApiView):
    query_class = DeliveriesQuery

    @operation(
        "list_deliveries",
        "What was sent and what waits, newest first.",
        answer=page_of(DeliveryShape),
        query=DeliveriesQuery,
        errors=[422],
        tag="destinations",
    )
    def get(self, request: Request) -> Response:
        asked = self.asked
        destination = (
            referenced("destination", destination_get, asked["destination"]) if "destination" in asked else None
        )
        alert = referenced("alert", alert_get, asked["alert"]) if "alert" in asked else None
        return page(
            request, asked, delivery_list(destination, alert, asked.get("state", "")), ("-number",), delivery_as_row
        )


class DeliveryOne(ApiView):
    @operation(
        "show_delivery",
        "One message, with what each attempt was answered.",
        answer=DeliveryShape,
        errors=[404],
        tag="destinations",
    )
    def get(self, request: Request, delivery_id: UUID) -> Response:
        return answer(delivery_as_row(delivery_get(delivery_id)))


class DeliveryAgain(ApiView):
    @operation(
        "send_delivery_again",
        "Send the same message with the same id once more.\n\nRefused where a newer one of the same page took its place.",
        answer=DeliveryShape,
        errors=[404],
        tag="destinations",
    )
    @idempotent
    def post(self, request: Request, delivery_id: UUID) -> Response:
        row = services.delivery_send_again(delivery_get(delivery_id), actor=actor(request), now=now_get())
        return answer(delivery_as_row(row))


def _turned(request: Request, name: str, *, is_on: bool) -> Response:
    row = services.destination_turn(destination_get(name), is_on=is_on, actor=actor(request), now=now_get())
    return answer(destination_as_row(row))
