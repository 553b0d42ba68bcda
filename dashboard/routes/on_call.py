"""Pages for people on call: alerts, who is told of them, and what was sent."""

from django.urls import path

import recovery_api.converters  # noqa: F401  registers `end_name`
from dashboard.views import alerts, destinations

urlpatterns = [
    path("alerts/", alerts.alert_list, name="alert-list"),
    path("alerts/<uuid:alert_id>/", alerts.alert_show, name="alert"),
    path("alerts/<uuid:alert_id>/acknowledge/", alerts.alert_acknowledge, name="alert-acknowledge"),
    path("alerts/<uuid:alert_id>/give-back/", alerts.alert_give_back, name="alert-give-back"),
    path("mutes/", alerts.mute_add, name="mute-add"),
    path("mutes/<uuid:mute_id>/end/", alerts.mute_end, name="mute-end"),
    path("destinations/", destinations.destination_list, name="destination-list"),
    path("destinations/<end_name:name>/", destinations.destination_show, name="destination"),
    path("destinations/<end_name:name>/edit/", destinations.destination_edit, name="destination-edit"),
    path("destinations/<end_name:name>/test/", destinations.destination_test, name="destination-test"),
    path("destinations/<end_name:name>/on/", destinations.destination_turn_on, name="destination-turn-on"),
    path("destinations/<end_name:name>/off/", destinations.destination_turn_off, name="destination-turn-off"),
    path("destinations/<end_name:name>/retire/", destinations.destination_retire, name="destination-retire"),
    path("destinations/<end_name:name>/routes/", destinations.route_add, name="route-add"),
    path("routes/<uuid:route_id>/remove/", destinations.route_remove, name="route-remove"),
    path("deliveries/<uuid:delivery_id>/again/", destinations.delivery_again, name="delivery-again"),
]
