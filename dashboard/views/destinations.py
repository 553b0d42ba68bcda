"""Who is told of alerts: destinations, their routes, what was sent to each and what it answered."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dashboard.access import actor
from dashboard.views.alerts import deliveries_shown
from dashboard.views.errors import errors_shown, said
from dashboard.views.overtaken import overtaken, version_read
from recovery_api.domain.alerts.causes import Cause, Severity
from recovery_api.domain.alerts.shapes.base import Shape
from recovery_api.domain.errors import BadInput, FencepostError, Outdated
from recovery_api.domain.labels import label_parse
from recovery_api.domain.words import words
from recovery_api.models import Destination
from recovery_api.selectors import destinations as selected
from recovery_api.selectors.alerts import evaluated_at, pager_says
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.versions import version_of
from recovery_api.services import destinations as services

SHOWN = 50


class DestinationForm(forms.Form):
    """A destination. What an address or a secret may be is the service's business."""

    name = forms.CharField(max_length=100, help_text="What people call it.")
    shape = forms.ChoiceField(
        choices=[(one.value, one.label) for one in Shape], help_text="What sort of receiver it is."
    )
    address = forms.CharField(
        max_length=2000,
        required=False,
        help_text="https://…, or e-mail addresses with commas between. A reference (env:FENCEPOST_END_NAME, file:/path) where it is a"
        " secret, as Slack's is. PagerDuty's is known.",
    )
    secret = forms.CharField(
        max_length=1000,
        required=False,
        help_text="A reference to PagerDuty's integration key, or to what JSON webhooks are signed with: env:FENCEPOST_END_NAME or"
        " file:/path. It is read by the pager alone.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("name", "address", "secret"):
            self.fields[name].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}


@require_http_methods(["GET", "HEAD", "POST"])
@errors_shown
def destination_list(request: HttpRequest) -> HttpResponse:
    """Destinations and routes, in their order; posted, another destination."""
    form = DestinationForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            row = services.destination_add(
                given["name"],
                given["shape"],
                address=given["address"],
                secret=given["secret"],
                actor=actor(request),
                now=now_get(),
            )
        except FencepostError as error:
            field = str(error.args[0]).rpartition(".")[2] if isinstance(error, BadInput) else ""
            form.add_error(field if field in form.fields else None, said(error))
        else:
            messages.success(request, f"{row.name} is added, with a route that takes everything. Send a test.")
            return redirect("destination", row.name)
    now = now_get()
    context = {
        "form": form,
        "destinations": selected.destination_list(),
        "routes": [(route, services.route_says(route)) for route in selected.route_list()],
        "pager_says": pager_says(now, evaluated_at()),
        "word_of": {True: "destination_on", False: "destination_off"},
    }
    return render(request, "destinations/list.html", context, status=400 if form.is_bound and form.errors else 200)


@require_GET
@errors_shown
def destination_show(request: HttpRequest, name: str) -> HttpResponse:
    """One destination: its routes, and what was sent to it."""
    return _page(request, selected.destination_get(name))


def _page(
    request: HttpRequest, destination: Destination, entered: dict[str, str] | None = None, **more: Any
) -> HttpResponse:
    """`entered`: what was sent of its form, and not saved, for what `more` says."""
    context = {
        "version": version_of(destination),
        "given": {"address": destination.address, "secret": destination.secret, **(entered or {})},
        **more,
        "destination": destination,
        "shape": Shape(destination.shape),
        "word": "destination_off" if destination.disabled_at else "destination_on",
        "routes": [
            (one, services.route_says(one)) for one in selected.route_list() if one.destination_id == destination.pk
        ],
        "deliveries": deliveries_shown(list(selected.delivery_list(destination)[:SHOWN])),
        "severities": words(Severity),
        "causes": [(one.value, one.label) for one in Cause],
        "pager_says": pager_says(now_get(), evaluated_at()),
    }
    return render(request, "destinations/destination.html", context, status=409 if more else 200)


@require_POST
@errors_shown
def destination_edit(request: HttpRequest, name: str) -> HttpResponse:
    given = {one: request.POST[one].strip() for one in ("address", "secret") if one in request.POST}
    destination = selected.destination_get(name)
    try:
        services.destination_change(
            destination, **given, read=version_read(request), actor=actor(request), now=now_get()
        )
    except Outdated:
        now = selected.destination_get(name)
        return _page(request, now, given, **overtaken(now, {one: getattr(now, one) for one in given}, given))
    messages.success(request, "Changed. Send a test.")
    return redirect("destination", name)


@require_POST
@errors_shown
def destination_test(request: HttpRequest, name: str) -> HttpResponse:
    services.destination_test(selected.destination_get(name), actor=actor(request), now=now_get())
    messages.success(request, "A test is on its way: the pager sends it. Its answer appears below.")
    return redirect("destination", name)


@require_POST
@errors_shown
def destination_turn_on(request: HttpRequest, name: str) -> HttpResponse:
    return _turn(request, name, is_on=True)


@require_POST
@errors_shown
def destination_turn_off(request: HttpRequest, name: str) -> HttpResponse:
    return _turn(request, name, is_on=False)


@require_POST
@errors_shown
def destination_retire(request: HttpRequest, name: str) -> HttpResponse:
    services.destination_retire(selected.destination_get(name), actor=actor(request), now=now_get())
    messages.success(request, f"{name} is out of use, and its routes with it.")
    return redirect("destination-list")


@require_POST
@errors_shown
def route_add(request: HttpRequest, name: str) -> HttpResponse:
    """Which alerts it is told of."""
    given = request.POST
    text = given.get("label", "").strip()
    position = given.get("position", "").strip()
    if position and not (position.isascii() and position.isdigit() and len(position) < 8):
        raise BadInput(
            "position", f"{position[:20]!r} is not a whole number", "Routes stand in the order of their positions."
        )
    services.route_add(
        selected.destination_get(name),
        least=given.get("least", Severity.WARNING.value),
        causes=[one for one in given.getlist("cause") if one],
        labels=dict([label_parse(text, "label")]) if text else {},
        goes_on=given.get("goes_on") == "true",
        position=int(position) if position else None,
        actor=actor(request),
        now=now_get(),
    )
    messages.success(request, "The route is added.")
    return redirect("destination", name)


@require_POST
@errors_shown
def route_remove(request: HttpRequest, route_id: UUID) -> HttpResponse:
    route = selected.route_get(route_id)
    name = route.destination.name
    services.route_remove(route, actor=actor(request), now=now_get())
    messages.success(request, "The route is removed.")
    return redirect("destination", name)


@require_POST
@errors_shown
def delivery_again(request: HttpRequest, delivery_id: UUID) -> HttpResponse:
    delivery = selected.delivery_get(delivery_id)
    services.delivery_send_again(delivery, actor=actor(request), now=now_get())
    messages.success(request, "It is sent again, with the same id. Its answer appears here.")
    return redirect("destination", delivery.destination.name)


def _turn(request: HttpRequest, name: str, *, is_on: bool) -> HttpResponse:
    services.destination_turn(selected.destination_get(name), is_on=is_on, actor=actor(request), now=now_get())
    messages.success(request, "It is on." if is_on else "It is off. Messages that waited for it go to the next route.")
    return redirect("destination", name)
