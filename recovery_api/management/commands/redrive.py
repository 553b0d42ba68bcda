from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.attestations import LATER_EVENTS_CONFIRMED
from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.management.recoveries import recovery_follow
from recovery_api.management.waiting import wait_arguments
from recovery_api.services.recoveries import recovery_request


class Command(FencepostCommand):
    help = "Apply an approved plan: claim, arm, fire, verify, hand over. Asked twice, it is one recovery."

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
            help=f"what you attest; {LATER_EVENTS_CONFIRMED}: the plan's keys with a later accepted event may be sent",
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
