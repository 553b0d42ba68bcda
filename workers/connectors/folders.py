"""Which folders an end may be read from: those below the ones that the process's environment names, and no others.

Whoever registers an end names a folder. Without this rule, that would be a way to read any file on the worker's
machine. Unlike credentials, folders have no default: where none is named, none is read. Executors follow the same rule
and must see the same folders.
"""

from __future__ import annotations

import os
import stat
from fnmatch import fnmatchcase
from pathlib import Path

from recovery_api.domain.errors import AccessDenied, NotFound

FOLDERS_VARIABLE = "FENCEPOST_ARCHIVE_FOLDERS"


def folder_resolve(name: str) -> Path:
    """The folder itself, links followed. Raises: AccessDenied outside what is allowed; NotFound for no folder."""
    try:
        path = Path(name).resolve()
    except (OSError, ValueError, RuntimeError):
        path = Path(os.path.normpath(name))
    allowed = folders_allowed()
    if not Path(name).is_absolute() or not any(path.is_relative_to(folder.resolve()) for folder in allowed):
        said = " or ".join(map(str, allowed)) or "no folder at all"
        remedy = f"Put the files there, or set {FOLDERS_VARIABLE} where the worker and Spark run."
        raise AccessDenied(f"folder {name}", f"only what lies below {said} is read", remedy)
    if not path.is_dir():
        raise NotFound(f"Folder {name}", "this machine", "Mount it where the worker and Spark run.")
    return path


def files_of(folder: Path, pattern: str) -> list[Path]:
    """The regular files that match, by name. Hidden ones are still being written; links lead elsewhere: both are left out.

    Raises: AccessDenied.
    """
    try:
        found = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
        return [path for path in found if fnmatchcase(path.name, pattern) and stat.S_ISREG(path.lstat().st_mode)]
    except OSError as error:
        raise AccessDenied(
            f"folder {folder}", f"it cannot be listed ({error.strerror})", "Grant the worker that."
        ) from error


def folders_allowed() -> tuple[Path, ...]:
    """From the environment, separated as in PATH; relative ones are ignored."""
    given = os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)
    return tuple(Path(folder.strip()) for folder in given if Path(folder.strip()).is_absolute())
