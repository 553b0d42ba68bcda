"""Credentials are references, resolved only in the process that uses them, and never part of a message.

One law: a reference reaches what was put there for an end, and nothing else. Who may register an end names a reference;
without a rule that would be a way to read the product's own settings and any file of the worker's machine. So
`env:NAME` is resolved only where NAME has an allowed prefix, `file:/path` only below an allowed folder. Both are read
from the environment of the process that resolves (worker and Spark's executors alike), with a safe default.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from recovery_api.domain.errors import AccessDenied

PREFIXES_VARIABLE = "FENCEPOST_REFERENCE_PREFIXES"
FOLDERS_VARIABLE = "FENCEPOST_REFERENCE_FOLDERS"
DEFAULT_PREFIXES = "FENCEPOST_END_"
DEFAULT_FOLDERS = "/run/secrets"

OWN_SETTINGS = frozenset({"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "SPARK_REMOTE"})
"""Never resolved, whatever the prefixes say: each opens the product itself."""

LARGEST_BYTES = 64 * 1024
"""Of a file: a connection string is a line, and a device or a log is none."""


def credential_resolve(reference: str) -> str:
    """What `env:NAME` or `file:/path` holds, stripped of one line end. Raises: AccessDenied naming the reference."""
    scheme, _, name = reference.partition(":")
    text = _from_environment(reference, name) if scheme == "env" else _from_file(reference, name)
    if not text.strip():
        raise AccessDenied(reference, "it is empty", "Put the connection string there.")
    return text


def prefixes_allowed() -> tuple[str, ...]:
    """What a variable's name must begin with, from the environment (comma-separated)."""
    return tuple(filter(None, map(str.strip, os.environ.get(PREFIXES_VARIABLE, DEFAULT_PREFIXES).split(","))))


def folders_allowed() -> tuple[Path, ...]:
    """Below which folders a file may lie, from the environment (separated as in PATH); relative ones are ignored."""
    given = os.environ.get(FOLDERS_VARIABLE, DEFAULT_FOLDERS).split(os.pathsep)
    return tuple(Path(folder.strip()) for folder in given if Path(folder.strip()).is_absolute())


def _from_environment(reference: str, name: str) -> str:
    if name in OWN_SETTINGS:
        raise AccessDenied(
            reference, "it is a setting of this product, and no end", "Name a variable that holds an end's address."
        )
    if not name.startswith(prefixes_allowed()):
        raise AccessDenied(
            reference,
            f"only variables whose names begin with {' or '.join(prefixes_allowed()) or 'nothing'} are resolved",
            f"Rename the variable, or set {PREFIXES_VARIABLE} where the worker and Spark run.",
        )
    if (value := os.environ.get(name)) is None:
        raise AccessDenied(
            reference, "the environment variable is not set", f"Set {name} where the worker and Spark run."
        )
    return value


def _from_file(reference: str, name: str) -> str:
    """Opened without following a last link and without waiting, so that what was looked at is what is read."""
    unreadable = AccessDenied(reference, "the file cannot be read", "Mount it where the worker and Spark run.")
    try:
        path = Path(name).resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        if not _is_below(Path(os.path.normpath(name))):  # nobody learns by asking what lies elsewhere
            raise _outside(reference) from None
        raise unreadable from error
    if not _is_below(path):
        raise _outside(reference)
    try:
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY)
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise AccessDenied(reference, "it is not a regular file", "Name the file that holds the address.")
            held = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise unreadable from error
    if len(held) > LARGEST_BYTES:
        raise AccessDenied(reference, "it is larger than 64 KiB", "Name the file that holds the address alone.")
    try:
        return held.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise unreadable from None  # Python's error quotes the bytes


def _is_below(path: Path) -> bool:
    return any(path.is_relative_to(allowed) for folder in folders_allowed() for allowed in (folder, folder.resolve()))


def _outside(reference: str) -> AccessDenied:
    folders = " or ".join(map(str, folders_allowed())) or "no folder at all"
    return AccessDenied(
        reference,
        f"only files below {folders} are read",
        f"Put it there, or set {FOLDERS_VARIABLE} where the worker and Spark run.",
    )
