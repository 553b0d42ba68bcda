from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandParser
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from recovery_api.domain.access import Role
from recovery_api.domain.errors import BadFile, BadInput
from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.services.people import person_create, roles_make

PASSWORD = "FENCEPOST_SETUP_PASSWORD"  # nosec B105 # the name of a variable
NEXT = (
    "Next, each in a shell of its own:",
    "  1. make worker   (or celery -A workers.celery worker --queues spark,default) does what is asked for",
    "  2. make web      (or gunicorn dashboard.wsgi:application) serves the pages; sign in there{as_whom}",
    "  3. Register a source, a sink and a pipeline: on the page Overview, or by manage.py sources add --help",
)


class Command(FencepostCommand):
    help = (
        "The first run: brings the control database up to date, makes the roles, asks for the first person, and says "
        "what comes next. Run again it changes nothing that is there; with --name it adds a person."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--name", help="whom to add (asked for at a terminal while there is nobody)")
        parser.add_argument(
            "--role",
            action="append",
            default=[],
            metavar="ROLE",
            help=f"what they may: {', '.join(Role)}; may be repeated (left out: everything, and make other people)",
        )
        parser.add_argument(
            "--password-file", metavar="PATH", help=f"holds their password (or set {PASSWORD}; asked for at a terminal)"
        )

    def answer(self, now: datetime, **options: Any) -> Shown:
        is_changed = _tables_make()
        roles = roles_make()
        name, said = options["name"], []
        model = get_user_model()
        if not name and not model.objects.exists():
            name = _ask_name()
        if name and model.objects.filter(username=name).exists():
            said = [f"{name} is there already and was not changed."]
        elif name:
            person_create(name, _password(options["password_file"]), options["role"])
            may = ", ".join(options["role"]) or "everything, and makes the other people at /admin/"
            said = [f"{name} may sign in: {may}."]
        body = {"is_database_changed": is_changed, "roles": roles, "people": model.objects.count(), "person": name}
        lines = [
            "The control database is up to date." if is_changed else "The control database was up to date.",
            f"The roles are there: {', '.join(roles)}.",
            *said,
            *(line.format(as_whom=f" as {name}" if name else "") for line in NEXT),
        ]
        return Shown(body, lines)


def _tables_make() -> bool:
    """Whether something was missing: then it is there now."""
    executor = MigrationExecutor(connection)
    if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return False
    call_command("migrate", verbosity=0, interactive=False)
    return True


def _ask_name() -> str:
    """Raises: BadInput where there is nobody to ask."""
    if not sys.stdin.isatty():
        raise BadInput(
            "--name", "is missing, and nobody can sign in yet", f"Give --name, and the password in {PASSWORD}."
        )
    print("Nobody can sign in yet. Who is the first person?", file=sys.stderr)
    return _asked(lambda: input("Name: ").strip())


def _password(path: str | None) -> str:
    """From the file, else the environment, else asked for twice. Raises: BadInput, BadFile."""
    if path is not None:
        try:
            return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise BadFile(path, "the password", "cannot be read as UTF-8 text", "Check the path.") from error
    if given := os.environ.get(PASSWORD):
        return given
    if not sys.stdin.isatty():
        raise BadInput("--password-file", "is missing", f"Give it, or set {PASSWORD}.")
    password = _asked(lambda: getpass.getpass("Password: "))
    if _asked(lambda: getpass.getpass("The same again: ")) != password:
        raise BadInput("password", "was typed differently the second time", "Run it again.")
    return password


def _asked(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except EOFError as error:
        raise BadInput("--name", "was asked for and not given", "Run it again, or give --name.") from error
