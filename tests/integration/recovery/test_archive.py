"""What an audit archived is fired when the source dropped it, on real ends; and nothing is that is not what was judged."""

from __future__ import annotations

import hashlib
import stat
from datetime import timedelta
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from recovery_api.archive_rows import archive_as_row
from recovery_api.domain.coordinates import Coordinate
from recovery_api.models import ArchivePart, RecoveryOutcome
from recovery_api.selectors.archives import archive_folder
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.services.event_reads import event_read_request
from recovery_api.services.omissions import omission_acknowledge
from tests.integration.control.test_commands import run as run_command
from tests.integration.recovery.archive_world import floor_says, parts, path_of, with_losses_purged
from tests.integration.recovery.test_grounds import deliver, late_row
from tests.integration.recovery.test_ledger import KEYS, commit, items, purge
from tests.integration.recovery.world import World, run
from workers.connectors.rows import payload_of
from workers.evidence.archive import writing
from workers.evidence.archive.parts import ARCHIVED

# -- writing ----------------------------------------------------------------------------------------------------------


def test_each_audit_archives_what_came_since_the_last_one(archived: World) -> None:
    world = archived
    commit(world, KEYS[:4])
    deliver(world, KEYS[:4])
    first = world.audit()
    assert first.status == "exactly_once" and "rchive" not in first.says, first.says
    assert first.lanes["0"]["archive"] == {"rows": "4", "problem": None, "above_says": None}
    commit(world, KEYS[4:6])
    deliver(world, KEYS[4:6])
    second = world.audit()
    assert world.audit().lanes["0"]["archive"]["rows"] == "0"
    assert [(one.audit, one.rows, one.low_position, one.high_position) for one in parts(world)] == [
        (first, 4, None, 4),
        (second, 2, 4, 6),
    ]
    for part in parts(world):
        path = path_of(world, part)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert hashlib.sha256(path.read_bytes()).hexdigest() == part.file_digest
        assert part.expires_at - part.written_at == timedelta(days=7)
        assert part.incarnation and part.digest != "0:0:0:0"
    table = pa.concat_tables([pq.read_table(path_of(world, part)) for part in parts(world)])
    assert table.schema.names == ARCHIVED.names
    assert table["key"].to_pylist() == KEYS[:6] and table["position"].to_pylist() == [1, 2, 3, 4, 5, 6]
    with psycopg.connect(world.source_dsn) as connection:
        rows = connection.execute("SELECT event_id, op, content::text FROM outbox ORDER BY id").fetchall()
    assert list(zip(*(table[name].to_pylist() for name in ("event_id", "op", "content")), strict=True)) == rows
    assert not list(archive_folder(world.pipeline.pk).glob(".*"))
    held = archive_as_row(world.pipeline)["held"]
    assert [(one["above"], one["to"], one["events"], one["files"]) for one in held] == [(None, "6", "6", "2")]


def test_a_pipeline_that_is_not_archived_keeps_no_content(archived: World) -> None:
    world = archived
    world.pipeline.options = {}
    world.pipeline.save()
    commit(world, KEYS)
    assert world.audit().lanes["0"]["archive"] is None
    assert parts(world) == [] and not archive_folder(world.pipeline.pk).exists()


