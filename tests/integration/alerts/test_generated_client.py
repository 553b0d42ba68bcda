"""The same incident once by REST: the product's web server, and a tool with a client generated from its document, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from django.db import connection

from recovery_api.models import Alert, Intent, IntentState, Recovery
from tests.faults.processes import environment
from tests.integration.api.conftest import make_api, make_person
from tests.integration.recovery.world import World
from workers.alerts.pager import Pager
from workers.demo.visit import web_running
from workers.runners import intent_run

pytestmark = pytest.mark.slow
TOOL = Path(__file__).with_name("incident_tool.py")
KEYS = [f"k{number}" for number in range(6)]
ROLES = {"adam": "admin", "olga": "approver", "anna": "approver"}


@contextmanager
def worker_and_pager() -> Iterator[None]:
    """A thread that does what is queued; after each piece the pager looks and sends."""
    stop = threading.Event()

    def work() -> None:
        pager = Pager()
        try:
            while not stop.is_set():
                queued = Intent.objects.filter(state=IntentState.QUEUED).order_by("created_at").first()
                if queued is None:
                    stop.wait(0.05)
                    continue
                intent_run(str(queued.id), "worker")
                pager.once()
        finally:
            pager.deliverer.close()
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def client_generate(address: str, folder: Path) -> None:
    """A client of the served document, as anybody makes one. A part of it that cannot be generated is a fault of the document."""
    with urllib.request.urlopen(f"{address}api/v1/schema", timeout=60) as document:
        (folder / "openapi.json").write_bytes(document.read())
    (folder / "config.json").write_text('{"post_hooks": []}')
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json", "--meta", "none"]
    command += ["--output-path", "fencepost_client", "--config", "config.json", "--fail-on-warning"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(600)
def test_a_tool_with_a_client_of_the_document_walks_an_incident_from_its_page_to_its_post_mortem(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = {f"{name.upper()}_TOKEN": make_api(make_person(name, role)).token for name, role in ROLES.items()}
    world.commit(KEYS)
    world.deliver(["k1", "k3"])  # and the relay dies
    world.until_safe()
    for name, value in environment(SPARK_REMOTE="").items():
        monkeypatch.setenv(name, value)
    with web_running(tmp_path / "web.log", 0) as address:
        client_generate(address, tmp_path)
        with worker_and_pager():
            done = subprocess.run(
                [sys.executable, str(TOOL), address.rstrip("/"), "orders-mail"],
                env={**os.environ, **tokens, "PYTHONPATH": str(tmp_path)},
                capture_output=True,
                text=True,
                timeout=240,
            )
    assert done.returncode == 0, done.stderr
    saw = json.loads(done.stdout)
    assert saw["lost"] == "4" and "manage.py plan orders-mail --wait" in saw["runbook"]
    assert (saw["own_approval"], saw["approved_by"]) == ("refused", "anna")
    assert (saw["outcome"], sorted(world.accepted_keys())) == ("exactly_once", KEYS)
    recovery = Recovery.objects.get(pk=saw["recovery"])
    assert saw["alert_state"] == "resolved" and saw["resolve"] == saw["page"]
    assert saw["resolved_by"] == f"audit:{recovery.audits.latest('record_read_at').pk}"
    assert (saw["incident_state"], saw["late"]) == ("closed", "outdated")
    figures = saw["figures"]
    assert (figures["delivered"], figures["events_touched"], figures["approvers"]) == ("4", "4", ["anna"])
    moments = [datetime.fromisoformat(figures[name]) for name in ("first_owed_at", "noticed_at", "well_at")]
    assert moments == sorted(moments) and moments[1] == Alert.objects.get(pk=saw["alert"]).first_opened_at
    assert figures["first_action_by"] == "olga" and "A certificate expired." in saw["markdown"]
