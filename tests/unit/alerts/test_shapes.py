from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from recovery_api.domain.alerts.causes import Cause, Severity
from recovery_api.domain.alerts.messages import MemberTold, Message
from recovery_api.domain.alerts.outbox import RESENDS_OUTLIVED, RESENT_EVERY, DeliveryKind
from recovery_api.domain.alerts.shapes.base import Shape
from recovery_api.domain.alerts.shapes.mail import mail
from recovery_api.domain.alerts.shapes.requests import REQUESTS
from recovery_api.domain.alerts.signatures import is_signed

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEMAS = {
    Shape.PAGERDUTY: Path(__file__).parent / "schemas" / "pagerduty.json",
    Shape.ALERTMANAGER: Path(__file__).parent / "schemas" / "alertmanager.json",
    Shape.SLACK: Path(__file__).parent / "schemas" / "slack.json",
    Shape.JSON: Path(__file__).parents[3] / "docs" / "webhook.schema.json",
}


def message(kind: DeliveryKind = DeliveryKind.TRIGGER, count: int = 1, says: str = "44 events are owed.") -> Message:
    members = tuple(MemberTold(f"alert-{n}", f"orders-{n}", says, NOON - timedelta(hours=1)) for n in range(count))
    return Message(
        id="3f0f4d5e-0000-4000-8000-000000000001",
        key="6c1b-1",
        kind=kind,
        cause=Cause.OWED.value,
        severity=Severity.CRITICAL,
        end="mail",
        count=count,
        members=members,
        since=NOON - timedelta(hours=1),
        due_since=NOON,
        labels={"team": "payments"},
        url="https://fencepost.example/alerts/1/",
        runbook_url="https://fencepost.example/runbooks/owed/",
    )


def sent(shape: Shape, of: Message, at: datetime = NOON) -> Any:
    return json.loads(REQUESTS[shape](of, "secret", at).body)


def test_every_shape_but_email_has_a_request_and_a_schema() -> None:
    assert set(REQUESTS) == set(SCHEMAS) == set(Shape) - {Shape.EMAIL}


@pytest.mark.parametrize("shape", SCHEMAS, ids=str)
@pytest.mark.parametrize("kind", DeliveryKind, ids=str)
def test_what_is_sent_is_as_the_destination_documents_it(shape: Shape, kind: DeliveryKind) -> None:
    schema = json.loads(SCHEMAS[shape].read_text(encoding="utf-8"))
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    for one in (message(kind), message(kind, 300), message(kind, 1000, "long " * 400), message(kind, 0)):
        jsonschema.validate(sent(shape, one), schema, jsonschema.Draft202012Validator, format_checker=checker)


def test_a_page_of_300_pipelines_says_300_everywhere_and_names_each_where_there_is_room() -> None:
    many = message(count=300)
    event = sent(Shape.PAGERDUTY, many)
    assert "300 pipelines" in event["payload"]["summary"] and len(event["payload"]["custom_details"]["members"]) == 300
    assert "orders-299" in event["payload"]["custom_details"]["says"]
    assert len(sent(Shape.JSON, many)["members"]) == 300
    assert "orders-299" in sent(Shape.ALERTMANAGER, many)[0]["annotations"]["members"]
    assert "300 pipelines" in sent(Shape.SLACK, many)["text"]
    assert "orders-299" in mail(many, NOON).text


def test_alertmanager_knows_an_alert_by_what_does_not_change_and_forgets_it_after_three_missed_re_sends() -> None:
    first, later = (sent(Shape.ALERTMANAGER, one)[0] for one in (message(), message(DeliveryKind.UPDATE, 7)))
    assert first["labels"] == later["labels"]
    ends_at = datetime.fromisoformat(first["endsAt"])
    assert ends_at - NOON > RESENDS_OUTLIVED * RESENT_EVERY
    assert datetime.fromisoformat(sent(Shape.ALERTMANAGER, message(DeliveryKind.RESOLVE))[0]["endsAt"]) == NOON


def test_a_pipelines_name_is_no_markup_in_slack_and_no_second_line_of_a_subject() -> None:
    evil = MemberTold("1", "<!channel>\r\nBcc: all@example.org", "x", NOON)
    one = replace(message(), members=(evil,))
    assert "<!channel>" not in json.dumps(sent(Shape.SLACK, one)["blocks"][1:])
    assert "\n" not in mail(one, NOON).subject and "\r" not in mail(one, NOON).subject


def test_what_leaves_late_says_so_first() -> None:
    months = NOON + timedelta(days=120)
    for shape in (Shape.SLACK, Shape.PAGERDUTY, Shape.ALERTMANAGER, Shape.JSON):
        assert "LATE" in json.dumps(sent(shape, message(), months)) and "LATE" not in json.dumps(sent(shape, message()))
    assert mail(message(), months).text.startswith("LATE")
    assert sent(Shape.JSON, message(), months)["is_late"]


def test_the_signature_covers_id_time_and_body() -> None:
    request = REQUESTS[Shape.JSON](message(), "whsec_c2VjcmV0", NOON)
    id_, stamp, signature = (request.headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
    right = {
        "secret": "whsec_c2VjcmV0",
        "id_": id_,
        "stamp": stamp,
        "signatures": signature,
        "body": request.body,
        "now": NOON,
    }
    assert is_signed(**right)  # type: ignore[arg-type]
    wrong: list[dict[str, Any]] = [
        {"secret": "other"},
        {"id_": "another"},
        {"stamp": str(int(stamp) + 1)},
        {"body": request.body + b" "},
        {"now": NOON + timedelta(minutes=6)},
    ]
    for one in wrong:
        assert not is_signed(**{**right, **one})


def test_a_message_survives_its_row() -> None:
    assert Message.from_row(json.loads(json.dumps(message().as_row()))) == message()
