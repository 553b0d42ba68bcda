"""A record and a delivery that are two ends: an inbox of ids beside a kit, and beside a table whose rows are the effect.

It is audited by the inbox, its plan is a plan only and says why, and nothing is fired into the delivery.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from recovery_api.domain.capabilities import APART
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.identity import NO_REUSE
from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_kit import kit_options
from recovery_api.models import Drill, DrillState, PlanState, Recovery, Sink
from recovery_api.selectors.ends import pipeline_get
from recovery_api.services.audits import audit_request
from recovery_api.services.drills import drill_request
from recovery_api.services.ends import connection_test_request, sink_create, sink_update, source_create
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.plans import plan_approve, plan_request
from recovery_api.services.recoveries import recovery_request
from recovery_api.services.sinks import sink_settle_request
from tests.integration.postgresql.id_tables import MASSTRANSIT, OF_MASSTRANSIT, OUTBOX, id_of
from tests.integration.recovery.world import run
from workers.connectors.sinks.kit.install import kit_install

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]

MAILS: LiteralString = "CREATE TABLE mails (id bigint PRIMARY KEY, message_id uuid, body jsonb)"


class Pair:
    """An outbox, MassTransit's inbox as the record, and a delivery in a third database. `register` makes the pipeline."""

    def __init__(self, database_factory: Callable[[str], str], folder: Path) -> None:
        self.dsn = {name: database_factory(name) for name in ("orders", "inbox", "mail")}
        for name, dsn in self.dsn.items():
            (folder / name).write_text(dsn)
        self.reference = {name: f"file:{folder / name}" for name in self.dsn}
        self.execute("orders", OUTBOX)
        self.execute("inbox", MASSTRANSIT)
        self.execute("mail", MAILS)
        mapping = {"table": "outbox", "coordinate": ["id"], "event_id": "message_id", "content": "body"}
        options = {**mapping, "committed_at": "written_at", "grace_seconds": 0, NO_REUSE: True}
        options["connection"] = self.reference["orders"]
        self.source = source_create("orders", "postgresql_outbox", options, actor="ada", now=timezone.now())
        self.inbox = self.sink("inbox", "postgresql_table", identity="event_id", **OF_MASSTRANSIT)

    def execute(self, name: str, text: LiteralString, *values: Any) -> None:
        with psycopg.connect(self.dsn[name]) as connection:
            connection.execute(text.encode(), values or None)

    def sink(self, name: str, kind: str, **options: Any) -> Sink:
        place = "inbox" if name == "inbox" else "mail"
        given = {"connection": self.reference[place], **options}
        return sink_create(name, kind, given, actor="ada", now=timezone.now())

    def kit(self) -> Sink:
        sink = self.sink("kit", "postgresql_kit")
        with psycopg.connect(self.dsn["mail"], autocommit=True) as connection:
            kit_install(connection, kit_options(options_parse(kind_get("postgresql_kit"), sink.options)))
        return sink

    def table(self) -> Sink:
        mapping = {"table": "mails", "coordinate": ["id"], "event_id": "message_id", "content": "body"}
        return self.sink("mails", "postgresql_table", is_effect=True, **mapping)

    def register(self, delivery: Sink | None) -> None:
        given = {"actor": "ada", "now": timezone.now()}
        self.pipeline = pipeline_create("orders-inbox", self.source, self.inbox, delivery=delivery, **given)

    def test(self) -> None:
        """Tests both of its sinks through a worker."""
        for sink in filter(None, (self.pipeline.sink, self.pipeline.delivery)):
            run(connection_test_request(sink=sink, actor="ada", now=timezone.now(), wake=False))
        self.pipeline = pipeline_get(self.pipeline.name)

    def commit(self, *numbers: int) -> None:
        for number in numbers:
            self.execute("orders", "INSERT INTO outbox VALUES (%s, %s, '{}', now())", number, id_of(number))

    def consume(self, *numbers: int) -> None:
        text: LiteralString = 'INSERT INTO "InboxState" ("MessageId", "ConsumerId", "Consumed") VALUES (%s, %s, now())'
        for number in numbers:
            self.execute("inbox", text, id_of(number), id_of(1000))

    def audit(self) -> Any:
        intent = audit_request(self.pipeline, actor="ada", now=timezone.now(), wake=False)
        run(intent)
        return self.pipeline.audits.get(intent=intent)

    def plan(self) -> Any:
        plan, intent = plan_request(self.pipeline, actor="ada", now=timezone.now(), wake=False)
        run(intent)
        plan.refresh_from_db()
        return plan

    def delivered(self) -> list[Any]:
        """Everything that a recovery would have left at the delivery, by plain SQL."""
        found = []
        with psycopg.connect(self.dsn["mail"]) as connection:
            for name in ("public.mails", "fencepost.accepted", "fencepost.claims"):
                if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() != (None,):
                    found += connection.execute(f"SELECT '{name}', t::text FROM {name} t").fetchall()
        return found


