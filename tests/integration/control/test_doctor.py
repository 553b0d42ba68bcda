"""The doctor: what a pipeline lacks is said with its remedy, and what it did not look at is not known."""

from __future__ import annotations

import datetime as dt
import json
import socket
from typing import Any

import pytest
from django.core.management import call_command

from recovery_api.models import Pipeline, Sink, Source
from recovery_api.selectors.clock import now_get
from recovery_api.services.freezes import freeze_set
from recovery_api.services.workers import worker_say_present


def doctor(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    code = 0
    try:
        call_command("doctor", *words, "--json")
    except SystemExit as ended:
        code = int(str(ended.code))
    return code, json.loads(capsys.readouterr().out)


def test_what_lacks_and_what_is_not_known_are_told_apart(
    pipeline: Pipeline, now: dt.datetime, capsys: pytest.CaptureFixture[str], settings: Any
) -> None:
    code, found = doctor(capsys, "mail")
    words = {row["check"]: row["word"] for row in [*found["installation"], *found["pipelines"]["mail"]]}
    assert code == 1
    assert words["control database"] == "ok" and words["worker for queue spark"] == "lacks"
    assert words["source mail-orders"] == words["strategy"] == words["verdict"] == words["headroom"] == "not known"
    assert (words["owner"], words["drills"]) == ("advice", "advice")
    assert all(row["remedy"] for row in found["pipelines"]["mail"] if row["word"] in ("lacks", "not known"))
    worker_say_present("w", ["spark", "default"], now_get(), is_stopping=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings.REDIS_URL = f"redis://127.0.0.1:{server.getsockname()[1]}/0"
        _, found = doctor(capsys, "mail")
    words = {row["check"]: row["word"] for row in found["installation"]}
    assert words["worker for queue spark"] == words["broker"] == "ok"
    _, found = doctor(capsys)
    assert {row["check"]: row["word"] for row in found["installation"]}["broker"] == "lacks", "nobody listens any more"


def test_an_end_that_cannot_serve_and_a_freeze_are_lacks(
    pipeline: Pipeline, now: dt.datetime, capsys: pytest.CaptureFixture[str]
) -> None:
    at = now_get() - dt.timedelta(days=31)
    bad = {"is_usable": False, "facts": {}, "problems": ["no table"], "weaknesses": ["no share lock"]}
    weaker = {
        "point": "fence",
        "asks": "Is there a fence?",
        "declared": "yes",
        "tested": "no",
        "because": "",
        "is_weaker": True,
    }
    Source.objects.update(report=bad, tested_at=at)
    Sink.objects.update(report={**bad, "is_usable": True, "problems": [], "points": [weaker]}, tested_at=at)
    freeze_set(pipeline, "a bad deploy", actor="ada", now=now)
    code, found = doctor(capsys, "mail")
    rows = {row["check"]: row for row in found["pipelines"]["mail"]}
    assert code == 1
    assert "no table" in rows["source mail-orders"]["says"] and rows["source mail-orders"]["word"] == "lacks"
    assert rows["source mail-orders, weakness"]["word"] == "advice"
    assert rows["sink mail-sink, fence"]["word"] == rows["freeze"]["word"] == "lacks"
    assert "manage.py unfreeze mail" in rows["freeze"]["remedy"]
