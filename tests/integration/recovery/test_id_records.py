"""A pipeline whose record knows only message ids: registered, audited on the engine, shown, planned, and never fired into."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.utils import timezone

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import BadInput
from recovery_api.domain.identity import NO_REUSE
from recovery_api.models import Plan
from recovery_api.rows import audit_as_row
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.services.audits import audit_request
from recovery_api.services.ends import sink_create, source_create, source_update
from recovery_api.services.event_reads import event_read_request
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.plans import plan_request
from tests.integration.postgresql.id_tables import MASSTRANSIT, OF_MASSTRANSIT, OUTBOX, id_of
from tests.integration.recovery.world import run
from workers.recovery.ends import request_make

pytestmark = pytest.mark.django_db(transaction=True)


class Ids:
    """MassTransit's inbox in one database, an outbox in another, registered and met by id."""

    def __init__(self, database_factory: Callable[[str], str], folder: Path) -> None:
        self.dsn = {name: database_factory(name) for name in ("orders", "inbox")}
        for name, dsn in self.dsn.items():
            (folder / name).write_text(dsn)
        self.execute("orders", OUTBOX)
        self.execute("inbox", MASSTRANSIT)
        self.source_options = {
            "connection": f"file:{folder / 'orders'}",
            "table": "outbox",
            "coordinate": ["id"],
            "event_id": "message_id",
            "content": "body",
            "committed_at": "written_at",
            "grace_seconds": 0,
        }
        now = timezone.now()
        self.source = source_create("orders", "postgresql_outbox", self.source_options, actor="ada", now=now)
        given = {"connection": f"file:{folder / 'inbox'}", "identity": "event_id", **OF_MASSTRANSIT}
        self.sink = sink_create("inbox", "postgresql_table", given, actor="ada", now=now)

    def execute(self, name: str, text: str, *values: Any) -> None:
        with psycopg.connect(self.dsn[name]) as connection:
            connection.execute(text.encode(), values or None)

    def attest(self) -> None:
        options = {**self.source_options, NO_REUSE: True}
        self.source = source_update(self.source, options, actor="ana", now=timezone.now())

    def register(self) -> None:
        self.pipeline = pipeline_create("orders-inbox", self.source, self.sink, actor="ada", now=timezone.now())

    def commit(self, number: int, minutes_ago: float = 0) -> None:
        text = "INSERT INTO outbox VALUES (%s, %s, '{}', now() - %s * interval '1 minute')"
        self.execute("orders", text, number, id_of(number), minutes_ago)

    def consume(self, number: int) -> None:
        text = 'INSERT INTO "InboxState" ("MessageId", "ConsumerId", "Consumed") VALUES (%s, %s, now())'
        self.execute("inbox", text, id_of(number), id_of(1000))

    def audit(self) -> Any:
        intent = audit_request(self.pipeline, actor="ada", now=timezone.now(), wake=False)
        run(intent)
        return self.pipeline.audits.get(intent=intent)

    def plan(self) -> Plan:
        plan, intent = plan_request(self.pipeline, actor="ada", now=timezone.now(), wake=False)
        run(intent)
        plan.refresh_from_db()
        return plan


@pytest.fixture
def ids(database_factory: Callable[[str], str], tmp_path: Path) -> Ids:
    return Ids(database_factory, tmp_path)


def test_a_pipeline_of_ids_needs_the_owners_word_before_it_is_registered(ids: Ids) -> None:
    with pytest.raises(BadInput, match="never used again"):
        ids.register()
    ids.attest()
    ids.register()
    assert request_make(ids.pipeline, "nowhere").ids_attested_by.startswith("ana on ")


def test_complete_by_identity_on_every_face_and_never_green(ids: Ids, client: Any) -> None:
    ids.attest()
    ids.register()
    for number in (1, 2):
        ids.commit(number)
    ids.consume(1)
    audit = ids.audit()
    assert (audit.status, audit.exit_code, audit.lost_count) == ("owed", 1, 1)
    ids.consume(2)
    audit = ids.audit()
    assert (audit.status, audit.exit_code, audit.matching) == ("complete_by_identity", 4, "by identity (uuid)")
    assert audit.says.startswith("Complete by identity at 2, given ") and "(ana on " in audit.says
    assert "contents and premature entries were not judged" in audit.says
    row = audit_as_row(audit, timezone.now())
    assert row["premature"] is None and row["lanes"]["0"]["identity"]["lifetime_seconds"] == 1800
    assert pipeline_status(ids.pipeline, timezone.now()).status == "complete_by_identity"
    told = io.StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("audit", "orders-inbox", "--here", stdout=told)
    assert left.value.code == 4
    assert "complete by identity at f; contents and premature entries not judged" in told.getvalue()
    assert "premature not judged" in told.getvalue()


def test_an_audit_in_time_goes_on_from_the_one_before(ids: Ids) -> None:
    """A row lives 30 minutes; what was found complete stays so after its row is gone."""
    ids.attest()
    ids.register()
    ids.commit(1, minutes_ago=25)
    ids.consume(1)
    assert ids.audit().status == "complete_by_identity"
    ids.execute("inbox", 'DELETE FROM "InboxState"')
    ids.execute("orders", "UPDATE outbox SET written_at = written_at - interval '1 hour'")
    assert ids.audit().status == "complete_by_identity"
    ids.execute("orders", "UPDATE outbox SET written_at = now()")
    assert ids.audit().status == "owed"  # its row must still be there, and it is not


def test_a_record_of_ids_is_planned_and_never_fired_into(ids: Ids) -> None:
    """RC-68: what the record may have forgotten is in no batch; a row in an inbox is the mark of an effect."""
    ids.attest()
    ids.register()
    ids.commit(1, minutes_ago=45)
    for number in (2, 3):
        ids.commit(number)
    ids.consume(3)
    plan = ids.plan()
    assert plan.state == "refused" and "mark of an effect, not the effect" in plan.says
    assert (plan.conditions[0]["name"], plan.conditions[0]["holds"]) == ("effect", False)
    assert (plan.batch["provably missing"], plan.batch["trimmed"]) == ("1", "1")
    assert [sample["position"] for sample in plan.samples] == ["2"]
    assert plan.audit is not None and plan.audit.status == "owed"
    classes = dict(plan.audit.listing.values_list("position", "evidence_class"))
    assert classes == {1: "trimmed", 2: "provably missing"}
    with psycopg.connect(ids.dsn["inbox"]) as connection:
        assert connection.execute('SELECT count(*) FROM "InboxState"').fetchone() == (1,)


def test_one_event_is_looked_up_by_its_id_at_both_ends(ids: Ids) -> None:
    ids.attest()
    ids.register()
    ids.commit(1)
    ids.commit(2)
    ids.consume(2)

    def read(position: int) -> Any:
        given = {"actor": "ada", "now": timezone.now(), "wake": False}
        return run(event_read_request(ids.pipeline, "0", Coordinate(position, 0), **given)).result

    found = read(2)
    assert found["sink"]["is_by_identity"] and found["source"]["rows"][0]["event_id"] == str(id_of(2))
    assert found["sink"]["rows"] == [{"event_id": str(id_of(2)), "is_accepted": True}]
    assert read(1)["sink"]["rows"] == [] and read(9)["sink"]["rows"] == []