@pytest.fixture
def ends(database_factory: Callable[[str], str], tmp_path: Path, spark: Any) -> Pair:
    return Pair(database_factory, tmp_path)


@pytest.mark.parametrize("kind", ["kit", "table"])
def test_a_pair_is_audited_by_its_record_and_planned_and_never_fired_into(ends: Pair, kind: str) -> None:
    ends.register(ends.kit() if kind == "kit" else ends.table())
    ends.commit(1, 2, 3)
    ends.consume(1)
    assert (ends.audit().status, ends.audit().lost_count) == ("owed", 2)
    plan = ends.plan()
    assert plan.state == PlanState.REFUSED and plan.says.startswith(APART) and "as one sink" in plan.says
    assert plan.pins["strategy"] == "read_only" and "exactly once" not in plan.pins["promise"]
    assert plan.batch["provably missing"] == "2" and [one["position"] for one in plan.samples] == ["2", "3"]
    assert [one["name"] for one in plan.conditions if one["blocks"] and not one["holds"]] == ["P2"]
    with pytest.raises(Refused, match="not ready"):
        plan_approve(plan.id, plan.digest, "grace", timezone.now())
    with pytest.raises(Refused, match="the plan is refused"):
        recovery_request(plan.id, "because", ends.pipeline.name, "ada", now=timezone.now())
    assert ends.delivered() == [] and not Recovery.objects.exists()
    ends.consume(2, 3)
    assert ends.audit().status == "complete_by_identity"


def test_a_pair_of_two_coordinates_is_no_fenced_sink_either(ends: Pair) -> None:
    """The record, too, could be fired into if it were one end: apart, neither fence nor append counts."""
    with psycopg.connect(ends.dsn["inbox"]) as connection:
        connection.execute(MAILS)
    mapping = {"table": "mails", "coordinate": ["id"], "event_id": "message_id", "content": "body", "is_effect": True}
    ends.inbox = sink_create(
        *("record", "postgresql_table", {"connection": ends.reference["inbox"], **mapping}),
        actor="ada",
        now=timezone.now(),
    )
    ends.register(ends.kit())
    ends.commit(1)
    assert ends.audit().lost_count == 1
    plan = ends.plan()
    assert plan.state == PlanState.REFUSED and APART in plan.says and ends.delivered() == []


