from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.management.base import FencepostCommand, Shown, subcommand_add
from recovery_api.management.lines import omission_lines
from recovery_api.rows import omission_as_row
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.omissions import omission_list
from recovery_api.services.omissions import omission_acknowledge, omission_withdraw


class Command(FencepostCommand):
    help = "Acknowledged omissions: events that are never to be delivered, each with its reason."

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(dest="what", required=True)
        listed = subcommand_add(subparsers, "list", "what is acknowledged")
        listed.add_argument("pipeline")
        listed.add_argument("--withdrawn", action="store_true", help="those withdrawn, too")
        for name, says in (("acknowledge", "take a coordinate out"), ("withdraw", "owe it again")):
            one = subcommand_add(subparsers, name, says)
            one.add_argument("pipeline")
            one.add_argument("coordinate", help="in the source's spelling; write a negative one after --")
            one.add_argument("--lane", default=SINGLE_LANE, help=f"its lane (default {SINGLE_LANE})")
            if name == "acknowledge":
                one.add_argument("--reason", required=True, help="why this event is never to be delivered")

    def answer(self, now: datetime, **options: Any) -> Shown:
        pipeline = pipeline_get(options["pipeline"])
        if options["what"] == "list":
            rows = [omission_as_row(one) for one in omission_list(pipeline, with_withdrawn=options["withdrawn"])]
            return Shown({"pipeline": pipeline.name, "omissions": rows}, omission_lines(rows))
        common = {"actor": options["actor"], "now": now, "lane": options["lane"]}
        if options["what"] == "acknowledge":
            omission = omission_acknowledge(pipeline, options["coordinate"], reason=options["reason"], **common)
            says = "It stays lost, is listed apart, and is never sent."
        else:
            omission = omission_withdraw(pipeline, options["coordinate"], **common)
            says = "It is owed again."
        row = omission_as_row(omission)
        return Shown(row, [*omission_lines([row]), says])
