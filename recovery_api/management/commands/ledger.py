from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.ledger_rows import item_as_row, item_lines, ledger_lane_as_row, ledger_lane_lines
from recovery_api.management.base import FencepostCommand, Shown, subcommand_add
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.ledger import ledger_items_open, ledger_lane_rows
from recovery_api.services.ledger import ledger_decide_below

SHOWN = 200


class Command(FencepostCommand):
    help = "What earlier audits saw of a pipeline and remember: what is open, and where nobody saw anything."

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(dest="what", required=True)
        listed = subcommand_add(subparsers, "list", "what is open, and how far each lane was seen")
        listed.add_argument("pipeline")
        listed.add_argument("--limit", type=int, default=SHOWN, help=f"how many items at most (default {SHOWN})")
        decided = subcommand_add(
            subparsers, "nothing-owed-below", "decide that nothing is owed where no audit saw what was committed"
        )
        decided.add_argument("pipeline")
        decided.add_argument("coordinate", help="in the source's spelling; write a negative one after --")
        decided.add_argument("--lane", default=SINGLE_LANE, help=f"its lane (default {SINGLE_LANE})")
        decided.add_argument("--reason", required=True, help="how you know that nothing is owed there")

    def answer(self, now: datetime, **options: Any) -> Shown:
        pipeline = pipeline_get(options["pipeline"])
        if options["what"] == "nothing-owed-below":
            lane = ledger_decide_below(
                pipeline,
                options["coordinate"],
                reason=options["reason"],
                actor=options["actor"],
                now=now,
                lane=options["lane"],
            )
            row = ledger_lane_as_row(lane)
            return Shown(row, [*ledger_lane_lines([row]), "Every verdict that rests on it names it. Audit again."])
        found = ledger_items_open(pipeline)
        count = found.count()
        items = [item_as_row(one) for one in found[: max(options["limit"], 0)]]
        lanes = [ledger_lane_as_row(one) for one in ledger_lane_rows(pipeline)]
        more = [f"{count - len(items):,} more: --limit {count}"] if count > len(items) else []
        body = {"pipeline": pipeline.name, "open_count": str(count), "lanes": lanes, "items": items}
        return Shown(body, [*ledger_lane_lines(lanes), *item_lines(items), *more])
