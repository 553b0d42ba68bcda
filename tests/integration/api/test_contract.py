"""The OpenAPI document is clean, and schemathesis finds nothing in the running API that is not as it says."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application
from django.db import transaction
from django.utils import timezone

from recovery_api.domain.alerts.causes import Cause, Scope
from recovery_api.domain.alerts.evaluation import Observed, Subject
from recovery_api.exceptions import PROBLEMS
from recovery_api.models import Alert, Plan
from recovery_api.services.alert_quiet import mute_add
from recovery_api.services.alerts import Evaluation
from recovery_api.services.audits import audit_request
from recovery_api.services.destinations import destination_add, destination_test
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.omissions import omission_acknowledge
from recovery_api.services.recoveries import recovery_finish, recovery_request
from tests.integration.api.conftest import Api, make_api
from tests.integration.api.test_lists import make_audit

METHODS = ("get", "post", "patch", "delete")


def test_document_is_valid_and_without_a_warning(tmp_path):
    file = tmp_path / "openapi.json"
    call_command("spectacular", "--validate", "--fail-on-warn", "--format", "openapi-json", "--file", str(file))
    document = json.loads(file.read_text())
    assert document["openapi"] == "3.1.0"
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method not in METHODS:
                continue
            problems = {
                code for code, one in operation["responses"].items() if "application/problem+json" in one["content"]
            }
            assert {"400", "429", "500"} <= problems, (path, method)
            keys = [one["name"] for one in operation.get("parameters", []) if one["in"] == "header"]
            is_edit = method == "patch" and path.split("/")[3] in (
                "pipelines",
                "sources",
                "sinks",
                "destinations",
                "incidents",
            )
            wanted = ["Idempotency-Key"] if method == "post" else ["If-Match"] if is_edit else []
            assert keys == wanted, (path, method)
            assert operation["summary"] and operation["tags"]


def test_document_is_served_and_the_page_draws_it_without_inline_script(db):
    assert Api().get("/schema").body["info"]["title"] == "Fencepost"
    page = Api().get("/docs")
    html = page.content.decode()
    assert page.status_code == 200 and "<style" not in html and " style=" not in html
    assert all("src=" in tag for tag in html.split("<script")[1:])
    assert "http://" not in html and "https://" not in html


CONFIG = """
[generation]
mode = "all"

[parameters]
name = "mail"
"path.audit_id" = "{audit}"
"path.plan_id" = "{plan}"
"path.recovery_id" = "{recovery}"
"path.intent_id" = "{intent}"
"path.alert_id" = "{alert}"
"path.delivery_id" = "{delivery}"
"path.mute_id" = "{mute}"

[phases.coverage]
unexpected-methods = []  # test_access tries every method of every route

[checks]
positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409, 412, 422, 429]
"""


class Prompt(WSGIRequestHandler):
    """Headers and body are two writes; held together they wait for the client's delayed acknowledgement, 40 ms each."""

    disable_nagle_algorithm = True


@pytest.fixture
def server(transactional_db: None) -> Iterator[str]:
    """The API on loopback, in threads of this process, with this test's settings; its address."""
    httpd = ThreadedWSGIServer(("127.0.0.1", 0), Prompt)
    httpd.set_app(get_wsgi_application())
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}"
    httpd.shutdown()
    httpd.server_close()
    thread.join()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_schemathesis_finds_no_failure_against_the_running_api(
    server: str, approved_plan: Plan, tmp_path: Path, now: Any
) -> None:
    pipeline = approved_plan.pipeline
    recovery = recovery_request(approved_plan.id, "r", "mail", "x", now=now, wake=False)
    recovery_finish(
        recovery, outcome="exactly_once", says="Done.", actor="w", now=now, certificate={"a": 1}, certificate_digest="d"
    )
    for create, kind in ((source_create, "paper_source"), (sink_create, "paper_sink")):
        create("mail", kind, {"path": "p"}, actor="x", now=now)
    omission_acknowledge(pipeline, "7", reason="r", actor="x", now=now)
    audit = make_audit(pipeline, timezone.now(), findings=[])
    intent = audit_request(pipeline, actor="x", now=now, wake=False)
    hook = destination_add("mail", "json", address="https://x.example/", secret="env:X", actor="x", now=now)
    delivery = destination_test(hook, actor="x", now=now)
    mute = mute_add("label", "team=a", note="n", until=now + dt.timedelta(days=1), actor="x", now=now)
    seen = Observed(Cause.OWED, Subject(Scope.PIPELINE, pipeline.pk), True, now, "Owed.")
    with transaction.atomic():
        Evaluation(now, now).run([seen])
    alert = Alert.objects.get()
    api = make_api(User.objects.create_superuser("root"))
    config = tmp_path / "schemathesis.toml"
    ids = {"audit": audit.id, "plan": approved_plan.id, "recovery": recovery.id, "intent": intent.id}
    ids |= {"alert": alert.id, "delivery": delivery.message_id, "mute": mute.id}
    config.write_text(CONFIG.format(**ids))
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")),
            "--config-file",
            str(config),
            "run",
            f"{server}/api/v1/schema",
            "--header",
            f"Authorization: Bearer {api.token}",
            "--max-examples=4",
            "--seed=1",
            "--no-color",
            "--continue-on-failure",
            "--exclude-path-regex=^/api/v1/tokens/",
            "--exclude-operation-id=revoke_tokens",  # it would end its own
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=840,
    )
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]


def test_page_of_the_manual_names_every_code_with_its_status():
    manual = (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8")
    rows = [row.split("|") for row in manual.splitlines() if row.startswith("| ") and row[2:5].strip().isdigit()]
    named = {code: row[1].split() for row in rows for code in row[2].replace("`", " ").split()}
    assert set(named) == set(PROBLEMS)
    assert all(str(PROBLEMS[code].status) in statuses for code, statuses in named.items())
