"""docs/api.md's walk through a whole incident, run as it is printed, by a shell with curl and jq."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.servers.basehttp import ThreadedWSGIServer
from django.core.wsgi import get_wsgi_application
from django.db import connection

from recovery_api.models import Intent, IntentState, Recovery
from tests.integration.api.conftest import Api, make_api, make_person
from tests.integration.api.test_contract import Prompt
from tests.integration.control import paper_runner
from tests.programs import program_missing

MANUAL = Path(__file__).parents[3] / "docs" / "api.md"


@pytest.fixture
def programs() -> None:
    if missing := [name for name in ("curl", "jq", "bash") if shutil.which(name) is None]:
        program_missing(f"docs/api.md's walk needs {', '.join(missing)}")


@pytest.fixture
def server(transactional_db: None) -> Iterator[str]:
    """The API on loopback. Queued work is done between two looks at it, so the first look finds it queued."""
    answer = get_wsgi_application()
    turn = threading.Lock()

    def worked_between(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with turn:
            body = b"".join(answer(environ, start))
            if environ["REQUEST_METHOD"] == "GET":
                for intent in Intent.objects.filter(state=IntentState.QUEUED):
                    paper_runner.intent_run(str(intent.id), "worker")
            connection.close()
        return [body]

    httpd = ThreadedWSGIServer(("127.0.0.1", 0), Prompt)
    httpd.set_app(worked_between)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}"
    httpd.shutdown()
    httpd.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def _answers() -> Iterator[None]:
    paper_runner.ANSWERS.clear()
    paper_runner.ANSWERS["recover"] = {"certificate": {"landed": 3}, "certificate_digest": "c1"}
    yield
    paper_runner.ANSWERS.clear()


def test_u11_the_manuals_walk_ends_with_a_certificate(programs: None, server: str, pipeline: Any) -> None:
    """As it stands: only the address and the pipeline's name are this test's."""
    [walk] = re.findall(r"```sh\n(export API=.*?)```", MANUAL.read_text(encoding="utf-8"), re.DOTALL)
    walk = walk.replace("http://127.0.0.1:8000", server).replace("orders-mail", pipeline.name)
    tokens = {
        "TOKEN": make_api(make_person("olga", "operator")).token,
        "APPROVERS_TOKEN": make_api(make_person("anna", "approver")).token,
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", walk],
        env={**os.environ, **tokens, "no_proxy": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *_, certified = done.stdout.splitlines()
    assert json.loads(certified)["certificate"] == {"landed": 3}
    assert '"lost":"3"' in done.stdout
    assert Recovery.objects.get().outcome == "exactly_once"


def test_u15_the_document_is_json_by_its_usual_name(db: None) -> None:
    for accept in ("application/json", "application/vnd.oai.openapi+json", "*/*"):
        answer = Api().get("/schema", Accept=accept)
        assert (answer.status_code, answer.body["openapi"]) == (200, "3.1.0"), accept


def test_u15_statuses_are_filtered_by_their_word(operator: Api, pipeline: Any) -> None:
    def names(word: str) -> list[str]:
        return [row["name"] for row in operator.get(f"/statuses?status={word}").body["items"]]

    assert (names("unknown"), names("owed")) == (["mail"], [])
    intent = operator.post("/audits", {"pipeline": "mail"}).body["intent"]
    paper_runner.intent_run(intent, "worker")
    assert (names("unknown"), names("owed")) == ([], ["mail"])
    refused = operator.get("/statuses?status=owned")
    assert (refused.status_code, refused.body["field"]) == (400, "status")
    assert "Did you mean 'owed'?" in refused.body["detail"]


def test_u15_accepted_work_says_when_to_look_again(operator: Api, admin: Api, pipeline: Any) -> None:
    for client, path, body in (
        (operator, "/audits", {"pipeline": "mail"}),
        (operator, "/plans", {"pipeline": "mail"}),
        (admin, "/pipelines/mail/test", None),
    ):
        for _ in range(2):  # the second is the remembered answer
            answer = client.post(path, body, Idempotency_Key=f"key {path}")
            assert (answer.status_code, answer.headers["Retry-After"]) == (202, "1"), path


def test_u15_members_of_plans_and_work_are_typed(db: None) -> None:
    shapes = Api().get("/schema").body["components"]["schemas"]

    def of(shape: str, member: str) -> dict[str, Any]:
        found = shapes[f"{shape}Shape"]["properties"][member]
        for one in (found, *found.get("allOf", ()), *found.get("oneOf", ()), *found.get("anyOf", ())):
            if "$ref" in one:
                return dict(shapes[one["$ref"].rsplit("/", 1)[1]])
        return dict(found)

    assert of("Plan", "batch")["additionalProperties"]["type"] == "string"
    assert {"step", "done", "total", "unit", "rate_per_second"} <= set(of("Intent", "progress")["properties"])
    assert {"code", "data", "text", "is_transient"} <= set(of("Intent", "error")["properties"])
    assert {"audit", "plan", "recovery", "exit_code"} <= set(of("Intent", "result")["properties"])
