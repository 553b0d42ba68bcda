#!/usr/bin/env python
"""The command line. Exit 2: the call cannot be used as given; 3: it failed. 1 is only ever written on purpose."""

import os
import sys
import traceback

WITHOUT_DATABASE = (
    "DATABASE_URL is not set, and this needs a database: set it, or run `./fencepost` in manage.py's place, "
    "which starts one."
)
WITHOUT_TABLES = (
    "The control database has not the tables that this version needs. Make them: `./fencepost setup` (or `manage.py setup`)"
    " makes the first person too, `manage.py migrate` the tables alone."
)
UNDEFINED = ("42P01", "42703")
"""PostgreSQL has no such table, or no such column."""


def main(arguments: list[str]) -> int:
    """The exit code. What was raised on purpose is one line; anything else is a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import CommandError, ManagementUtility, get_commands
    from django.core.management.base import SystemCheckError
    from django.db.utils import OperationalError, ProgrammingError

    from recovery_api.domain.errors import BadInput, FencepostError

    try:
        ManagementUtility(arguments).execute()
    except FencepostError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, BadInput) else 3
    except SystemExit as exit_:
        # Django leaves with 1 for its own errors; their cause is still there as the context.
        if exit_.code == 1 and isinstance(exit_.__context__, SystemCheckError):
            return 3
        if exit_.code == 1 and (isinstance(exit_.__context__, CommandError) or arguments[1] not in get_commands()):
            return 2
        raise
    except KeyboardInterrupt:
        return 130
    except (ImproperlyConfigured, OperationalError) as error:
        if isinstance(error, ImproperlyConfigured) and not os.environ.get("DATABASE_URL"):
            print(WITHOUT_DATABASE, file=sys.stderr)
        elif isinstance(error, OperationalError):
            print(f"The control database does not serve: {' '.join(str(error).split())}", file=sys.stderr)
        else:
            traceback.print_exc()
        return 3
    except ProgrammingError as error:
        if getattr(error.__cause__, "sqlstate", None) in UNDEFINED:
            print(WITHOUT_TABLES, file=sys.stderr)
        else:
            traceback.print_exc()
        return 3
    except Exception:  # the outermost edge: told whole, and its exit code is not one that a command could mean
        traceback.print_exc()
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
