"""`manage.py demo`: an incident made for real, its recovery, and the proof, told while they happen."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, cast

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from recovery_api.domain.errors import BadInput
from workers.demo.narrator import Narrator
from workers.demo.recover import worker_running
from workers.demo.story import Ending, Story
from workers.demo.world import World, world_build

FAILED = 1
TRY = (
    "pipelines show {pipeline}",
    "recovery {pipeline} timeline",
    "audit {pipeline} --full --wait",
)


class Command(BaseCommand):
    help = (
        "Crash a relay for real, then audit, plan, re-drive and verify. Exits 0 only if the sink ends exactly once at "
        "the frontier, by the product's verdict and by plain SQL."
    )

    story: type[Story] = Story

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="end by itself instead of keeping the services up")
        parser.add_argument("--json", action="store_true", help="print one JSON object last; the story goes to stderr")
        parser.add_argument("--prefix", default="", help="before the names of databases and roles (default: none)")

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ("DATABASE_URL", "REDIS_URL", "SPARK_REMOTE"):
            if not getattr(settings, name):
                raise BadInput(name, "is not set", "`make demo` starts what is missing.")
        tell = Narrator(sys.stderr if options["json"] else cast(TextIO, self.stdout))
        is_progress_shown = not options["json"] and sys.stderr.isatty()
        var = Path(settings.VAR_DIR) / "demo"
        world = world_build(settings.DATABASE_URL, var / "credentials", options["prefix"])
        with worker_running(var / "worker.log"), tempfile.TemporaryDirectory(prefix="fencepost-") as directory:
            ending = self.story(world, Path(directory), tell, is_progress_shown).run()
            if not options["once"]:
                self._stay(tell, world, ending)
        if options["json"]:
            self.stdout.write(json.dumps(ending.as_row()))
        if not ending.is_success:
            sys.exit(FAILED)

    def _stay(self, tell: Narrator, world: World, ending: Ending) -> None:
        """Keeps worker and services up until Ctrl-C."""
        tell.say("")
        tell.say(
            f"It took {ending.seconds:.0f} s, and everything it did is still there. From another shell (`make manage "
            'ARGS="..."` uses these services while they run, and starts them again later):'
        )
        for line in TRY:
            tell.command(f'make manage ARGS="{line.format(pipeline=world.pipeline)}"')
        tell.say("Ctrl-C ends. `make demo` again makes a new incident beside this one.")
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
