"""What the ledger points to stays where it is, and what it remembers of an owed event is what people call it by."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from recovery_api.models import Audit, LedgerItem, LedgerLane
from recovery_api.selectors.evidence_places import stored_get
from recovery_api.services.ledger import ledger_decide_below
from recovery_api.services.tokens import token_create
from tests.integration.recovery.test_grounds import deliver
from tests.integration.recovery.test_ledger import commit, deliver_and_delete, numbered_make, purge, take_away
from tests.integration.recovery.test_schedules import OPTIONS, PERIOD, begins, passes, work
from tests.integration.recovery.world import World
from workers.evidence.batch import batch_held
from workers.evidence.read import evidence_read
from workers.recovery.ends import evidence_place, request_make
from workers.recovery.verdicts import audit_write
from workers.spark.tasks import InProcess

KEYS = [f"e{number}" for number in range(1, 10)]


@pytest.fixture
def numbered(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    return numbered_make(database_factory, tmp_path)


@pytest.fixture
def deleting(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    return numbered_make(database_factory, tmp_path, retention="deletes_delivered")


def kept_with_evidence_alone(world: World, position: int) -> None:
    """As where more is open than rows are kept of: this item lies in the evidence of the newest audit alone."""
    LedgerItem.objects.filter(pipeline=world.pipeline, position=position).delete()
    newest = Audit.objects.filter(pipeline=world.pipeline).order_by("-finished_at")[0]
    LedgerLane.objects.filter(pipeline=world.pipeline).update(is_whole=False, evidence=newest.evidence_uri)


def test_a_second_reading_of_the_same_work_keeps_what_the_first_one_told_the_ledger(numbered: World) -> None:
    """A worker died after it had recorded its audit, and before its work was over: the next one reads again."""
    world = numbered
    commit(world, KEYS[:4])
    deliver(world, KEYS[:2])
    first = world.audit()
    assert first.lost_count == 2
    kept_with_evidence_alone(world, 4)
    purge(world, "e3", "e4")
    started_at = timezone.now()
    request = request_make(world.pipeline, evidence_place("audits", str(first.intent_id)))
    with evidence_read(InProcess(), request, lambda **_: None) as found:
        pass
    second = audit_write(world.pipeline, found, started_at=started_at, is_full=False)
    assert (second.status, second.lost_count) == ("owed", 2), second.says
    assert second.evidence_uri != first.evidence_uri and batch_held(stored_get(first.evidence_uri)) == 2


def test_a_scheduled_audit_that_the_ledger_goes_by_is_not_forgotten(deleting: World) -> None:
    """Acceptances went from the record, so the ledger stays with what it saw before; a day later it still does."""
    world = deleting
    world.pipeline.options = OPTIONS
    world.pipeline.save()
    commit(world, KEYS[:3])
    deliver(world, KEYS[:3])
    begins(world)
    purge(world, "e1")
    commit(world, KEYS[3:5])
    deliver_and_delete(world, "e4", "e5")
    for _ in range(2):
        passes(PERIOD)
        work(world)
    held = LedgerLane.objects.get().evidence
    assert held, "two acceptances are not shown to be committed, and lie there"
    take_away(world, 2)
    for _ in range(3):
        passes(PERIOD)
        work(world)
    assert LedgerLane.objects.get().evidence == held
    passes(25 * PERIOD)
    work(world)
    assert LedgerLane.objects.get().evidence == held and Path(held).exists()
    assert Audit.objects.filter(evidence_uri=held).exists()


def test_an_owed_event_is_remembered_by_its_event_id_and_time_on_every_face(numbered: World, settings: Any) -> None:
    world = numbered
    commit(world, KEYS)
    deliver(world, ["e1", "e4", "e5"])
    world.audit()
    with psycopg.connect(world.source_dsn) as connection:
        rows = connection.execute("SELECT id, event_id, created_at FROM outbox ORDER BY id").fetchall()
    source = {number: (event_id, created_at) for number, event_id, created_at in rows}
    found = {one.position: (one.event_id, one.committed_at) for one in LedgerItem.objects.all()}
    assert found == {number: source[number] for number in (2, 3, 6, 7, 8, 9)}
    purge(world, "e2")
    world.audit()
    item = LedgerItem.objects.get(position=2)
    assert item.is_content_gone and (item.event_id, item.committed_at) == source[2]

    settings.SECURE_SSL_REDIRECT = False
    root = User.objects.create_superuser("root")
    _, token = token_create(root, "t", ["viewer"], held=["viewer"], actor="root", now=timezone.now())
    client = Client()
    listed = client.get("/api/v1/pipelines/orders-mail/items", headers={"Authorization": f"Bearer {token}"}).json()
    row = listed["items"][0]
    assert (row["coordinate"], row["event_id"], row["committed_at"]) == ("2", source[2][0], source[2][1].isoformat())
    out = io.StringIO()
    call_command("ledger", "list", "orders-mail", stdout=out)
    named = f"event id {source[2][0]}, committed {source[2][1].isoformat()[:16]}, content gone"
    assert f"0=2  lost, key {row['key']!r}, {named}" in out.getvalue()
    out = io.StringIO()
    call_command("ledger", "list", "orders-mail", "--json", stdout=out)
    assert json.loads(out.getvalue().splitlines()[-1])["items"][0]["event_id"] == source[2][0]
    client.force_login(root)
    assert source[2][0] in client.get("/pipelines/orders-mail/").content.decode()


def test_a_first_number_that_was_rolled_back_is_unknown_until_somebody_says_so_and_is_told_what_to_do(
    numbered: World,
) -> None:
    """An audit that saw the table empty knows no more: number 1 may have been committed and deleted since."""
    world = numbered
    world.audit()
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute('INSERT INTO outbox ("key", content) VALUES (%s, %s)', ["never", "{}"])
        connection.rollback()
    commit(world, KEYS[1:4])
    deliver(world, KEYS[1:4])
    audit = world.audit()
    assert (audit.status, audit.exit_code) == ("unknown", 3), audit.says
    assert "Unknown below 2: numbers begin at 1, and the oldest row is 2." in audit.says
    assert "rolled back, as a first one that fails in a new table often is" in audit.says
    assert "say so, once: manage.py ledger nothing-owed-below PIPELINE 2 --reason TEXT." in audit.says
    reason = "The first insert failed."
    ledger_decide_below(world.pipeline, "2", reason=reason, actor="grace", now=timezone.now())
    for _ in range(2):
        audit = world.audit()
        assert (audit.status, audit.exit_code) == ("exactly_once_given", 4), audit.says
