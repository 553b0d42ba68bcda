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

from recovery_api.domain.access import Role
from recovery_api.domain.errors import BadInput
from workers.demo.narrator import Narrator
from workers.demo.recover import Operator, worker_await, worker_running
from workers.demo.story import Story
from workers.demo.table import TableStory, TableWorld
from workers.demo.visit import incident_leave, people_make, web_running
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
        "the frontier, by the product's verdict and by plain SQL; with a table: exactly once, given what it names."
    )

    story: type[Story] = Story
    table_story: type[Story] = TableStory

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="end by itself instead of keeping the services up")
        parser.add_argument("--json", action="store_true", help="print one JSON object last; the story goes to stderr")
        parser.add_argument("--port", type=int, help="of the pages (default: 8000, or any that is free)")
        parser.add_argument(
            "--with",
            dest="sink",
            choices=["kit", "table"],
            default="kit",
            help="what the mail is: the sink kit, or an ordinary table, whose end rests on what somebody attests",
        )
        parser.add_argument("--prefix", default="", help="before the names of databases and roles (default: none)")

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ("DATABASE_URL", "REDIS_URL", "SPARK_REMOTE"):
            if not getattr(settings, name):
                raise BadInput(name, "is not set", "`make demo` starts what is missing.")
        tell = Narrator(sys.stderr if options["json"] else cast(TextIO, self.stdout))
        has_bar = not options["json"] and sys.stderr.isatty()
        var = Path(settings.VAR_DIR) / "demo"
        made, story = (TableWorld, self.table_story) if options["sink"] == "table" else (World, self.story)
        world = world_build(settings.DATABASE_URL, var / "credentials", options["prefix"], made)
        log = var / "worker.log"
        with (
            worker_running(log) as worker,
            tempfile.TemporaryDirectory(prefix="fencepost-") as directory,
        ):
            tell.progress("a worker starts")
            worker_await(worker, log)
            ending = story(world, Path(directory), tell, has_bar).run()
            if not options["once"]:
                left = world_build(settings.DATABASE_URL, var / "credentials", options["prefix"], made)
                self._leave(tell, left, Path(directory), has_bar)
                with web_running(var / "web.log", options["port"]) as address:
                    self._stay(tell, world, left, address)
        if options["json"]:
            self.stdout.write(json.dumps(ending.as_row()))
        if not ending.is_success:
            sys.exit(FAILED)

    def _leave(self, tell: Narrator, left: World, directory: Path, has_bar: bool) -> None:
        """A second incident, for whoever is watching to recover."""
        tell.step("Another incident, and this one is yours")
        found = incident_leave(left, directory, Operator(left, tell, has_bar))
        tell.say(
            f"Pipeline {left.pipeline} had the same bad day. {found.counts['lost']} events are owed at "
            f"{found.body['frontier']}, its relay is dead, and nobody has recovered it. Its rule lets a plan's author "
            "approve it, so that one sign-in is enough; the first one asks for another person."
        )

    def _stay(self, tell: Narrator, world: World, left: World, address: str) -> None:
        """Keeps web server, worker and services up until Ctrl-C."""
        tell.step("Look around, and recover it by hand")
        password = people_make()
        tell.table([("pages", address), *_sign_ins(password)])
        who = "somebody who may approve" if password is None else "approver"
        tell.say(
            f"Sign in as {who}, open {left.pipeline}, plan a recovery, look at what it would send, approve it, give a "
            f"reason, type the pipeline's name, {_attesting(left)}and watch it end exactly once. Or by command, from another "
            "shell:"
        )
        for line in TRY:
            tell.command(f"./fencepost {line.format(pipeline=world.pipeline)}")
        tell.say("Ctrl-C ends it all. `make demo` again makes new incidents beside these.")
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


def _attesting(left: World) -> str:
    return "" if left.door.table is None else "attest what it asks for, "


def _sign_ins(password: str | None) -> list[tuple[str, object]]:
    if password is None:
        return [("sign in", "as one of the people this control database already has")]
    return [("sign in as", ", ".join(role.value for role in Role)), ("password", f"{password}  (all four)")]
