"""Blocks as rows of the control database: an audit goes on from them as from what it was given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from django.utils import timezone
from psycopg import sql

from recovery_api.domain.ledger.following import Known
from recovery_api.models import Audit, EvidencePlace, LedgerItem
from recovery_api.selectors.blocks import block_places, known_get
from recovery_api.services.blocks import blocks_remember
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.omissions import omission_acknowledge
from recovery_api.services.pipelines import pipeline_create
from tests.contract.sink_engines import event_make, rows_make
from tests.integration.recovery.test_archive_files import Archive
from tests.integration.recovery.world import World, world_make
from workers.evidence import schemas
from workers.evidence.read import AuditRequest, Evidence, evidence_read
from workers.evidence.store import FINDINGS, ITEMS, rows_read
from workers.recovery.ends import request_make
from workers.recovery.following import learned_keep, reach_says
from workers.recovery.verdicts import audit_write
from workers.spark.on_demand import OnDemand
from workers.spark.tasks import InProcess


@pytest.fixture
def world(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    return world_make(database_factory, tmp_path)


def read(request: AuditRequest, place: Path, session: Any = None) -> Evidence:
    EvidencePlace.objects.create(uri=str(place), begun_at=timezone.now())
    with evidence_read(session or InProcess(), replace(request, evidence=str(place)), lambda **_: None) as found:
        return found


def said(found: Evidence) -> dict[str, Any]:
    """What an audit concludes from, and what it tells the ledger."""
    rows = [
        rows_read(found.stored, found.stored.of(sort), schema).to_pylist()
        for sort, schema in ((FINDINGS, schemas.FINDING), (ITEMS, schemas.ITEM))
    ]
    for row in rows[1]:
        if found.spec.questions[row["lane"]].scope is None:  # looked up for people, once, and judged by nowhere
            row["key"] = None
    lanes = {
        lane: (one.counts, one.fingerprint, one.found and replace(one.found, evidence="", admitted_below=None))
        for lane, one in found.lanes.items()
    }
    return {"rows": [sorted(map(repr, some)) for some in rows], "lanes": lanes}


def audit_both(world: World, place: Path) -> tuple[Evidence, Audit]:
    """What an audit found that goes on from the last one, and its row; one in full has found the same."""
    place.mkdir()
    world.until_safe()
    request = replace(request_make(world.pipeline, ""), block_rows=2)
    full = read(request, place / "full")
    known = known_get(world.pipeline, "epoch")
    no_engine = (
        OnDemand(50_000, lambda: pytest.fail("an engine was opened")) if known is not None else None
    )  # so little is judged in this process
    found = read(replace(request, is_followed=True, known=known), place / "new", no_engine)
    assert said(found) == said(full), reach_says(found)
    audit = audit_write(world.pipeline, found, started_at=timezone.now(), is_full=False)
    learned_keep(world.pipeline, found, "epoch")
    return found, audit


def test_audits_that_go_on_from_rows_tell_the_ledger_what_ones_in_full_tell_it(world: World, tmp_path: Path) -> None:
    """Blocks of two events, so that there are some that need not be read; kept as rows from one audit to the next."""
    keys = [f"e{number}" for number in range(12)]
    for key in keys:
        world.commit([key])
    kept = 0
    for step, more in enumerate((keys[:9:2], keys[9:11], keys[1:2], keys[:0], keys[:0])):
        world.deliver(more)
        found, audit = audit_both(world, tmp_path / str(step))
        assert found.followed is not None
        for segment, summary in zip(found.followed.reach.segments, found.followed.summaries, strict=True):
            kept += len(segment.kept)
            if segment.kept:  # what is owed there waits as before
                assert (summary["waiting"] is None) == (summary["counts"]["lost"] == 0)
        assert audit.lost_count == 12 - len(world.accepted_keys())
        assert LedgerItem.objects.filter(settled_at__isnull=True).count() == audit.lost_count
        assert known_get(world.pipeline, "epoch") == found.followed.learned
    assert kept > 4


def test_an_audit_goes_on_where_the_source_purged_and_where_omissions_changed(world: World, tmp_path: Path) -> None:
    """Blocks of two events. What went is justified from the ledger, or owed still; an omission opens its own block."""
    keys = [f"e{number}" for number in range(16)]
    for key in keys:
        world.commit([key])
    world.deliver(key for key in keys if key not in ("e1", "e7"))
    e1, e7 = world.coordinate("e1"), world.coordinate("e7")
    audit_both(world, tmp_path / "first")
    steps: list[tuple[str, Callable[[], object], int]] = [
        ("a purge ends in a block", lambda: purge(world, 3), 2),
        ("what went lies below the floor now, and another block ends it", lambda: purge(world, 6), 2),
        ("nothing happened", lambda: None, 2),
        ("one of what is owed was omitted", lambda: omit(world, e7), 1),
        ("what went is omitted", lambda: omit(world, e1), 0),
        ("nothing happened again", lambda: None, 0),
        ("nearly everything went", lambda: purge(world, 15), 0),
        ("everything went", lambda: purge(world, 16), 0),
        ("and something came", lambda: world.commit(["e16"]), 1),
    ]
    for says, happen, owed in steps:
        happen()
        found, audit = audit_both(world, tmp_path / says)
        assert found.followed is not None and not found.followed.reach.because, (says, found.followed.reach.because)
        assert audit.lost_count - audit.acknowledged_count == owed, says
        if says != "everything went":
            assert any(segment.kept for segment in found.followed.reach.segments), says


def test_each_lane_goes_on_by_itself(world: World, tmp_path: Path) -> None:
    """Three lanes of an archive: what came into one opens that one's block, and a new lane is read whole."""
    archive = archive_make(world, tmp_path)
    archive.lines("1.jsonl", [event_make(at, lane=lane) for lane in "ab" for at in range(1, 9)])
    accepted = [(lane, at) for lane in "ab" for at in range(1, 9) if (lane, at) not in (("a", 3), ("b", 2))]
    accept(archive, accepted)
    audit_both(archive, tmp_path / "first")
    steps: list[tuple[str, Callable[[], object], int, int]] = [
        ("nothing happened", lambda: None, 2, 0),
        ("an old one came into b, altered", lambda: accept(archive, [("b", 2)], content='{"other": 1}'), 2, 1),
        ("an old one came into a", lambda: accept(archive, [("a", 3)]), 1, 1),
        ("c is new", lambda: archive.lines("2.jsonl", [event_make(at, lane="c") for at in range(1, 5)]), 5, 1),
        ("what c held came in", lambda: accept(archive, [("c", at) for at in range(1, 5)]), 1, 1),
        ("nothing happened again", lambda: None, 1, 1),
    ]
    for says, happen, lost, premature in steps:
        happen()
        found, audit = audit_both(archive, tmp_path / says)
        assert found.followed is not None and not found.followed.reach.because, (says, found.followed.reach.because)
        kept = {segment.range_.lane for segment in found.followed.reach.segments if segment.kept}
        assert {"a", "b"} <= kept, says
        assert (audit.lost_count, audit.premature_count) == (lost, premature), says
        assert {lane for lane, *_ in block_places(archive.pipeline)} == set(found.lanes), says


