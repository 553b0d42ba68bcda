"""The pages of an incident with Django's own client: roles, escaping, states, what is refused, and how many queries."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from recovery_api.domain.coordinates import Coordinate
from recovery_api.models import (
    Audit,
    Event,
    EventContent,
    EventKind,
    IntentAction,
    Pipeline,
    Plan,
    PlanState,
    Recovery,
    RecoveryOutcome,
)
from recovery_api.services.audits import audit_record, audit_request
from recovery_api.services.event_reads import event_read_record, event_read_request
from recovery_api.services.findings import ListedFinding
from recovery_api.services.intents import intent_take
from recovery_api.services.plans import plan_approve, plan_record, plan_request, plan_start
from recovery_api.services.recoveries import recovery_finish, recovery_hold, recovery_request, recovery_want
from tests.integration.pages.fleet import pipeline_make

SCRIPT = "<script>alert('x')</script>"
FRONTIER = {"0": {"position": "9007199254740993", "ordinal": "0"}}

pytestmark = pytest.mark.django_db


@pytest.fixture
def pipeline() -> Pipeline:
    return pipeline_make('orders "mail" é 😀 <b>', timezone.now())


def listed(position: int, finding: str = "lost", cause: str = "") -> ListedFinding:
    return ListedFinding(finding, cause, "provably missing", "0", position, 0, None, None, False, b"\x01" * 32, None)


@pytest.fixture
def audit(pipeline: Pipeline) -> Audit:
    return audit_make(pipeline, 3)


def audit_make(pipeline: Pipeline, count: int) -> Audit:
    now = timezone.now()
    first = 9007199254740993
    return audit_record(
        pipeline,
        status="owed",
        exit_code=1,
        now=now,
        started_at=now,
        is_full=True,
        says=f"{count} lost. {SCRIPT}",
        lost_count=count,
        obligation_count=count,
        evidence_rows=count,
        evidence_uri="/evidence/a",
        frontier=FRONTIER,
        groups=[
            {
                "finding": "lost",
                "cause": "",
                "lane": "0",
                "is_acknowledged": False,
                "count": str(count),
                "runs_count": "1",
                "runs": [{"first_says": str(first), "last_says": str(first + count - 1), "count": str(count)}],
            }
        ],
        listing=(listed(first + number) for number in range(count)),
    )


def plan_make(pipeline: Pipeline, author: str = "ada", **more: Any) -> Plan:
    plan, _ = plan_request(pipeline, actor=author, now=timezone.now(), wake=False)
    given: dict[str, Any] = {
        "digest": "d1",
        "frontier": FRONTIER,
        "conditions": [
            {"name": "P1", "asks": "Hazard-free?", "holds": True, "says": "It is.", "remedy": ""},
            {"name": "C1", "asks": "Disciplined?", "holds": None, "says": SCRIPT, "remedy": "Close them."},
        ],
        "batch": {"provably missing": "3", "acknowledged": "0"},
        "batch_count": 3,
        "says": "3 events are owed.",
        "samples": [{"lane": "0", "position": "1", "ordinal": "0", "op": "insert", "key": SCRIPT, "content": "secret"}],
        "listing": [listed(9007199254740993), listed(2**63 - 1)],
        **more,
    }
    return plan_record(plan_start(plan), now=timezone.now(), **given)


def finished(pipeline: Pipeline, outcome: str = RecoveryOutcome.EXACTLY_ONCE) -> Recovery:
    plan = plan_make(pipeline)
    now = timezone.now()
    plan_approve(plan.id, plan.digest, "grace", now)
    recovery = recovery_request(plan.id, f"why {SCRIPT}", pipeline.name, "grace", now=now, wake=False)
    intent = intent_take(recovery.intents.get().id, "worker", now)
    certificate = {
        "recovery": str(recovery.id),
        "pipeline": pipeline.name,
        "outcome": outcome,
        "says": SCRIPT,
        "plan": {"batch": {}, "conditions": [], "approved_at": now.isoformat()},
        "claims": [],
        "made_at": now.isoformat(),
        "frontier_says": {"0": "9007199254740993"},
    }
    return recovery_finish(
        recovery,
        outcome=outcome,
        says="Done.",
        actor="worker",
        now=now,
        certificate=certificate,
        certificate_digest="x",
        intent=intent,
    )


def test_script_in_names_keys_and_sentences_is_shown_as_text(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    recovery = finished(pipeline)
    client = sign_in("approver")
    for address in (
        reverse("audit", args=[audit.id]),
        reverse("findings", args=[audit.id]),
        reverse("plan", args=[recovery.plan_id]),
        reverse("recovery", args=[recovery.id]),
        reverse("recovery-certificate", args=[recovery.id]),
        reverse("work-list"),
    ):
        page = client.get(address)
        assert page.status_code == 200, address
        assert "<script>alert" not in page.content.decode(), address


def test_coordinates_past_2_to_53_are_shown_and_linked_digit_by_digit(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    page = sign_in("viewer").get(reverse("findings", args=[audit.id])).content.decode()
    assert "at=9007199254740993" in page and ">9007199254740993<" in page


def test_thousands_of_findings_are_turned_page_by_page_by_the_pages_own_links(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    audit = audit_make(pipeline, 450)
    client, address, seen = sign_in("viewer"), "", 0
    for _ in range(3):
        page = client.get(reverse("findings", args=[audit.id]) + address)
        seen += len(page.context["rows"])
        address = page.context["following"].partition("#")[0]
    assert (seen, address) == (450, "")
    last = "?from=9007199254741442"
    assert len(client.get(reverse("findings", args=[audit.id]) + last).context["rows"]) == 1


@pytest.mark.parametrize("query", ["?colour=red", "?from=abc", "?after=1e9", "?after=9999999999999999999999"])
def test_a_filter_that_cannot_be_used_is_refused_by_name(
    audit: Audit, sign_in: Callable[..., Client], query: str
) -> None:
    page = sign_in("viewer").get(reverse("findings", args=[audit.id]) + query)
    assert page.status_code == 400
    assert query[1:].partition("=")[0] in page.content.decode()


def test_a_hundred_thousand_findings_list_with_few_queries(
    pipeline: Pipeline, sign_in: Callable[..., Client], django_assert_max_num_queries: Any
) -> None:
    audit = audit_make(pipeline, 100_000)
    client = sign_in("viewer")
    client.get(reverse("work-list"))
    for query in ("", "?after=99000", "?finding=lost&from=9007199254800000"):
        with django_assert_max_num_queries(6):
            assert client.get(reverse("findings", args=[audit.id]) + query).status_code == 200


def event_intent(pipeline: Pipeline, content: bytes) -> Any:
    now = timezone.now()
    intent = event_read_request(pipeline, "0", Coordinate(9007199254740993), actor="ada", now=now, wake=False)
    taken = intent_take(intent.id, "worker", now)
    found = {
        "coordinate": "9007199254740993",
        "source": {"identity": "s", "rows": [{"event_id": "e", "op": "insert", "key": SCRIPT, "payload_digest": "aa"}]},
        "sink": {"identity": "r", "rows": []},
        "content": {"bytes": str(len(content)), "sha256": "bb", "is_brought": True},
    }
    event_read_record(taken, found, content, now)
    return intent


def test_content_is_escaped_cut_and_only_for_those_who_may_read_it(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    content = f'{{"s": "{SCRIPT}", "n": 12345678901234567890}}'.encode() + b" " * 30_000
    intent = event_intent(pipeline, content)
    address = reverse("finding") + f"?audit={audit.id}&lane=0&at=9007199254740993"
    shown = sign_in("operator").get(address).content.decode()
    assert "12345678901234567890" in shown and "&lt;script&gt;" in shown and "<script>alert" not in shown
    assert "Only the beginning is shown." in shown
    masked = sign_in("viewer").get(address).content.decode()
    assert "12345678901234567890" not in masked and "Needs the role operator or approver" in masked
    assert sign_in("viewer").get(reverse("event-content", args=[intent.id])).status_code == 403
    assert sign_in("admin").post(reverse("event-read"), {"audit": audit.id, "at": "1"}).status_code == 403


def test_download_gives_the_bytes_as_they_are_and_is_logged(pipeline: Pipeline, sign_in: Callable[..., Client]) -> None:
    intent = event_intent(pipeline, b'{"a": 1.50}\xff')
    answer = sign_in("operator", name="ada").get(reverse("event-content", args=[intent.id]))
    assert answer.content == b'{"a": 1.50}\xff'
    assert answer["Content-Type"] == "application/octet-stream" and "attachment" in answer["Content-Disposition"]
    assert "ada downloaded 12 bytes" in Event.objects.filter(kind=EventKind.CONTENT_READ).last().says  # type: ignore[union-attr]
    EventContent.objects.all().delete()
    assert sign_in("operator").get(reverse("event-content", args=[intent.id])).status_code == 404


def test_plan_says_who_may_approve_and_bars_its_author(pipeline: Pipeline, sign_in: Callable[..., Client]) -> None:
    plan = plan_make(pipeline, author="ada")
    address = reverse("plan", args=[plan.id])
    assert "another approver has to look at it" in sign_in("approver", name="ada").get(address).content.decode()
    for_grace = sign_in("approver", name="grace").get(address).content.decode()
    assert "Any approver except ada, who made this plan." in for_grace
    assert "Approve 3 events" in for_grace and "secret" not in for_grace
    assert "Needs the role approver; you are viewer." in sign_in("viewer").get(address).content.decode()


def test_approval_of_an_older_digest_is_refused_and_the_page_shows_the_plan_as_it_is(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    plan = plan_make(pipeline)
    client = sign_in("approver", name="grace")
    refused = client.post(reverse("plan-approve", args=[plan.id]), {"digest": "d0"})
    assert refused.status_code == 409
    assert "its digest is d1, not d0" in refused.content.decode() and "Nothing was done." in refused.content.decode()
    assert client.post(reverse("plan-approve", args=[plan.id]), {"digest": "d1"}).status_code == 302
    plan.refresh_from_db()
    assert plan.state == PlanState.APPROVED


def test_applying_needs_a_reason_and_the_name_and_twice_is_once(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    plan = plan_make(pipeline)
    plan_approve(plan.id, plan.digest, "grace", timezone.now())
    client, address = sign_in("approver", name="grace"), reverse("plan-apply", args=[plan.id])
    wrong = client.post(address, {"reason": "it died", "confirm": "orders"})
    assert wrong.status_code == 422 and "it died" in wrong.content.decode()
    assert "is missing" in client.post(address, {"reason": " ", "confirm": pipeline.name}).content.decode()
    given = {"reason": "it died", "confirm": pipeline.name}
    answers = {sign_in("approver", name=name).post(address, given)["Location"] for name in ("grace", "hedy", "grace")}
    assert answers == {reverse("recovery", args=[Recovery.objects.get().id])}
    assert sign_in("operator").post(address, given).status_code == 403


def test_u5_what_applying_lacks_is_said_at_its_field(pipeline: Pipeline, sign_in: Callable[..., Client]) -> None:
    plan = plan_make(pipeline)
    plan_approve(plan.id, plan.digest, "grace", timezone.now())
    client, address = sign_in("approver", name="grace"), reverse("plan-apply", args=[plan.id])
    for name, given in (
        ("confirm", {"reason": "it died", "confirm": "orders"}),
        ("reason", {"reason": " ", "confirm": pipeline.name}),
    ):
        page = client.post(address, given).content.decode()
        field = page[page.index('<div class="field has-error">') :]
        field = field[: field.index("</div>")]
        assert f'id="{name}"' in field and 'aria-invalid="true"' in field and "Nothing was sent." in field
        assert f"{name}:" not in field.lower()
        assert f'href="#{name}"' in page[: page.index('id="apply"')]


def test_what_must_be_attested_is_asked_with_since_when_and_by_whom(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    plan = plan_make(pipeline)
    pins = plan.pins | {"strategy": "attested", "attestations": ["relay-drained", "only-recoverer"]}
    Plan.objects.filter(id=plan.id).update(pins=pins)
    plan_approve(plan.id, plan.digest, "grace", timezone.now())
    client, address = sign_in("approver", name="grace"), reverse("plan-apply", args=[plan.id])
    page = client.get(reverse("plan", args=[plan.id])).content.decode()
    for says in ("The relay is stopped", 'name="since"', 'name="by"', "It stops no relay", "only-recoverer"):
        assert says in page, says
    given = {"reason": "it died", "confirm": pipeline.name, "attest": ["relay-drained", "only-recoverer"]}
    nobody = client.post(address, given | {"attest": ["only-recoverer"]})
    assert nobody.status_code == 409 and "nobody attested" in nobody.content.decode()
    later = client.post(address, given | {"since": "2999-01-01T00:00:00", "by": "ada"})
    assert later.status_code == 422 and "has not come yet" in later.content.decode()
    assert not Recovery.objects.exists()
    applied = client.post(address, given | {"since": "2026-11-01T10:30", "by": "ada"})
    recovery = Recovery.objects.get()
    assert applied["Location"] == reverse("recovery", args=[recovery.id])
    assert recovery.attestations == ["relay-drained since 2026-11-01T10:30:00+00:00 by ada", "only-recoverer"]
    shown = client.get(applied["Location"]).content.decode()
    assert "Attested by grace" in shown and "by ada" in shown and ">Append " in shown and ">Claim " not in shown


def test_u8_a_filtered_listing_counts_what_it_shows(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    client, address = sign_in("viewer"), reverse("findings", args=[audit.id])
    assert ">1 to 3 of 3<" in client.get(address).content.decode()
    filtered = client.get(f"{address}?from=9007199254740994").content.decode()
    assert ">2 on this page<" in filtered


def test_the_batch_is_a_file(pipeline: Pipeline, sign_in: Callable[..., Client]) -> None:
    plan = plan_make(pipeline)
    answer = sign_in("viewer").get(reverse("plan-events", args=[plan.id]))
    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert lines[0] == "coordinate,lane,evidence class,payload digest"
    assert [line.split(",")[0] for line in lines[1:]] == ["9007199254740993", "9223372036854775807"]


def test_t13_the_page_rest_and_commands_say_paused_only_of_what_holds(
    pipeline: Pipeline, sign_in: Callable[..., Client], capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_make(pipeline)
    plan_approve(plan.id, plan.digest, "grace", timezone.now())
    recovery = recovery_request(plan.id, "why", pipeline.name, "grace", now=timezone.now(), wake=False)
    recovery_want(recovery, "pause", actor="ada", now=timezone.now(), reason="look first", wake=False)
    client, address = sign_in("approver", name="grace"), reverse("recovery", args=[recovery.id])

    def shown() -> tuple[str, str, str]:
        with suppress(SystemExit):
            call_command("recovery", str(recovery.id))
        row = client.get(f"/api/v1/recoveries/{recovery.id}").json()
        return (
            client.get(address).content.decode(),
            f"{row['steering']}: {row['steering_says']}",
            capsys.readouterr().out,
        )

    asked = "ada asked it to pause. It will hold before the claim."
    page, rest, command = shown()
    assert asked in page and asked in command and rest == f"pause asked: {asked}"
    assert ">paused<" not in page.replace(" ", "").replace("\n", "")
    recovery_hold(recovery, "the claim", actor="worker", now=timezone.now())
    page, rest, command = shown()
    assert "paused" in page and "It holds before the claim." in page and rest.startswith("paused: ")
    assert "It holds before the claim." in command
    assert "It holds before the claim." in [event.says for event in recovery.events.all()]


def test_polling_a_recovery_loads_the_page_again_only_when_its_controls_change(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    plan = plan_make(pipeline)
    plan_approve(plan.id, plan.digest, "grace", timezone.now())
    recovery = recovery_request(plan.id, "why", pipeline.name, "grace", now=timezone.now(), wake=False)
    client, address = sign_in("approver", name="grace"), reverse("recovery", args=[recovery.id])
    polled = client.get(address + "?phase=run", headers={"HX-Request": "true"})
    assert "HX-Refresh" not in polled and "<html" not in polled.content.decode()
    client.post(reverse("recovery-want", args=[recovery.id]), {"wanted": "pause", "reason": "wait"})
    assert client.get(address + "?phase=run", headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    assert "Resume" in client.get(address).content.decode()
    unsaid = client.post(reverse("recovery-want", args=[recovery.id]), {"wanted": "stop", "reason": ""}, follow=True)
    assert "Say why, in a sentence" in unsaid.content.decode()


def test_an_unknown_outcome_may_be_settled_and_a_known_one_may_not(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    unknown = finished(pipeline, RecoveryOutcome.UNKNOWN)
    client, settle = sign_in("approver"), reverse("recovery-settle", args=[unknown.id])
    assert settle in client.get(reverse("recovery", args=[unknown.id])).content.decode()
    assert sign_in("operator").post(settle).status_code == 403
    assert client.post(settle).status_code == 302
    unknown.refresh_from_db()
    assert unknown.outcome is None and unknown.intents.filter(action=IntentAction.SETTLE).exists()


def test_certificate_is_a_page_and_a_file_and_says_when_it_is_void_or_tampered_with(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    recovery = finished(pipeline)
    client = sign_in("viewer")
    page = client.get(reverse("recovery-certificate", args=[recovery.id])).content.decode()
    assert "does not match its digest" in page
    Recovery.objects.filter(id=recovery.id).update(certificate_void_since=timezone.now())
    assert (
        "This certificate is void." in client.get(reverse("recovery-certificate", args=[recovery.id])).content.decode()
    )
    body = client.get(reverse("recovery-certificate-json", args=[recovery.id])).json()
    assert body["digest"] == "x" and body["void_since"] and body["certificate"]["pipeline"] == pipeline.name


def test_work_that_nobody_takes_is_said_and_may_be_withdrawn(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    intent = audit_request(pipeline, actor="ada", now=timezone.now() - timedelta(minutes=3), wake=False)
    client = sign_in("operator")
    listing = client.get(reverse("work-list")).content.decode()
    assert "No worker takes it." in listing and "make worker" in listing
    assert "Queued for 3 min; no worker has taken it." in client.get(reverse("work", args=[intent.id])).content.decode()
    assert sign_in("viewer").post(reverse("work-cancel", args=[intent.id])).status_code == 403
    client.post(reverse("work-cancel", args=[intent.id]))
    assert "Withdrawn before a worker took it." in client.get(reverse("work", args=[intent.id])).content.decode()
    again = client.post(reverse("work-cancel", args=[intent.id]), follow=True).content.decode()
    assert "a worker has taken it, or it is over" in again


def test_waiting_for_an_audit_leads_to_it(pipeline: Pipeline, sign_in: Callable[..., Client]) -> None:
    now = timezone.now()
    intent = intent_take(audit_request(pipeline, actor="ada", now=now, wake=False).id, "worker", now)
    client, address = sign_in("viewer"), reverse("work", args=[intent.id])  # type: ignore[union-attr]
    assert "HX-Redirect" not in client.get(address, headers={"HX-Request": "true"})
    made = audit_record(
        pipeline, status="owed", exit_code=1, now=now, started_at=now, is_full=True, says="Owed.", intent=intent
    )
    polled = client.get(address, headers={"HX-Request": "true"})
    assert polled["HX-Redirect"] == reverse("audit", args=[made.id])


@pytest.mark.parametrize("name", ["audit", "findings", "plan", "recovery", "recovery-certificate", "work"])
def test_what_is_not_there_is_a_page_that_says_so(sign_in: Callable[..., Client], name: str) -> None:
    answer = sign_in("viewer").get(reverse(name, args=[uuid.uuid4()]))
    assert answer.status_code == 404
    assert "is not here" in answer.content.decode()


def test_queries_of_each_page_stay_few(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client], django_assert_max_num_queries: Any
) -> None:
    recovery = finished(pipeline)
    client = sign_in("approver")
    for name, of, most in (
        ("audit", audit.id, 4),
        ("findings", audit.id, 5),
        ("plan", recovery.plan_id, 7),
        ("recovery", recovery.id, 8),
        ("recovery-certificate", recovery.id, 5),
    ):
        client.get(reverse(name, args=[of]))
        with django_assert_max_num_queries(most):
            assert client.get(reverse(name, args=[of])).status_code == 200
    with django_assert_max_num_queries(6):
        client.get(reverse("work-list"))
