"""What every command of the control plane does alike: parse strictly, make one call, print it as text or JSON, exit.

Exit codes: 0 exactly once at f, or done; 1 owed or hazard; 2 the call cannot be used as given; 3 unknown, or not ended
yet; 4 exactly once at f, given what is named, nothing owed of what is kept, or
complete by identity. Results go to stdout, progress to stderr; with `--json` the last line of stdout is one JSON object.
"""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from recovery_api.domain.actors import actor_by_command
from recovery_api.domain.errors import AccessDenied, FencepostError, TerminalError
from recovery_api.domain.outcomes import EXIT_BAD_INPUT, EXIT_DONE, EXIT_GIVEN, EXIT_OWED, EXIT_UNKNOWN
from recovery_api.domain.visible import visible, visible_json

DONE, OWED, BAD_INPUT, UNKNOWN, GIVEN = EXIT_DONE, EXIT_OWED, EXIT_BAD_INPUT, EXIT_UNKNOWN, EXIT_GIVEN


@dataclass(frozen=True, slots=True)
class Shown:
    """What a command answers: a JSON object, its lines for a person, and the exit code."""

    body: dict[str, Any]
    lines: Sequence[str] = field(default_factory=tuple)
    code: int = DONE
    is_verbatim: bool = False
    """The lines are to be run, not read: not a character of them is changed."""


def error_code(error: FencepostError) -> int:
    """2 where the caller can mend the call, 3 where nothing can be concluded."""
    return BAD_INPUT if isinstance(error, TerminalError) and not isinstance(error, AccessDenied) else UNKNOWN


class FencepostCommand(BaseCommand):
    """Subclasses add their arguments and implement `answer`."""

    requires_migrations_checks = False

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, allow_abbrev=False, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        common_arguments(parser)

    def answer(self, now: datetime, **options: Any) -> Shown:
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if "actor" in options:
                options["actor"] = actor_by_command(options["actor"])
            shown = self.answer(timezone.now(), **options)
        except FencepostError as error:
            shown = Shown({"error": error.as_row()}, code=error_code(error))
            self.stderr.write(visible(str(error)))
        if options.get("json"):
            self.stdout.write(visible_json(json.dumps(shown.body, default=str, ensure_ascii=False)))
        else:
            for line in shown.lines:
                self.stdout.write(line if shown.is_verbatim else visible(line))
        if shown.code != DONE:
            sys.exit(shown.code)


def common_arguments(parser: CommandParser) -> None:
    """`--json` and `--actor`, on the command itself and on each of its subcommands."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.add_argument(
        "--actor",
        default=operating_user(),
        help="who is asking: a typed name, shown as such (default: the system user)",
    )


def subcommand_add(subparsers: Any, name: str, says: str) -> CommandParser:
    """A subcommand with the common options, which takes no abbreviations either."""
    parser: CommandParser = subparsers.add_parser(name, help=says, description=says, allow_abbrev=False)
    common_arguments(parser)
    return parser


def operating_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown user"
