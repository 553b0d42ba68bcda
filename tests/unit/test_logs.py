"""The log: one line a step, whatever is in it, in either format."""

from __future__ import annotations

import json
import logging

import pytest
from django.conf import settings
from django.core.management import call_command

from recovery_api.logs import JsonFormatter, LineFormatter, about_line


def record(says: str, **about: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"msg": says, "levelname": "INFO", "name": "fencepost", "created": 0.0})
    made.__dict__.update(about_line(about))
    return made


def test_a_line_is_one_line_whatever_somebody_typed() -> None:
    line = LineFormatter().format(
        record("ada froze it: x\n1970 INFO all is well", pipeline='a "b"', generation=7, plan=None)
    )
    assert line == (
        "1970-01-01T00:00:00.000Z INFO fencepost ada froze it: x\\n1970 INFO all is well"
        ' pipeline="a \\"b\\"" generation=7'
    )
    row = json.loads(JsonFormatter().format(record("x\ny", intent="i")))
    assert row == {
        "at": "1970-01-01T00:00:00.000Z",
        "level": "INFO",
        "logger": "fencepost",
        "says": "x\ny",
        "intent": "i",
    }


def test_a_level_that_there_is_not_is_said_and_keeps_no_process_from_starting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from django.core.management.base import SystemCheckError

    assert settings.LOG_LEVEL in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
    monkeypatch.setattr(settings, "LOG_LEVEL_GIVEN", "loud")
    with pytest.raises(SystemCheckError, match="LOG_LEVEL is 'loud', which is no level"):
        call_command("check", "--tag", "fencepost")
