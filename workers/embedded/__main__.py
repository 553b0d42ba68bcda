"""`python -m workers.embedded [--only postgres,redis,spark] [--data DIR | --temporary] [-v] -- CMD…`."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from pathlib import Path

from workers.embedded.run import PROJECT, SERVICES, StartFailed, run_command


def main(arguments: list[str]) -> int:
    """CMD's exit code; 2 for a usage error, 3 where a service cannot start, 126 and 127 as a shell has them."""
    options = _parse(arguments)
    directory = None if options.temporary else options.data
    try:
        return run_command(options.only, directory, options.command, options.verbose)
    except StartFailed as error:
        print(error, file=sys.stderr)
        return 3
    except Exception as error:  # the launcher's outermost edge: told, and never an exit code that CMD could have given
        if isinstance(error, (FileNotFoundError, PermissionError)) and error.filename == options.command[0]:
            print(f"{error.filename}: {error.strerror}", file=sys.stderr)
            return 127 if isinstance(error, FileNotFoundError) else 126
        traceback.print_exc()
        return 3


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m workers.embedded",
        description="Run CMD with PostgreSQL, Redis and Spark: those whose variable is set are used, others started.",
        usage="%(prog)s [--only NAMES] [--data DIR | --temporary] [-v] -- CMD ...",
        epilog=f"Variables: {', '.join(service.variable for service in SERVICES.values())}.",
        allow_abbrev=False,
    )
    parser.add_argument("--only", type=_names, default=list(SERVICES), metavar="NAMES", help="of " + ",".join(SERVICES))
    where = parser.add_mutually_exclusive_group()
    default = Path(os.environ.get("FENCEPOST_VAR_DIR") or PROJECT / "var") / "embedded"
    where.add_argument("--data", type=Path, default=default, metavar="DIR", help="kept there (default: var/embedded)")
    where.add_argument("--temporary", action="store_true", help="in a temporary directory, removed at the end")
    parser.add_argument("-v", dest="verbose", action="store_true", help="a line to stderr for each service")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="CMD")
    options = parser.parse_args(arguments)
    options.command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not options.command:
        parser.error("CMD is missing: what shall run, after `--`")
    return options


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in SERVICES]:
        raise argparse.ArgumentTypeError(f"no such service: {', '.join(unknown)}; known: {', '.join(SERVICES)}")
    return names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