def test_every_face_names_both_and_says_why_nothing_is_fired(ends: Pair, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = False
    ends.register(ends.kit())
    ends.test()
    ends.commit(1)
    plan = ends.plan()
    client = Client()
    client.force_login(User.objects.create_superuser("root"))

    shown = client.get("/api/v1/pipelines/orders-inbox").json()
    assert (shown["sink"], shown["delivery"], shown["strategy"]) == ("inbox", "kit", "read_only")
    assert APART in shown["strategy_says"] and "as one sink" in shown["strategy_says"]
    assert APART in client.get(f"/api/v1/plans/{plan.id}").json()["says"]
    assert [one["name"] for one in client.get("/api/v1/pipelines?delivery=kit").json()["items"]] == ["orders-inbox"]

    def page(address: str) -> str:
        answer = client.get(address)
        assert answer.status_code == 200, address
        return " ".join(answer.content.decode().split())

    for address in ("/pipelines/orders-inbox/", f"/plans/{plan.id}/", "/sinks/kit/", "/sinks/inbox/"):
        assert APART in page(address), address
    whole = page("/pipelines/orders-inbox/")
    assert "<dt>Record</dt>" in whole and "<dt>Delivered through</dt>" in whole
    assert "Delivered through it. The record is" in page("/sinks/kit/")
    assert "The record. Delivered through" in page("/sinks/inbox/")
    assert "kit</bdi>, recorded in <bdi>inbox</bdi>" in page("/")

    for words in (("pipelines", "show", "orders-inbox"), ("plan", "orders-inbox", "--here")):
        told = io.StringIO()
        try:
            call_command(*words, stdout=told)
        except SystemExit as left:
            assert left.code != 0
        assert APART in told.getvalue(), words


def test_the_ends_of_a_pair_are_tested_by_one_command(ends: Pair) -> None:
    ends.register(ends.kit())
    told = io.StringIO()
    call_command("pipelines", "test", "orders-inbox", "--here", stdout=told)
    assert "All three ends of orders-inbox can serve." in told.getvalue()
    pipeline = pipeline_get("orders-inbox")
    assert pipeline.delivery is not None and pipeline.delivery.capability["archetype"] == "fenced"
    assert pipeline.sink.capability["archetype"] == "queryable"


def test_rest_registers_a_pair_tests_its_ends_and_refuses_what_is_none(ends: Pair, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = False
    ends.kit()
    client = Client()
    client.force_login(User.objects.create_superuser("root"))

    def post(address: str, body: Any) -> Any:
        return client.post(f"/api/v1{address}", json.dumps(body), content_type="application/json")

    given = {"name": "orders-inbox", "source": "orders", "sink": "inbox"}
    for wrong, says in (("inbox", "is the record itself"), ("nothing", "there is no delivery"), (5, "")):
        refused = post("/pipelines", {**given, "delivery": wrong})
        assert refused.status_code in (400, 422) and says in refused.json()["detail"], refused.content
    ends.sink("marks", "postgresql_table", table="mails", coordinate=["id"], event_id="message_id", content="body")
    refused = post("/pipelines", {**given, "delivery": "marks"}).json()
    assert refused["code"] == "bad_input" and "the mark of an effect, and not the effect" in refused["detail"]
    assert "Name a sink that can be sent to" in refused["remedy"]
    made = post("/pipelines", {**given, "delivery": "kit"})
    assert made.status_code == 201 and (made.json()["delivery"], made.json()["strategy"]) == ("kit", None)
    again = post("/pipelines", {**given, "name": "more", "sink": "kit"})
    assert again.status_code == 409 and "kit already serves" in again.json()["detail"]
    assert len(post("/pipelines/orders-inbox/test", {}).json()["items"]) == 3


def test_the_page_offers_what_can_be_sent_to_and_registers_a_pair(ends: Pair, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = False
    ends.kit()
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    form = client.get("/add/pipeline/").context["form"]
    assert [value for value, _ in form.fields["delivery"].choices] == ["", "kit"]
    assert [
        (one.title, one.is_open) for one in form.sections if "delivery" in [field.name for field in one.fields]
    ] == [("What is delivered into", False)]
    given = {"name": "orders-inbox", "source": "orders", "sink": "inbox", "delivery": "kit", "scope_kind": "every"}
    answer = client.post("/add/pipeline/", {**given, "do": "save"})
    assert answer.status_code == 400 and b"never passed a test" in answer.content
    assert client.post("/add/pipeline/", {**given, "do": "untested"}).status_code == 302
    assert pipeline_get("orders-inbox").delivery == Sink.objects.get(name="kit")
    form = client.get("/add/pipeline/").context["form"]
    assert [value for value, _ in form.fields["sink"].choices] == [""]


def test_a_delivery_keeps_being_one_while_it_is_used(ends: Pair) -> None:
    ends.register(ends.table())
    delivery = ends.pipeline.delivery
    assert delivery is not None
    options = {name: value for name, value in delivery.options.items() if name != "is_effect"}
    with pytest.raises(Refused, match="orders-inbox is delivered through it"):
        sink_update(delivery, options, actor="ada", now=timezone.now())
    with pytest.raises(BadInput, match="record alone"):
        pipeline_create("more", ends.source, delivery, delivery=ends.inbox, actor="ada", now=timezone.now())


def test_a_delivery_is_drilled_and_settled_as_half_of_its_pair(ends: Pair) -> None:
    ends.register(ends.kit())
    delivery = ends.pipeline.delivery
    assert delivery is not None
    drill, intent = drill_request(delivery, actor="ada", now=timezone.now(), wake=False)
    run(intent)
    drill = Drill.objects.get(id=drill.id)
    assert drill.state == DrillState.NOT_APPLICABLE
    assert {one["says"] for one in drill.results} == {APART}

    ends.commit(1)
    ends.consume(1)
    audit = ends.audit()
    run(sink_settle_request(delivery, actor="ada", now=timezone.now(), wake=False))
    Sink.objects.filter(id=delivery.id).update(said_counter=50)
    settled = run(sink_settle_request(delivery, actor="ada", now=timezone.now(), wake=False)).result
    assert settled is not None and settled["standing"] == "trusted again"
    delivery.refresh_from_db()
    audit.refresh_from_db()
    assert delivery.restored_at is None and delivery.said_counter is not None and delivery.said_counter > 50
    assert audit.void_since is None  # what the record said still stands
