"""The lines of the log: one a step, with what it is about, as text or as JSON. Imports nothing of Django: settings name it.

The law: a line is one line. What comes from outside (a reason that somebody typed, a key) is quoted, so that no text begins
a line of its own.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOG_FORMATS = ("line", "json")
ABOUT = "fencepost_about"


def about_line(about: Mapping[str, Any]) -> dict[str, Any]:
    """For a logger's `extra`: what the line is about (pipeline, recovery, generation, intent); None is left out."""
    return {ABOUT: {name: str(value) for name, value in about.items() if value is not None}}


class LineFormatter(logging.Formatter):
    """`2026-11-29T03:12:07.120Z INFO recovery_api.services.events claim granted: … pipeline=orders-mail generation=7`."""

    def format(self, record: logging.LogRecord) -> str:
        about = " ".join(f"{name}={_quoted(value)}" for name, value in getattr(record, ABOUT, {}).items())
        parts = [_moment(record), record.levelname, record.name, _one_line(record.getMessage()), about]
        line = " ".join(part for part in parts if part)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `at`, `level`, `logger`, `says`, what it is about, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        row = {"at": _moment(record), "level": record.levelname, "logger": record.name, "says": record.getMessage()}
        row |= getattr(record, ABOUT, {})
        if record.exc_info:
            row["traceback"] = self.formatException(record.exc_info)
        return json.dumps(row, ensure_ascii=False)


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    """
    >>> _one_line("it died\\n2026-01-01 INFO all is well")
    'it died\\\\n2026-01-01 INFO all is well'
    """
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r") if not text.isprintable() else text


def _quoted(value: str) -> str:
    return value if value.isalnum() or all(c.isalnum() or c in "-_.:/" for c in value) else json.dumps(value)
