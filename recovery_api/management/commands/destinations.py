from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.alert_rows import delivery_as_row, destination_as_row, route_as_row
from recovery_api.domain.alerts.causes import Cause, Severity
from recovery_api.domain.alerts.outbox import DeliveryState
from recovery_api.domain.alerts.shapes.base import Shape
from recovery_api.domain.labels import label_parse
from recovery_api.domain.words import words
from recovery_api.management.base import FencepostCommand, Shown, subcommand_add
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.destinations import (
    delivery_get,
    delivery_list,
    destination_get,
    destination_list,
    route_get,
    route_list,
)
from recovery_api.services import destinations as services

SHOWN = 30


class Command(FencepostCommand):
    help = "Who is told of alerts: destinations, their routes, what was sent to them, what they answered. The pager sends: manage.py pager."

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(dest="what", required=True)
        subcommand_add(subparsers, "list", "those in use")
        add = subcommand_add(subparsers, "add", "add one, with a route that takes everything")
        add.add_argument("name")
        add.add_argument("--shape", required=True, choices=words(Shape))
        add.add_argument("--address", default="", help="where to; a reference where it is a secret (Slack)")
        add.add_argument("--secret", default="", help="a reference: env:FENCEPOST_END_NAME or file:/path")
        add.add_argument(
            "--no-route", action="store_true", help="without a route: nothing is sent there until it has one"
        )
        change = subcommand_add(subparsers, "change", "another address or secret")
        change.add_argument("name")
        change.add_argument("--address")
        change.add_argument("--secret")
        for word, says in (
            ("test", "send a message that says that it is a test"),
            ("on", "turn it on"),
            ("off", "turn it off: what waits goes by the next route"),
            ("retire", "take it out of use, with its routes"),
        ):
            subcommand_add(subparsers, word, says).add_argument("name")
        subcommand_add(subparsers, "routes", "who is told of what, in this order")
        route = subcommand_add(subparsers, "route", "add a route")
        route.add_argument("name", help="the destination")
        route.add_argument("--least", choices=words(Severity), default=Severity.WARNING.value)
        route.add_argument("--cause", action="append", default=[], choices=words(Cause))
        route.add_argument("--label", action="append", default=[], metavar="NAME=VALUE")
        route.add_argument("--goes-on", action="store_true", help="the next route that fits is told, too")
        route.add_argument("--position", type=int, help="where it stands (default: at the end)")
        subcommand_add(subparsers, "unroute", "remove a route").add_argument("route", help="its id, as listed")
        listed = subcommand_add(subparsers, "deliveries", f"the last {SHOWN} messages")
        listed.add_argument("name", nargs="?", help="only to this destination")
        listed.add_argument("--state", choices=words(DeliveryState), default="")
        subcommand_add(subparsers, "delivery", "one message, with its answers").add_argument("delivery")
        subcommand_add(subparsers, "again", "send a message again, with the same id").add_argument("delivery")

    def answer(self, now: datetime, **options: Any) -> Shown:
        by = {"actor": options["actor"], "now": now_get()}
        answered: Shown = getattr(self, f"_{options['what']}")(options, by)
        return answered

    def _list(self, options: dict[str, Any], by: dict[str, Any]) -> Shown:
        rows = [destination_as_row(one) for one in destination_list()]
        nobody = ["There is none, so nobody is paged. Add one: manage.py destinations add."]
        return Shown({"destinations": rows}, [_line(row) for row in rows] or nobody)

    def _add(self, options: dict[str, Any], by: dict[str, Any]) -> Shown:
        row = services.destination_add(
            options["name"],
            options["shape"],
            address=options["address"],
            secret=options["secret"],
            is_routed=not options["no_route"],
            **by,
        )
        return _one(row)

    def _change(self, options: dict[str, Any], by: dict[str, Any]) -> Shown:
        given = {name: options[name] for name in ("address", "secret")}
        return _one(services.destination_change(destination_get(options["name"]), **given, **by))

    def _test(self, options: dict[str, Any], by: dict[str, Any]) -> Shown:
        row = delivery_as_row(services.destination_test(destination_get(options["name"]), **by))
        look = f"The pager sends it. Look: manage.py destinations delivery {row['delivery']}"
        return Shown(row, [_delivery_line(row), look])

    def _on(self, options: dict[str, Any], by: dict[str, Any]) -> Shown:
        return _one(services.destination_turn(destination_get(options["name"]), is_on=True, **by))

    def _off(self, options: dict[str, Any], by: dict[str, Any]) -> Shown:
        return _one(services.destination_turn(destination_get(options["name"]), is_on=False, **by))

    def _retire(self, options: dict[str, Any], by: dict[str, Any]) -> Shown:
        services.destination_retire(destination_get(options["name"]), **by)
        return Shown({"retired": options["name"]}, [f"{options['name']} is out of use."])

    def _routes(self, options: dict[str, Any], by: dict[str, Any]) -> Shown:
        rows = [route_as_row(one) for one in route_list()]
        return Shown({"routes": rows}, [_route_line(row) for row in rows] or ["There is no route, so nobody is paged."])

    def _route(self, options: dict[str, Any], by: dict[str, Any]) -> Shown:
        labels = dict(label_parse(text, "--label") for text in options["label"])
        made = services.route_add(
            destination_get(options["name"]),
            least=options["least"],
            causes=options["cause"],
            labels=labels,
            goes_on=options["goes_on"],
            position=options["position"],
            **by,
        )
        row = route_as_row(made)
        return Shown(row, [_route_line(row)])

    def _unroute(self, options: dict[str, Any], by: dict[str, Any]) -> Shown:
        row = route_as_row(route_get(options["route"]))
        services.route_remove(route_get(options["route"]), **by)
        return Shown({"removed": row["route"]}, [f"Removed: {_route_line(row)}"])

    def _deliveries(self, options: dict[str, Any], by: dict[str, Any]) -> Shown:
        destination = destination_get(options["name"]) if options["name"] else None
        rows = [delivery_as_row(one) for one in delivery_list(destination, state=options["state"])[:SHOWN]]
        return Shown({"deliveries": rows}, [_delivery_line(row) for row in rows] or ["Nothing was sent."])

    def _delivery(self, options: dict[str, Any], by: dict[str, Any]) -> Shown:
        return _sent(delivery_as_row(delivery_get(options["delivery"])))

    def _again(self, options: dict[str, Any], by: dict[str, Any]) -> Shown:
        return _sent(delivery_as_row(services.delivery_send_again(delivery_get(options["delivery"]), **by)))


def _one(destination: Any) -> Shown:
    row = destination_as_row(destination)
    return Shown(row, [_line(row)])


def _sent(row: dict[str, Any]) -> Shown:
    answers = [
        f"  {one['at'][:19]}  attempt {one['attempt']}: {one['problem'] or 'taken'} ({one['took_seconds']} s) {one['excerpt']}"
        for one in row["answers"]
    ]
    return Shown(row, [_delivery_line(row), *answers])


def _line(row: dict[str, Any]) -> str:
    return f"{row['name']}  {row['shape']}  {row['address']}  {'on' if row['is_on'] else 'OFF: ' + str(row['disabled_says'])}"


def _route_line(row: dict[str, Any]) -> str:
    return f"{row['route']}  {row['position']}  to {row['destination']}: {row['says']}"


def _delivery_line(row: dict[str, Any]) -> str:
    late = "  LATE" if row["is_late"] else ""
    return f"{row['delivery']}  {row['created_at'][:19]}  to {row['destination']}  {row['kind']}  {row['state']}{late}  {row['title']}"
