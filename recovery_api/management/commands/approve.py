from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.management.lines import plan_lines
from recovery_api.rows import plan_as_row
from recovery_api.services.plans import plan_approve


class Command(FencepostCommand):
    help = "Approve a plan by its digest: what you saw is what may be sent."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("plan", help="the plan's id")
        parser.add_argument("--digest", required=True, help="the digest the plan showed")

    def answer(self, now: datetime, **options: Any) -> Shown:
        row = plan_as_row(plan_approve(options["plan"], options["digest"], options["actor"], now))
        return Shown(row, plan_lines(row))