def test_a_long_history_is_archived_part_by_part_and_audit_by_audit(
    archived: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = archived
    monkeypatch.setattr(writing, "ROWS_A_BLOCK", 2)
    monkeypatch.setattr(writing, "ROWS_HELD", 3)  # less than one piece of an estimate holds: cut finer
    monkeypatch.setattr(writing, "ROWS_AT_ONCE", 5)
    commit(world, KEYS)
    audit = world.audit()
    assert "Not archived above 5, because an audit archives 5 events at most; the next one goes on." in audit.says
    assert audit.status == "owed"
    assert "rchived" not in world.audit().says
    assert [(one.rows, one.high_position) for one in parts(world)] == [(2, 2), (2, 4), (1, 5), (2, 7), (2, 9)]


def test_a_late_row_is_archived_beside_what_is_there(archived: World) -> None:
    world = archived
    commit(world, KEYS[:2])
    deliver(world, KEYS[:2])
    world.audit()
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute('INSERT INTO outbox ("key", content) VALUES (%s, %s)', ["never", "{}"])
        connection.rollback()
    commit(world, KEYS[3:5])
    deliver(world, KEYS[3:5])
    assert world.audit().status == "exactly_once"
    late_row(world, 3, "late")
    audit = world.audit()
    assert "Late:" in audit.says and audit.lost_count == 1, audit.says
    purge(world, "late")
    plan = world.plan()
    assert (plan.batch_count, plan.pins["archived"]) == (1, "1"), plan.says


# -- firing -----------------------------------------------------------------------------------------------------------


def test_what_the_source_dropped_is_fired_from_the_archive_and_is_exactly_once(archived: World) -> None:
    world = archived
    with_losses_purged(world)
    audit = world.audit()
    assert (audit.status, audit.lost_count) == ("owed", 2)
    assert "2 of the missing are gone at the source, and in the archive: a recovery can send them" in audit.says
    commit(world, ["e10"])  # one that the source holds still: both ways in one fire, in order
    plan = world.plan()
    assert plan.batch_count == 3, plan.says
    assert (plan.batch["provably missing"], plan.batch["unknowable"]) == ("3", "0")
    assert "The content of 2 comes from the archive" in plan.says and plan.pins["archived"] == "2"
    assert next(one for one in plan.conditions if one["name"] == "floor")["holds"]
    recovery = world.request(world.approve(plan))
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 3), recovery.says
    assert "The content of 2 of them came from the archive." in recovery.says
    assert recovery.certificate["archived"] == 2 and recovery.certificate["landed"] == 3
    assert world.accepted_keys()[-3:] == ["e2", "e7", "e10"]
    with psycopg.connect(world.sink_dsn) as connection:
        landed = connection.execute(
            "SELECT position, payload_digest FROM fencepost.accepted WHERE position IN (2, 7) ORDER BY 1"
        ).fetchall()
    event = {"lane": "0", "ordinal": 0, "op": "insert"}
    assert landed == [
        (number, payload_of({**event, "position": number, "key": key, "content": f'{{"key": "{key}", "amount": 1.5}}'}))
        for number, key in ((2, "e2"), (7, "e7"))
    ]
    assert items(world) == [("lost", 2, True, "accepted"), ("lost", 7, True, "accepted"), *items(world)[2:]]
    audit = world.audit()
    assert audit.status == "exactly_once", audit.says
    assert pipeline_status(world.pipeline, timezone.now()).status == "exactly_once"


def test_an_approved_event_that_the_source_drops_before_the_claim_is_fired_all_the_same(archived: World) -> None:
    world = archived
    commit(world, KEYS)
    deliver(world, KEYS[1:])
    world.audit()
    plan = world.approve(world.plan())
    purge(world, "e1")
    recovery = world.request(plan)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 1), recovery.says


# -- what may not be sent ---------------------------------------------------------------------------------------------


def test_a_part_with_a_flipped_byte_gives_nothing(archived: World) -> None:
    world = archived
    with_losses_purged(world)
    path = path_of(world, parts(world)[0])
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    plan = world.plan()
    assert plan.batch_count == 0 and plan.batch["unknowable"] == "2", plan.says
    says = floor_says(plan)
    assert "2 events are in a file of the archive that is not what was written there: somebody changed it." in says
    assert "2 events the source no longer holds were never accepted." in says
    assert "They lie from 2 to 7: this plan refuses that range." in says
    assert "abandon them, or accept them as lost" in says
    assert "no recovery can send them" in world.audit().says


def rewrite(world: World, part: ArchivePart, content: str) -> None:
    """Another content, and everything that the control database knows of the file made to fit it."""
    path = path_of(world, part)
    table = pq.read_table(path)
    at = table.schema.get_field_index("content")
    pq.write_table(table.set_column(at, ARCHIVED.field("content"), pa.array([content] * table.num_rows)), path)
    part.bytes, part.file_digest = path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()
    part.save()


def test_a_part_that_was_written_again_with_other_contents_gives_nothing(archived: World) -> None:
    world = archived
    with_losses_purged(world)
    path = path_of(world, parts(world)[0])
    table = pq.read_table(path)
    pq.write_table(table.append_column("more", table["key"]), path)  # the contents as they were, and yet another file
    plan = world.plan()
    assert plan.batch_count == 0, plan.says
    assert "2 events are in a file of the archive that is not what was written there" in floor_says(plan)
    table = table.set_column(table.schema.get_field_index("content"), "content", [["{}"] * table.num_rows])
    pq.write_table(table, path)
    part = parts(world)[0]
    part.bytes, part.file_digest = path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()
    part.save()
    plan = world.plan()
    assert plan.batch_count == 0, plan.says
    assert "2 events are in a file of the archive that is not what was written there" in floor_says(plan)


def test_contents_rewritten_with_their_digests_are_found_before_anything_is_staged(archived: World) -> None:
    world = archived
    with_losses_purged(world)
    plan = world.approve(world.plan())
    rewrite(world, parts(world)[0], '{"key": "e2", "amount": 1000000}')
    before = world.accepted_keys()
    recovery = world.request(plan)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED, recovery.says
    assert "2 events are in a file of the archive that is not what was written there" in recovery.says
    assert world.accepted_keys() == before


