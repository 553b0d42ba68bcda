"""An incident by REST, by pages and by command: opened, led, noted, gathered into one timeline, closed with its figures."""

from __future__ import annotations

import datetime as dt
import json

from django.core.management import call_command
from django.utils import timezone

from recovery_api.models import Incident
from recovery_api.services.freezes import freeze_set
from recovery_api.services.plans import plan_approve
from recovery_api.services.recoveries import recovery_finish, recovery_request
from tests.integration.api.test_lists import make_audit
from tests.integration.control.conftest import make_pipeline, make_ready


def test_an_incident_is_mirrored_by_rest_from_its_name_to_its_post_mortem(pipeline, now, operator, viewer) -> None:
    noticed = now - dt.timedelta(minutes=5)
    other = make_pipeline("other", now - dt.timedelta(days=1))
    owed = make_audit(pipeline, noticed - dt.timedelta(minutes=3), status="owed", lost_count=44)
    type(owed).objects.update(record_read_at=noticed - dt.timedelta(minutes=3))
    freeze_set(other, "another story", actor="ada", now=now)
    body = {"title": "Orders owed", "pipelines": ["mail"], "severity": "critical", "noticed_at": noticed.isoformat()}
    assert viewer.post("/incidents", body).status_code == 403
    opened = operator.post("/incidents", {**body, "alert": "owed/mail"})
    assert opened.status_code == 201 and opened.body["alerts"] == ["owed/mail"]
    path = opened.headers["Location"].removeprefix("/api/v1")
    assert operator.post(f"{path}/notes", {"text": "the relay <b>died</b>"}).status_code == 201
    assert operator.post(f"{path}/notes", {"text": " "}).status_code == 422
    plan = make_ready(pipeline, now)
    plan_approve(plan.id, plan.digest, "anna", now)
    recovery = recovery_request(plan.id, "the relay died", "mail", "olga", now=now, wake=False)
    type(recovery).objects.update(landed_count=44)
    recovery.refresh_from_db()
    recovery_finish(recovery, outcome="exactly_once", says="Done.", actor="w", now=timezone.now())
    well = make_audit(pipeline, timezone.now(), status="exactly_once", exit_code=0, lost_count=0)
    refused = operator.call("PATCH", path, {"state": "closed"})
    assert (refused.status_code, refused.body["code"]) == (409, "refused")
    closed = operator.call("PATCH", path, {"state": "closed", "cause": "An expired certificate.", "commander": "ada"})
    assert closed.body["closed_at"] and closed.body["commander"] == "ada"
    events = operator.get(f"{path}/timeline").body["items"]
    kinds = [one["kind"] for one in events]
    assert {"incident opened", "incident noted", "plan approved", "recovery finished", "incident changed"} <= set(kinds)
    assert all(one["pipeline"] in ("mail", None) for one in events), "nothing of the other pipeline"
    told = operator.get(f"{path}/post-mortem").body
    figures = told["figures"]
    assert figures["approvers"] == ["anna"] and figures["delivered"] == "44" and figures["events_touched"] == "44"
    assert figures["first_owed_at"].startswith(f"{noticed - dt.timedelta(minutes=3):%Y-%m-%dT%H:%M}")
    assert figures["well_at"] == well.record_read_at.isoformat() and figures["first_action_by"] == "author"
    assert "An expired certificate." in told["markdown"] and "<b>died" not in told["html"]
    assert "&lt;b&gt;died&lt;/b&gt;" in told["html"] and "<table>" in told["html"]
    assert [one["title"] for one in operator.get("/incidents?pipeline=mail").body["items"]] == ["Orders owed"]
    assert operator.get("/incidents?is_live=true").body["items"] == []


def test_a_change_of_an_incident_that_somebody_changed_meanwhile_is_refused(pipeline, operator, admin) -> None:
    opened = operator.post("/incidents", {"title": "Orders owed", "pipelines": ["mail"]})
    path, read = opened.headers["Location"].removeprefix("/api/v1"), opened.headers["ETag"]
    assert operator.get(path).headers["ETag"] == read
    operator.post(f"{path}/notes", {"text": "the relay died"})
    first = admin.call("PATCH", path, {"commander": "adam"}, If_Match=read)
    assert first.status_code == 200 and first.headers["ETag"] != read, "a note is no other version"
    late = operator.call("PATCH", path, {"commander": "olga"}, If_Match=read)
    assert (late.status_code, late.body["code"]) == (412, "outdated") and "Orders owed" in late.body["detail"]
    moved = operator.call("PATCH", path, {"pipelines": []}, If_Match=first.headers["ETag"])
    assert moved.status_code == 200 and moved.headers["ETag"] != first.headers["ETag"], "its pipelines count"
    assert operator.get(path).body["commander"] == "adam"


def test_bad_input_opens_nothing(pipeline, operator) -> None:
    for body, field in (
        ({"title": " "}, "title"),
        ({"title": "a\nb"}, "title"),
        ({"title": "x", "severity": "loud"}, "severity"),
        ({"title": "x", "pipelines": ["mial"]}, "pipelines"),
        ({"title": "x", "noticed_at": "2099-01-01T00:00:00Z"}, "noticed_at"),
    ):
        answer = operator.post("/incidents", body)
        assert answer.status_code in (400, 422) and answer.body["field"] == field, (body, answer.body)
    assert not Incident.objects.exists()


def test_the_same_by_pages_and_by_command(pipeline, operator, capsys) -> None:
    client = operator.client
    from django.contrib.auth.models import User

    client.force_login(User.objects.get(username="olga"))
    assert client.post("/incidents/", {"title": "", "severity": "error"}).status_code == 400
    made = client.post("/incidents/", {"title": "<b>Owed</b>", "severity": "critical", "pipeline": ["mail"]})
    address = made.headers["Location"]
    page = client.get(address).content.decode()
    assert "&lt;b&gt;Owed&lt;/b&gt;" in page and "<b>Owed</b>" not in page
    assert client.post(f"{address}note/", {"text": "looked at the relay"}).status_code == 302
    assert client.post(address, {"state": "closed"}).status_code == 409
    assert "looked at the relay" in client.get(address).content.decode()
    assert client.post(address, {"state": "closed", "cause": "a typo"}).status_code == 302
    for form, kind in (("md", "text/markdown"), ("html", "text/html")):
        file = client.get(f"{address}post-mortem.{form}")
        assert file.headers["Content-Type"].startswith(kind) and b"a typo" in file.content
    assert client.get(f"{address}post-mortem.pdf").status_code == 404
    assert "Incidents" in client.get("/incidents/?pipeline=mail").content.decode()
    call_command("incident", "list", "--all", "--json")
    [row] = json.loads(capsys.readouterr().out)["incidents"]
    call_command("incident", "change", row["incident"], "--state", "open", "--actor", "ada")
    call_command("incident", "note", row["incident"], "again", "--actor", "ada")
    call_command("incident", "post-mortem", row["incident"])
    assert "again" in capsys.readouterr().out
    call_command("incident", "open", "a second one", "--pipeline", "mail", "--severity", "warning", "--actor", "ada")
    assert "Z by command, as ada (not signed in)" in capsys.readouterr().out
    assert Incident.objects.count() == 2
