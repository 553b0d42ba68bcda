"""What tools lean on: a look that waits, an ETag with its If-Match, lists by owner and label, the log's lines."""

from __future__ import annotations

import logging
import threading

import pytest
from django.utils import timezone

from recovery_api.models import Intent, Pipeline
from recovery_api.services.audits import audit_request
from recovery_api.services.destinations import destination_add
from recovery_api.services.intents import intent_cancel
from recovery_api.services.recoveries import recovery_finish, recovery_request
from recovery_api.views import waiting


def test_a_look_waits_for_the_end_and_says_when_to_look_again(pipeline, operator, monkeypatch) -> None:
    intent = audit_request(pipeline, actor="x", now=timezone.now(), wake=False)
    looked = threading.Event()

    def wait(_: threading.Event, timeout: float | None = None) -> bool:
        looked.set()
        intent_cancel(intent, actor="x", now=timezone.now())
        return False

    monkeypatch.setattr(waiting.threading.Event, "wait", wait)
    ended = operator.get(f"/intents/{intent.id}?wait=30")
    monkeypatch.undo()
    assert looked.is_set() and ended.body["state"] == "cancelled" and "Retry-After" not in ended.headers
    again = audit_request(pipeline, actor="x", now=timezone.now(), wake=False)
    answer = operator.get(f"/intents/{again.id}?wait=1")
    assert (answer.body["state"], answer.headers["Retry-After"]) == ("queued", "1")
    assert operator.get(f"/intents/{again.id}?wait=61").status_code == 400


def test_a_process_whose_places_are_taken_answers_at_once(pipeline, operator, monkeypatch) -> None:
    intent = audit_request(pipeline, actor="x", now=timezone.now(), wake=False)
    monkeypatch.setattr(waiting, "_places", threading.BoundedSemaphore(1))
    assert waiting._places.acquire(blocking=False)

    def never(_: threading.Event, timeout: float | None = None) -> bool:
        raise AssertionError("it waits")

    monkeypatch.setattr(waiting.threading.Event, "wait", never)
    answer = operator.get(f"/intents/{intent.id}?wait=30")
    assert (answer.status_code, answer.headers["Retry-After"]) == (200, "1")


def test_a_finished_recovery_is_answered_at_once(approved_plan, approver, now) -> None:
    recovery = recovery_request(approved_plan.id, "r", "mail", "x", now=now, wake=False)
    assert approver.get(f"/recoveries/{recovery.id}").headers["Retry-After"] == "1"
    recovery_finish(recovery, outcome="stopped", says="Stopped.", actor="w", now=now)
    answer = approver.get(f"/recoveries/{recovery.id}?wait=30")
    assert answer.body["outcome"] == "stopped" and "Retry-After" not in answer.headers


@pytest.mark.parametrize("path", ["/pipelines/mail", "/sources/mail-orders", "/sinks/mail-sink"])
def test_a_change_of_what_somebody_changed_meanwhile_is_refused(pipeline, admin, path) -> None:
    options = {"path": "elsewhere"} if "pipelines" not in path else {"owner": "ada"}
    read = admin.get(path).headers["ETag"]
    first = admin.call("PATCH", path, {"options": options}, If_Match=read)
    assert first.status_code == 200 and first.headers["ETag"] != read
    yesterday = admin.call(
        "PATCH", path, {"options": {**options, **({} if "pipelines" in path else {"path": "x"})}}, If_Match=read
    )
    assert (yesterday.status_code, yesterday.body["code"]) == (412, "outdated")
    assert "Read it again" in yesterday.body["detail"]
    assert admin.get(path).body["options"].items() >= options.items()
    assert admin.call("PATCH", path, {"options": options}, If_Match=f'"x", {first.headers["ETag"]}').status_code == 200
    assert admin.call("PATCH", path, {"options": options}, If_Match="*").status_code == 200
    assert admin.call("PATCH", path, {"options": options}, If_Match=f"W/{first.headers['ETag']}").status_code == 412
    assert admin.call("PATCH", path, {"options": options}, If_Match="unquoted").status_code == 400


def test_a_change_of_a_destination_that_somebody_changed_meanwhile_is_refused(db, admin, now) -> None:
    destination_add("hook", "json", address="https://a.example/", secret="env:FENCEPOST_END_X", actor="root", now=now)
    read = admin.get("/destinations/hook").headers["ETag"]
    first = admin.call("PATCH", "/destinations/hook", {"address": "https://b.example/"}, If_Match=read)
    assert first.status_code == 200 and first.headers["ETag"] != read
    late = admin.call("PATCH", "/destinations/hook", {"address": "https://c.example/"}, If_Match=read)
    assert (late.status_code, late.body["code"]) == (412, "outdated") and "Read it again" in late.body["detail"]
    assert admin.get("/destinations/hook").body["address"] == "https://b.example/"


def test_a_runbook_is_read_filled_in_and_what_a_team_added_runs_nothing(pipeline, viewer, settings, tmp_path) -> None:
    settings.FENCEPOST_TEAM_RUNBOOKS = str(tmp_path)
    (tmp_path / "owed.md").write_text("Ask the desk. <script>alert(1)</script>")
    read = viewer.get("/runbooks/owed?pipeline=mail").body
    assert (read["name"], read["pipeline"]) == ("owed", "mail") and "manage.py plan mail --wait" in read["markdown"]
    assert read["team_markdown"].startswith("Ask the desk.") and "Ask the desk." in read["html"]
    assert "<script" not in read["html"]
    plain = viewer.get("/runbooks/owed").body
    assert plain["pipeline"] is None and "manage.py plan PIPELINE --wait" in plain["markdown"]
    wrong = viewer.get("/runbooks/owd")
    assert (wrong.status_code, wrong.body["code"]) == (404, "not_found") and "owed" in wrong.body["remedy"]
    assert viewer.get("/runbooks/owed?pipeline=mial").status_code == 422


def test_lists_by_owner_and_label(pipeline, viewer) -> None:
    Pipeline.objects.update(options={"owner": "payments", "labels": {"team": "payments", "tier": "1"}})
    for path in ("/pipelines", "/statuses"):
        for query, count in {"owner=payments": 1, "owner=pay": 0, "label=team=payments": 1, "label=team=x": 0}.items():
            assert len(viewer.get(f"{path}?{query}").body["items"]) == count, (path, query)
        wrong = viewer.get(f"{path}?label=team%0A")
        assert (wrong.status_code, wrong.body["code"]) == (422, "bad_input")


@pytest.mark.django_db(transaction=True)
def test_a_step_is_one_line_of_the_log_once_it_is_committed(pipeline, caplog) -> None:
    from django.db import transaction

    from recovery_api.services.freezes import freeze_set

    with caplog.at_level(logging.INFO, "recovery_api.services.events"):
        try:
            with transaction.atomic():
                freeze_set(pipeline, "rolled back", actor="ada", now=timezone.now())
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        freeze_set(pipeline, "a bad deploy", actor="ada", now=timezone.now())
    [line] = [one for one in caplog.records if one.getMessage().startswith("frozen:")]
    assert line.fencepost_about == {"pipeline": "mail", "actor": "ada"}
    assert not Intent.objects.exists()