def test_a_file_that_is_gone_after_approval_refuses_the_recovery_by_name(archived: World) -> None:
    world = archived
    with_losses_purged(world)
    plan = world.approve(world.plan())
    path_of(world, parts(world)[0]).unlink()
    recovery = world.request(plan)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED, recovery.says
    assert "it was deleted, or its folder is away" in recovery.says and recovery.landed_count == 0
    audit = world.audit()
    assert "1 file of the archive is gone" in audit.says and audit.lost_count == 2


def test_an_archive_of_another_incarnation_gives_nothing_and_a_person_decides(archived: World) -> None:
    world = archived
    with_losses_purged(world)
    ArchivePart.objects.update(incarnation="of the server before the fail-over")
    plan = world.plan()
    assert plan.batch_count == 0 and plan.batch["unknowable"] == "2", plan.says
    assert "archived from another server, timeline or table than the source is now" in floor_says(plan)
    for coordinate in ("2", "7"):
        omission_acknowledge(world.pipeline, coordinate, reason="accepted as lost", actor="grace", now=timezone.now())
    plan = world.plan()
    assert plan.batch["acknowledged"] == "2" and plan.batch["unknowable"] == "0"
    assert next(one for one in plan.conditions if one["name"] == "floor")["holds"]
    assert world.audit().status == "acknowledged"


def test_an_archive_from_before_the_source_was_put_back_gives_nothing(archived: World) -> None:
    world = archived
    with_losses_purged(world)
    ArchivePart.objects.update(read_to=str(2**60))
    assert "it was put back to an earlier state since" in floor_says(world.plan())


def test_an_archive_under_another_mapping_gives_nothing(archived: World) -> None:
    world = archived
    with_losses_purged(world)
    ArchivePart.objects.update(mapping="another")
    assert "mapped or filtered otherwise" in floor_says(world.plan())


def test_nothing_is_sent_from_the_archive_where_the_source_holds_another_event(archived: World) -> None:
    world = archived
    with_losses_purged(world)
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute(
            'INSERT INTO outbox (id, "key", content) OVERRIDING SYSTEM VALUE VALUES (2, %s, %s)', ["other", "{}"]
        )
    plan = world.plan()
    assert plan.batch["unknowable"] == "1", plan.batch
    assert "the source holds another event at its coordinate now" in floor_says(plan)


# -- faces ------------------------------------------------------------------------------------------------------------


def test_page_command_and_rest_say_what_the_archive_holds(archived: World, client: Client) -> None:
    world = archived
    with_losses_purged(world)
    world.audit()
    said = run_command("archive", "show", world.pipeline.name).out
    assert "lane 0: 9 events up to 9, in 1 files of " in said
    assert "open items need 1 of them for longer" in said
    person = get_user_model().objects.create(username="ada")
    person.groups.add(Group.objects.get_or_create(name="viewer")[0])
    client.force_login(person)
    page = " ".join(client.get(f"/pipelines/{world.pipeline.name}/", secure=True).content.decode().split())
    assert "What audits kept of the source, contents included" in page and "amount" not in page
    row = client.get(f"/api/v1/pipelines/{world.pipeline.name}/archive", secure=True).json()
    assert (row["is_archived"], row["days"], row["held"][0]["events"]) == (True, "7", "9")
    item = client.get(f"/api/v1/pipelines/{world.pipeline.name}/items", secure=True).json()["items"][0]
    assert "A file of the archive covers its place" in item["means"]


def test_what_is_gone_at_the_source_is_read_from_the_archive_by_who_may_read_contents(
    archived: World, client: Client
) -> None:
    world = archived
    with_losses_purged(world)
    audit = world.audit()
    run(event_read_request(world.pipeline, "0", Coordinate(2), actor="operator", now=timezone.now(), wake=False))
    address = f"/event/?audit={audit.id}&lane=0&at=2"
    pages = {}
    for role in ("viewer", "operator"):
        person = get_user_model().objects.create(username=role)
        person.groups.add(Group.objects.get_or_create(name=role)[0])
        client.force_login(person)
        pages[role] = client.get(address, secure=True, follow=True).content.decode()
    assert all("The archive holds what an audit read here" in page for page in pages.values())
    assert "&quot;amount&quot;: 1.5" in pages["operator"] and "&quot;amount&quot;" not in pages["viewer"]


# -- on the engine ----------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_on_the_engine_it_is_the_same(archived: World, spark: Any, settings: Any) -> None:
    settings.FENCEPOST_IN_PROCESS_ROWS = 0
    world = archived
    with_losses_purged(world)
    assert "2 of the missing are gone at the source, and in the archive" in world.audit().says
    recovery = world.recover()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 2), recovery.says
    assert recovery.certificate["archived"] == 2
