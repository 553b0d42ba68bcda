"""Credentials are references, resolved only in the process that uses them, and never part of a message."""

from __future__ import annotations

import os
from pathlib import Path

from recovery_api.domain.errors import AccessDenied


def credential_resolve(reference: str) -> str:
    """What `env:NAME` or `file:/path` holds, stripped of one line end. Raises: AccessDenied naming the reference."""
    scheme, _, name = reference.partition(":")
    if scheme == "env":
        if (value := os.environ.get(name)) is None:
            raise AccessDenied(
                reference, "the environment variable is not set", f"Set {name} where the worker and Spark run."
            )
        return value
    try:
        return Path(name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise AccessDenied(reference, "the file cannot be read", "Mount it where the worker and Spark run.") from error