def archive_make(world: World, directory: Path) -> Archive:
    """The world's kit behind a folder of files."""
    folder, now = directory / "archive", timezone.now()
    folder.mkdir()
    world.pipeline.retired_at = now
    world.pipeline.save()
    options = {"folder": str(folder), "is_written_in_order": True}
    source = source_create("archive", "archive_files", options, actor="olga", now=now)
    sink = sink_create("letters", "postgresql_kit", world.sink_options, actor="ada", now=now)
    pipeline = pipeline_create("archive-letters", source, sink, actor="ada", now=now)
    made = Archive(world.source_dsn, world.sink_dsn, options, world.sink_options, pipeline)
    made.folder = folder
    return made


def accept(archive: Archive, places: Sequence[tuple[str, int]], **changes: Any) -> None:
    rows = [event_make(at, lane=lane, **changes) for lane, at in places]
    assert set(archive.sink().deliver(0, pa.Table.from_batches([rows_make(rows)]))) == {"accepted"}


def purge(world: World, count: int) -> None:
    """The source's first `count` events ever are not there any more."""
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("DELETE FROM outbox WHERE id <= %s", [count])


def omit(world: World, coordinate: str) -> None:
    omission_acknowledge(world.pipeline, coordinate, reason="poison", actor="ada", now=timezone.now())


def test_what_was_changed_in_a_block_that_something_came_into_is_found(world: World, tmp_path: Path) -> None:
    """As many entries as there must be, and one of them another: by its number alone the block would be believed."""
    keys = [f"e{number}" for number in range(8)]
    for key in keys:
        world.commit([key])
    world.deliver(key for key in keys if key != "e1")
    audit_both(world, tmp_path / "first")
    world.deliver(["e1"])
    with psycopg.connect(world.sink_dsn) as sink:
        sink.execute("ALTER TABLE fencepost.accepted DISABLE TRIGGER USER")
        sink.execute("""UPDATE fencepost.accepted SET payload_digest = sha256('other') WHERE "key" = 'e0'""")
        for trigger in ("rows_stay", "record_stays"):
            sink.execute(
                sql.SQL("ALTER TABLE fencepost.accepted ENABLE ALWAYS TRIGGER {}").format(sql.Identifier(trigger))
            )
    found, audit = audit_both(world, tmp_path / "changed")
    assert found.followed is not None and "acceptance record does not hold any more" in found.followed.reach.because
    assert (audit.status, audit.premature_count) == ("hazard", 1)


def test_an_older_reading_never_takes_the_place_of_a_newer_one(world: World) -> None:
    at = timezone.now()
    newer, older = Known("5:5:", "newer", at), Known("4:4:", "older", at - timedelta(seconds=1))
    assert blocks_remember(world.pipeline, newer, "epoch")
    assert not blocks_remember(world.pipeline, older, "epoch")
    assert known_get(world.pipeline, "epoch") == newer
    assert blocks_remember(world.pipeline, older, "another epoch"), "another epoch's says nothing of this one"
    assert known_get(world.pipeline, "epoch") is None
