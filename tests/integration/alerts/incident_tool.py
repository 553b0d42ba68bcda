"""Somebody else's incident tool, a process of its own: it knows Fencepost by a client generated from its document, and by signed webhooks.

One law: nothing of the product is imported, nothing is read but what REST and the webhook say. At the end it prints, as JSON, what it saw.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import queue
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import httpx
from fencepost_client import AuthenticatedClient
from fencepost_client.api.alerts import show_alert, show_runbook
from fencepost_client.api.audits import request_audit, show_audit
from fencepost_client.api.destinations import add_destination
from fencepost_client.api.incidents import create_incident, show_incident, show_post_mortem, update_incident
from fencepost_client.api.intents import show_intent
from fencepost_client.api.plans import approve_plan, request_plan, show_plan
from fencepost_client.api.recoveries import apply_plan, show_recovery
from fencepost_client.models import (
    ApprovalBody,
    AuditBody,
    DestinationBody,
    IncidentBody,
    IncidentChange,
    IncidentState,
    PlanBody,
    RecoveryBody,
)

SECRET = "whsec_c2VjcmV0"
LONGEST_SECONDS = 120


class Webhook:
    """Where Fencepost sends to. `told` waits for a message, and verifies it as Standard Webhooks 1.0.0 says."""

    def __init__(self) -> None:
        came: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                came.put(({name.lower(): text for name, text in self.headers.items()}, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}/fencepost"
        self._came = came

    def told(self, cause: str, kind: str) -> dict[str, Any]:
        """The next message of this kind about this cause."""
        while True:
            headers, body = self._came.get(timeout=LONGEST_SECONDS)
            signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
            key = base64.b64decode(SECRET.removeprefix("whsec_"))
            signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
            assert hmac.compare_digest(headers["webhook-signature"], f"v1,{signature}"), headers
            message: dict[str, Any] = json.loads(body)
            if (message["cause"], message["kind"]) == (cause, kind):
                return message


def client_of(address: str, person: str) -> AuthenticatedClient:
    token = os.environ[f"{person.upper()}_TOKEN"]
    limit = httpx.Timeout(LONGEST_SECONDS)
    return AuthenticatedClient(base_url=address, token=token, timeout=limit, raise_on_unexpected_status=True)


def answered(response: Any, status: int = 200) -> Any:
    """What was answered, as the document's own type."""
    assert response.status_code == status, (response.status_code, response.content)
    assert response.parsed is not None, response.content
    return response.parsed


def worked(client: AuthenticatedClient, asked: Any) -> Any:
    """The work that was asked for, once it is over."""
    intent = answered(asked, 202).intent
    while (found := answered(show_intent.sync_detailed(intent, client=client, wait=30))).state in ("queued", "taken"):
        pass
    assert found.state == "done", found.to_dict()
    return found


def walk(address: str, pipeline: str) -> dict[str, Any]:
    """From the page to the post-mortem. Olga and Anna may both approve; Olga plans."""
    adam, olga, anna = (client_of(address, person) for person in ("adam", "olga", "anna"))
    webhook = Webhook()
    reference = "env:FENCEPOST_END_HOOK_SECRET"
    told = {"name": "incident tool", "shape": "json", "address": webhook.url, "secret": reference}
    answered(add_destination.sync_detailed(client=adam, body=DestinationBody.from_dict(told)), 201)
    seen = worked(olga, request_audit.sync_detailed(client=olga, body=AuditBody(pipeline=pipeline)))
    verdict = answered(show_audit.sync_detailed(seen.result.audit, client=olga))

    page = webhook.told("owed", "trigger")
    alert = answered(show_alert.sync_detailed(UUID(page["members"][0]["alert"]), client=olga))
    runbook = answered(show_runbook.sync_detailed(alert.cause, client=olga, pipeline=alert.pipeline))
    named = IncidentBody(
        title="The relay died",
        pipelines=[alert.pipeline],
        alert=str(alert.alert),
        noticed_at=alert.first_opened_at,
    )
    incident = answered(create_incident.sync_detailed(client=olga, body=named), 201).incident

    planned = worked(olga, request_plan.sync_detailed(client=olga, body=PlanBody(pipeline=pipeline)))
    plan = answered(show_plan.sync_detailed(planned.plan, client=olga))
    approval = ApprovalBody(digest=plan.digest)
    own = answered(approve_plan.sync_detailed(plan.plan, client=olga, body=approval), 409)
    approved = answered(approve_plan.sync_detailed(plan.plan, client=anna, body=approval))
    applied = RecoveryBody(plan=plan.plan, digest=plan.digest, pipeline=pipeline, reason="The relay died at 03:12.")
    recovery = answered(apply_plan.sync_detailed(client=olga, body=applied, idempotency_key="apply-1"), 202).recovery
    while (ended := answered(show_recovery.sync_detailed(recovery, client=olga, wait=30))).outcome is None:
        pass

    over = webhook.told("owed", "resolve")
    resolved = answered(show_alert.sync_detailed(alert.alert, client=olga))
    read = show_incident.sync_detailed(incident, client=olga).headers["ETag"]
    closing = IncidentChange(state=IncidentState.CLOSED, cause="A certificate expired.")
    closed = answered(update_incident.sync_detailed(incident, client=olga, body=closing, if_match=read))
    late = answered(update_incident.sync_detailed(incident, client=anna, body=closing, if_match=read), 412)
    report = answered(show_post_mortem.sync_detailed(incident, client=olga))
    return {
        "lost": verdict.lost,
        "page": page["key"],
        "resolve": over["key"],
        "alert": str(alert.alert),
        "alert_state": resolved.state,
        "resolved_by": resolved.history[-1].evidence,
        "runbook": runbook.markdown,
        "own_approval": own.code,
        "approved_by": approved.approved_by,
        "recovery": str(recovery),
        "outcome": ended.outcome,
        "incident_state": closed.state,
        "late": late.code,
        "figures": report.figures.to_dict(),
        "markdown": report.markdown,
    }


if __name__ == "__main__":
    print(json.dumps(walk(*sys.argv[1:])))
