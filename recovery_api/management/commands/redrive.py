from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.attestations import KINDS
from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.management.recoveries import recovery_follow
from recovery_api.management.waiting import wait_arguments
from recovery_api.services.recoveries import recovery_request


class Command(FencepostCommand):
    help = "Apply an approved plan, by the plan's strategy, until its outcome is verified. Asked twice, it is one recovery."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("plan", help="the approved plan's id")
        parser.add_argument("--reason", required=True, help="why, in a sentence; it stays in the timeline")
        parser.add_argument("--confirm", required=True, metavar="PIPELINE", help="type the pipeline's name")
        parser.add_argument(
            "--attest",
            action="append",
            default=[],
            metavar="TEXT",
            help="what you attest, where the plan asks for it: " + "; ".join(one.form for one in KINDS.values()),
        )
        wait_arguments(parser)

    def answer(self, now: datetime, **options: Any) -> Shown:
        recovery = recovery_request(
            options["plan"],
            options["reason"],
            options["confirm"],
            options["actor"],
            now=now,
            attestations=options["attest"],
            wake=not options["here"],
        )
        return recovery_follow(recovery, options, self.stderr)
