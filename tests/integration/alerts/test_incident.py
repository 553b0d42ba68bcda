"""One incident for real: its relay killed, paged, its runbook opened, recovered by two people, resolved by the recovery's own audit, and told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.contrib.auth.models import User
from django.test import Client

from recovery_api.domain.alerts.signatures import is_signed
from recovery_api.models import Alert
from recovery_api.selectors.clock import now_get
from recovery_api.services.destinations import destination_add
from tests.integration.alerts.conftest import Receiver
from tests.integration.api.conftest import Api, make_api, make_person
from tests.integration.recovery.world import World
from workers.alerts.pager import Pager
from workers.relay import CURSOR_TABLE
from workers.runners import intent_run

ROOT = Path(__file__).parents[3]
KEYS = [f"k{number}" for number in range(6)]


def worked(api: Api, answer: Any) -> Any:
    """A worker comes, and does what the answer says is queued."""
    assert answer.status_code == 202, answer.body
    intent = (answer.body.get("work") or answer.body)["intent"]
    intent_run(intent, "worker")
    done = api.get(f"/intents/{intent}").body
    assert done["state"] == "done", done
    return done


def paged(receiver: Receiver) -> list[dict[str, Any]]:
    """What came in of events that are owed, each rightly signed."""
    told = []
    for _, headers, body in receiver.requests:
        named = [headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature")]
        assert is_signed("whsec_c2VjcmV0", *named, body, now_get())
        told.append(json.loads(body))
    return [one for one in told if one["cause"] == "owed"]


def relay_killed(world: World, tmp_path: Path) -> None:
    """A relay of its own process, which SIGKILL ends between the sink's acceptance of its first batch, two events, and its checkpoint."""
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute(CURSOR_TABLE.format(table="relay_cursor"))
    ends = [f"--source={world.source_options['connection']}", f"--sink={world.sink_options['connection']}"]
    tables = ["--outbox=public.outbox", "--cursor=public.relay_cursor", "--spelling=xid8_bigint"]
    ended = subprocess.run(
        [sys.executable, "-m", "workers.relay", *ends, *tables, "--batch-events=2", "--drain"],
        cwd=ROOT,
        env={**os.environ, "FENCEPOST_CRASH": f"relay.accepted:{tmp_path / 'killed'}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert world.accepted_keys() == KEYS[:2]


def test_an_incident_is_paged_recovered_by_two_people_resolved_and_told(
    world: World, receiver: Receiver, tmp_path: Path
) -> None:
    secret = "env:FENCEPOST_END_HOOK_SECRET"
    destination_add("on call", "json", address=receiver.url, secret=secret, actor="root", now=now_get())
    operator, approver = make_api(make_person("olga", "operator")), make_api(make_person("anna", "approver"))
    pages = Client()
    pages.force_login(User.objects.get(username="olga"))
    world.commit(KEYS)
    world.until_safe()
    relay_killed(world, tmp_path)
    worked(operator, operator.post("/audits", {"pipeline": "orders-mail"}))

    Pager().once()
    (page,) = paged(receiver)
    assert (page["kind"], page["count"], page["members"][0]["name"]) == ("trigger", 1, "orders-mail")
    runbook = pages.get(urlsplit(page["runbook_url"]).path).content.decode()
    assert "4 of 6 events" in runbook and "manage.py plan orders-mail --wait" in runbook
    alert = Alert.objects.get(cause="owed")
    form = pages.get(f"/incidents/?alert={alert.pk}&pipeline=orders-mail").content.decode()
    assert "Owed: orders-mail" in form and str(alert.pk) in form
    opened = {"title": "The relay died", "severity": "critical", "pipeline": ["orders-mail"], "alert": str(alert.pk)}
    incident = pages.post("/incidents/", opened).headers["Location"]
    assert f"/alerts/{alert.pk}/" in pages.get(incident).content.decode()

    planned = worked(operator, operator.post("/plans", {"pipeline": "orders-mail"}))
    plan = operator.get(f"/plans/{planned['plan']}").body
    assert operator.post(f"/plans/{plan['plan']}/approval", {"digest": plan["digest"]}).status_code == 403
    assert approver.post(f"/plans/{plan['plan']}/approval", {"digest": plan["digest"]}).status_code == 200
    wanted = {"plan": plan["plan"], "digest": plan["digest"], "pipeline": "orders-mail", "reason": "the relay died"}
    worked(approver, approver.post("/recoveries", wanted))
    assert sorted(world.accepted_keys()) == KEYS

    Pager().once()
    alert.refresh_from_db()
    assert alert.resolved_at is not None, "the recovery's own audit resolves it alone"
    over = paged(receiver)[-1]
    assert (over["kind"], over["key"]) == ("resolve", page["key"])

    path = f"/incidents/{incident.strip('/').rpartition('/')[2]}"
    assert operator.call("PATCH", path, {"state": "closed", "cause": "A certificate expired."}).status_code == 200
    told = operator.get(f"{path}/post-mortem").body
    figures = told["figures"]
    assert (figures["delivered"], figures["events_touched"], figures["approvers"]) == ("4", "4", ["anna"])
    moments = [datetime.fromisoformat(figures[name]) for name in ("first_owed_at", "noticed_at", "well_at")]
    assert moments == sorted(moments) and moments[1] == alert.first_opened_at
    assert figures["first_action_by"] == "olga" and "A certificate expired." in told["markdown"]
    lines = [line.split(" | ")[2] for line in told["markdown"].splitlines() if line.count(" | ") >= 4]
    assert lines.index("alert opened") < lines.index("plan approved") < lines.index("alert resolved")
