"""The pipeline page: status, rail, grounds, and what is asked of it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import datetime
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils import timezone

from recovery_api.models import Claim, Event, Intent, IntentAction, IntentState, LedgerItem, LedgerLane, Plan
from recovery_api.services.intents import intent_finish, intent_take
from recovery_api.services.plans import plan_approve
from recovery_api.services.recoveries import recovery_request
from recovery_api.services.retirement import pipeline_retire
from recovery_api.services.sink_jobs import sink_read_request
from tests.integration.pages.fleet import audit_make, pipeline_make, plan_make

pytestmark = pytest.mark.django_db

NAMES = [
    "a \"quoted\" 'name'",
    "emoji 🧾 ünï",
    "50% off? #1 & more",
    "<script>alert(1)<b>",
    "x" * 200,
    "a\\b;c",
    "مرحبا",
]


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def operator(sign_in: Callable[..., Client]) -> Client:
    return sign_in("operator", name="ada")


@pytest.mark.parametrize("name", NAMES)
def test_name_is_an_address_and_is_shown_escaped(name: str, operator: Client, now: datetime) -> None:
    audit_make(pipeline_make(name, now), "owed", now)
    address = f"/pipelines/{quote(name, safe='')}/"
    for page in ("/", address, f"{address}timeline/", "/timeline/", "/sources/", "/sinks/"):
        response = operator.get(page)
        assert response.status_code == 200, page
        text = response.content.decode()
        assert "<script>alert" not in text
        assert html.escape(name) in text or name in text or page in ("/sources/", "/sinks/")


def test_what_was_judged_is_drawn_and_said_in_the_table(operator: Client, now: datetime) -> None:
    audit_make(pipeline_make("orders", now), "owed", now)
    response = operator.get("/pipelines/orders/")
    text = response.content.decode()
    for known in ("9007199254740993", "9007199254740995", "9007199254740999", "9007199254740990"):
        assert f"<bdi>{known}</bdi>" in text
    assert "&lt;i&gt;session&lt;/i&gt;" in text
    rows = response.context["lanes"][0].figure["layout"]["yaxis"]["categoryarray"]
    assert rows == ["oldest row", "accepted up to", "last check", "safe frontier", "newest event", "lost"]
    assert "No recovery has set a start yet." in text


def test_cursor_and_its_window_are_drawn_and_said_beside_the_record(operator: Client, now: datetime) -> None:
    pipeline = pipeline_make("orders", now)
    audit = audit_make(pipeline, "owed", now)
    assert (
        "Not read: the source does not say where the relay keeps it."
        in operator.get("/pipelines/orders/").content.decode()
    )
    row = {
        "says": "9007199254740991",
        "at": {"position": "9007199254740991", "ordinal": "0"},
        "problem": None,
        "lost_behind": "2",
        "lost_beyond": "1",
        "has_window": True,
        "judged": "some",
    }
    audit.lanes["0"]["cursor"] = row
    audit.save()
    response = operator.get("/pipelines/orders/")
    text = response.content.decode()
    assert "Of that, the record lacks 2: no relay will look there again." in text
    assert "<bdi>above 9007199254740991, up to 9007199254740999</bdi>" in text
    assert "it lacks 1 and holds the rest. Above f it is ambiguous until it is judged." in text
    figure = response.context["lanes"][0].figure
    assert "relay's cursor" in figure["layout"]["yaxis"]["categoryarray"]
    [window] = [trace for trace in figure["data"] if trace["mode"] == "lines"]
    assert window["x"][1] == next(trace["x"][1] for trace in figure["data"] if trace["y"][0] == "newest event")
    assert "Ambiguous window" in operator.get(f"/audits/{audit.id}/").content.decode()
    shown = operator.get("/api/v1/pipelines/orders/frontiers").json()["lanes"][0]["cursor"]
    assert (shown["says"], shown["lost_behind"]) == ("9007199254740991", "2")
    row |= {"says": None, "at": None, "problem": "", "has_window": False}
    audit.save()
    assert "The relay has recorded no cursor yet." in operator.get("/pipelines/orders/").content.decode()


def test_pipeline_never_audited_says_what_to_do(operator: Client, now: datetime) -> None:
    pipeline_make("orders", now)
    text = operator.get("/pipelines/orders/").content.decode()
    assert "Until then nothing is known" in text
    assert "No audit yet" in text


def test_audit_and_plan_are_asked_for_and_lead_to_their_pages(operator: Client, now: datetime) -> None:
    pipeline_make("orders", now)
    audited = operator.post("/pipelines/orders/audit/")
    intent = Intent.objects.get(action=IntentAction.AUDIT)
    assert audited["Location"] == f"/work/{intent.id}/"
    assert intent.created_by == "ada"
    planned = operator.post("/pipelines/orders/plan/", {"frontier": "42"})
    plan = Plan.objects.get()
    assert planned["Location"] == f"/plans/{plan.id}/"
    assert (plan.author, plan.frontier) == ("ada", {"0": {"position": "42", "ordinal": "0"}})


def test_frontier_that_cannot_be_read_is_said_and_asks_for_nothing(operator: Client, now: datetime) -> None:
    pipeline_make("orders", now)
    refused = operator.post("/pipelines/orders/audit/", {"frontier": "latest"})
    assert refused.status_code == 400
    assert b"is not a coordinate here" in refused.content
    assert not Intent.objects.exists()


def test_second_audit_is_not_offered_while_one_runs(operator: Client, now: datetime) -> None:
    pipeline_make("orders", now)
    operator.post("/pipelines/orders/audit/")
    text = operator.get("/pipelines/orders/").content.decode()
    assert "One is queued or running already; see below." in text
    assert 'hx-trigger="every 2s"' in text


def test_live_region_stops_asking_when_the_work_has_ended(operator: Client, now: datetime) -> None:
    pipeline_make("orders", now)
    operator.post("/pipelines/orders/audit/")
    assert b"hx-trigger" in operator.get("/pipelines/orders/work/").content
    Intent.objects.update(state=IntentState.CANCELLED, finished_at=now)
    ended = operator.get("/pipelines/orders/work/").content
    assert b"hx-trigger" not in ended
    assert b"Show what came of it" in ended


def test_viewer_sees_the_buttons_with_who_may(sign_in: Callable[..., Client], now: datetime) -> None:
    pipeline_make("orders", now)
    text = sign_in("viewer").get("/pipelines/orders/").content.decode()
    assert text.count("Needs the role operator or approver; you are viewer.") >= 2
    assert "Needs the role admin; you are viewer." in text


def test_unfinished_recovery_keeps_another_plan_away(operator: Client, now: datetime) -> None:
    pipeline = pipeline_make("orders", now)
    plan = plan_approve(plan_make(pipeline, now).id, "d" * 64, "grace", now)
    recovery = recovery_request(plan.id, "it crashed", "orders", "ada", now=now, wake=False)
    text = operator.get("/pipelines/orders/").content.decode()
    assert "A recovery is unfinished" in text
    assert f'href="/recoveries/{recovery.id}/"' in text


def test_fence_as_the_sink_says_is_shown_beside_the_memory(operator: Client, now: datetime) -> None:
    pipeline = pipeline_make("orders", now)
    plan = plan_approve(plan_make(pipeline, now).id, "d" * 64, "grace", now)
    recovery = recovery_request(plan.id, "it crashed", "orders", "ada", now=now, wake=False)
    Claim.objects.create(pipeline=pipeline, recovery=recovery, generation=7, state="open", claimed_at=now, said_at=now)
    assert operator.post(f"/sinks/{quote(pipeline.sink.name)}/read/", {"back": "pipeline"})["Location"].endswith(
        "#fence"
    )
    assert b"The sink is being asked" in operator.get("/pipelines/orders/").content
    intent = intent_take(Intent.objects.get(action=IntentAction.SINK_READ).id, "worker", now)
    assert intent is not None
    claim = {"generation": "7", "state": "superseded", "claimed_by": "ada", "landed_count": None}
    intent_finish(intent, _reading(now, counter="9", fence="8", claims=[claim]), now)
    text = operator.get(f"/sinks/{quote(pipeline.sink.name)}/reading/").content.decode()
    assert "Its fence is 8 and was 7" in text
    assert "Claim 7 is remembered as open; the sink says superseded." in text
    assert "hx-trigger" not in text


def test_sink_that_does_not_answer_is_said_and_nothing_is_concluded(operator: Client, now: datetime) -> None:
    pipeline = pipeline_make("orders", now)
    intent = sink_read_request(pipeline.sink, actor="ada", now=now, wake=False)
    error = {"code": "unreachable", "data": {}, "text": "Cannot reach env:SINK: refused.", "is_transient": True}
    Intent.objects.filter(pk=intent.pk).update(state=IntentState.FAILED, error=error, finished_at=now)
    text = operator.get("/pipelines/orders/").content.decode()
    assert "Cannot reach env:SINK: refused." in text
    assert "what it holds is not known" in text


def test_restored_sink_asks_to_be_settled_first(sign_in: Callable[..., Client], now: datetime) -> None:
    pipeline = pipeline_make("orders", now)
    sink = pipeline.sink
    sink.restored_at, sink.counter_floor, sink.restored_says = now, 9, "Its counter is 5 and was 9."
    sink.save()
    text = sign_in("approver").get("/pipelines/orders/").content.decode()
    assert "The sink was restored: settle it first." in text
    assert "Settle the sink" in text
    settled = sign_in("approver").post(f"/sinks/{quote(sink.name)}/settle/")
    assert settled["Location"] == f"/work/{Intent.objects.get(action=IntentAction.SETTLE).id}/"


def test_retired_pipeline_is_a_plain_page_that_says_so(operator: Client, now: datetime) -> None:
    pipeline_retire(pipeline_make("orders", now), "orders", actor="root", now=now)
    response = operator.get("/pipelines/orders/")
    assert response.status_code == 410
    assert b"was taken out of use" in response.content
    assert operator.get("/pipelines/orders/timeline/").status_code == 200
    assert operator.get("/pipelines/order/").status_code == 404
    assert operator.post("/pipelines/orders/audit/").status_code == 404


def test_timeline_is_turned_by_keyset_and_filtered(operator: Client, now: datetime) -> None:
    for number in range(60):
        pipeline_make(f"p{number:02}", now)
    first = operator.get("/timeline/?kind=pipeline+created")
    ids = [line.place for line, _ in first.context["events"]]
    assert ids == sorted(ids, reverse=True) and len(ids) == 50
    second = operator.get(f"/timeline/?kind=pipeline+created&before={first.context['older_than']}")
    older = [line.place for line, _ in second.context["events"]]
    assert len(older) == 10 and max(older) < min(ids)
    assert second.context["older_than"] is None
    assert len(operator.get("/timeline/?pipeline=p07&actor=root").context["events"]) == 1
    assert operator.get("/timeline/?actor=nobody").context["events"] == []


@pytest.mark.parametrize(
    "query", ["before=-1", "before=" + "9" * 30, "before=x", "before=1.2.3", "kind=nothing", "wher=x"]
)
def test_timeline_refuses_what_it_does_not_understand(operator: Client, query: str) -> None:
    assert operator.get(f"/timeline/?{query}").status_code == 400


def test_refusals_are_on_the_timeline_escaped(operator: Client, now: datetime) -> None:
    operator.get("/add/source/?<script>alert(1)</script>")
    assert Event.objects.filter(kind="access denied").exists()
    text = operator.get("/timeline/?kind=access+denied").content.decode()
    assert "was refused GET source-add" in text
    assert "<script>alert" not in text


def _reading(now: datetime, **given: object) -> dict:
    return {
        "sink": "sink orders",
        "read_at": now.isoformat(),
        "identity": "7:1:1:kit",
        "last_entry": "12",
        "open_claim": None,
        "generations": [
            {"number": "7", "purpose": "recoverer", "asked_by": "ada", "allocated_at": None, "superseded_by": "8"}
        ],
        "hand_over": {},
        "standing": "agrees",
        "behind": [],
        "says": "It agrees.",
        "remembered": {"identity": "7:1:1:kit", "counter": "9", "fence": "7", "last_entry": "12"},
    } | given


def test_what_is_open_is_listed_with_when_it_was_seen_and_what_nobody_saw_with_who_decides(
    operator: Client, now: datetime
) -> None:
    pipeline = pipeline_make("orders", now)
    assert "Nothing is open" in operator.get("/pipelines/orders/").content.decode()
    audit = audit_make(pipeline, "owed", now)
    told = {"pipeline": pipeline, "lane": "0", "epoch": "e"}
    seen = {"first_audit": audit, "first_seen_at": now, "last_audit": audit, "last_seen_at": now}
    LedgerItem.objects.create(**told, **seen, position=9007199254740991, word="lost", is_content_gone=True)
    LedgerLane.objects.create(**told, audit=audit, read_at=now, unseen_below={"position": "4", "ordinal": "0"})
    text = operator.get("/pipelines/orders/").content.decode()
    assert "lost, content gone" in text and "<bdi>9007199254740991</bdi>" in text
    assert "nobody saw what was committed below 4" in text
    assert "manage.py ledger nothing-owed-below orders 4 --reason" in text


def test_an_audit_in_full_is_asked_for_beside_what_is_remembered_by_whoever_may_audit(
    operator: Client, sign_in: Callable[..., Client], now: datetime
) -> None:
    pipeline = pipeline_make("orders", now)
    assert "Audit in full" not in operator.get("/pipelines/orders/").content.decode(), "nothing is remembered yet"
    audit = audit_make(pipeline, "owed", now)
    LedgerLane.objects.create(pipeline=pipeline, lane="0", epoch="e", audit=audit, read_at=now)
    text = " ".join(operator.get("/pipelines/orders/").content.decode().split())
    assert "An audit in full is needed when acceptances that an earlier audit saw have changed" in text
    assert re.search(r'name="is_full" value="yes">\s*<button\s+type="submit" class="button ">Audit in full<', text)
    operator.post("/pipelines/orders/audit/", {"is_full": "yes"})
    asked = Intent.objects.get(action=IntentAction.AUDIT)
    assert asked.arguments == {"frontier": None, "is_full": True}
    viewer = sign_in("viewer", name="eve")
    text = " ".join(viewer.get("/pipelines/orders/").content.decode().split())
    assert re.search(r"disabled>Audit in full</button><span class=\"reason\">", text)
    assert viewer.post("/pipelines/orders/audit/", {"is_full": "yes"}).status_code == 403
