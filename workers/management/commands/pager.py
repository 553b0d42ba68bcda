from __future__ import annotations

import signal
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.management.base import DONE, UNKNOWN, FencepostCommand, Shown
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.destinations import deliveries_overdue
from workers.alerts.pager import PAGE_BOUND, Beat, Pager


class Command(FencepostCommand):
    help = (
        "Evaluates alerts, delivers them, and tells an outside monitor that it does. Needs the control database alone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--once",
            action="store_true",
            help="one evaluation, everything that is due tried once, one heartbeat; exits 3 where a page reached nobody",
        )

    def answer(self, now: datetime, **options: Any) -> Shown:
        pager = Pager()
        if options["once"]:
            return self._once(pager)
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, lambda *_: pager.stop())
        self.stderr.write(f"Pager {pager.name} runs; stop it with Ctrl-C.")
        pager.run()
        return Shown({"pager": pager.name}, ["Stopped."])

    def _once(self, pager: Pager) -> Shown:
        found, beat = pager.once(), pager.heartbeat()
        pager.deliverer.close()
        stuck = deliveries_overdue(now_get(), PAGE_BOUND)
        body: dict[str, Any] = {
            "evaluated_at": found.at if found else None,
            "open": found.open_count if found else None,
            "changes": dict(found.changes) if found else {},
            "messages": found.messages if found else 0,
            "unrouted": found.unrouted if found else None,
            "pages_that_reached_nobody": stuck,
            "heartbeat_was_sent": beat.was_sent,
            "heartbeat_says": beat.says,
        }
        return Shown(body, _lines(body, beat), UNKNOWN if stuck or found is None else DONE)


def _lines(body: dict[str, Any], beat: Beat) -> list[str]:
    if body["evaluated_at"] is None:
        return ["Another pager was evaluating; what was due was delivered."]
    changes = ", ".join(f"{count} {word}" for word, count in body["changes"].items()) or "nothing changed"
    lines = [f"{body['open']} alerts are open ({changes}); {body['messages']} messages were made."]
    if body["unrouted"]:
        lines.append(
            f"{body['unrouted']} open alerts are told to nobody: no route takes them. Add one: manage.py destinations."
        )
    if body["pages_that_reached_nobody"]:
        lines.append(f"{body['pages_that_reached_nobody']} pages reached nobody.")
    lines.append(f"Heartbeat: {'sent' if beat.was_sent else 'not sent'} ({beat.says}).")
    return lines
