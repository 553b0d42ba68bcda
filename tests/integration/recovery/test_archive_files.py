"""A folder of an archive as the source, through the whole path: audit, plan, recovery, and a folder that changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.utils import timezone

from recovery_api.models import RecoveryOutcome
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from tests.contract.benches.archive_files import line
from tests.contract.sink_engines import event_make, rows_make
from tests.integration.recovery.test_cases import between_the_readings
from tests.integration.recovery.world import World


class Archive(World):
    """The world's kit behind a folder of files instead of its outbox."""

    folder: Path

    def until_safe(self) -> None:
        """What is in a folder is there."""

    def parquet(self, name: str, events: list[dict[str, Any]]) -> None:
        """As Spark or pandas writes it: a column each, the content as JSON text."""
        rows = [
            {
                "coordinate": one["position"],
                "value": one["content"],
                **{name: one[name] for name in ("op", "key", "event_id")},
            }
            for one in events
        ]
        pq.write_table(pa.Table.from_pylist(rows), self.folder / name)

    def lines(self, name: str, events: list[dict[str, Any]]) -> None:
        (self.folder / name).write_text("".join(map(line, events)))

    def accept(self, *positions: int) -> None:
        self.sink().deliver(0, pa.Table.from_batches([rows_make([event_make(position) for position in positions])]))


@pytest.fixture
def archive(world: World, tmp_path: Path) -> Archive:
    folder = tmp_path / "archive"
    folder.mkdir()
    now = timezone.now()
    options = {"folder": str(folder), "is_written_in_order": True}
    world.pipeline.retired_at = now
    world.pipeline.save()
    source = source_create("archive", "archive_files", options, actor="olga", now=now)
    sink = sink_create("letters", "postgresql_kit", world.sink_options, actor="ada", now=now)
    pipeline = pipeline_create("archive-letters", source, sink, actor="ada", now=now)
    made = Archive(world.source_dsn, world.sink_dsn, options, world.sink_options, pipeline)
    made.folder = folder
    return made


def events(*positions: int) -> list[dict[str, Any]]:
    return [event_make(position) for position in positions]


def test_an_archive_is_audited_against_the_kit_and_what_is_lost_is_delivered(archive: Archive) -> None:
    archive.parquet("1.parquet", events(*range(1, 21)))
    archive.lines("2.jsonl", events(*range(21, 31)))
    archive.accept(*(position for position in range(1, 31) if position not in (7, 25, 26)))
    audit = archive.audit()
    assert (audit.status, audit.lost_count, audit.premature_count) == ("owed", 3, 0)
    assert sorted(row["coordinate"] for row in audit.findings) == ["25", "26", "7"]

    recovery = archive.recover()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN, recovery.says
    assert recovery.landed_count == 3
    verified = recovery.audits.get()
    assert any("the archive is written in committed order (olga on" in given for given in verified.givens)
    assert len(archive.accepted_keys()) == 30


def test_an_event_that_comes_in_below_an_audited_frontier_ends_the_ground(archive: Archive) -> None:
    archive.lines("1.jsonl", events(1, 2, 5))
    archive.accept(1, 2, 5)
    assert archive.audit().status == "exactly_once_given"
    archive.lines("2.jsonl", events(3, 9))
    audit = archive.audit()
    assert audit.status != "exactly_once_given" and audit.lost_count == 2
    assert "1 row at or below 5" in json.dumps(audit.lanes)


@pytest.mark.parametrize("what", ["altered", "late", "gone"])
def test_an_archive_that_changes_below_the_frontier_while_it_is_read_is_unknown(
    archive: Archive, tmp_path: Path, what: str
) -> None:
    """Its count and digest are read again after the frontier was pinned: what differs proves nothing."""
    archive.lines("1.jsonl", events(1, 2))
    archive.lines("2.jsonl", events(4, 5))
    archive.accept(1, 2, 4, 5)

    def change() -> None:
        match what:
            case "altered":
                archive.lines("1.jsonl", [event_make(1, content='{"other": 1}'), event_make(2)])
            case "late":
                archive.lines("3.jsonl", events(3))
            case _:
                (archive.folder / "1.jsonl").unlink()

    with between_the_readings(tmp_path / "gate", change):
        audit = archive.audit()
    assert (audit.status, audit.exit_code) == ("unknown", 3)
    assert "changed while they were read" in json.dumps([audit.says, audit.weaknesses])


def test_what_is_written_above_the_frontier_meanwhile_changes_nothing(archive: Archive, tmp_path: Path) -> None:
    archive.lines("1.jsonl", events(1, 2))
    archive.accept(1, 2)
    with between_the_readings(tmp_path / "gate", lambda: archive.lines("2.jsonl", events(3))):
        audit = archive.audit()
    assert (audit.status, audit.exit_code, audit.lost_count) == ("exactly_once_given", 4, 0)


def test_a_line_that_cannot_be_read_makes_the_verdict_unknown(archive: Archive) -> None:
    archive.lines("1.jsonl", events(1, 2))
    with (archive.folder / "1.jsonl").open("a") as file:
        file.write('{"coordinate": 3, "op": "ins')
    archive.accept(1, 2)
    audit = archive.audit()
    assert audit.status == "unknown" and "1.jsonl" in json.dumps([audit.says, audit.weaknesses])


def test_an_empty_folder_owes_nothing_and_each_lane_is_judged_apart(archive: Archive) -> None:
    archive.pipeline.source.options |= {"lane_from": "file"}
    archive.pipeline.source.save()
    assert archive.audit().lost_count == 0
    archive.lines("a.1.jsonl", events(1, 2))
    archive.lines("b.1.jsonl", events(1))
    audit = archive.audit()
    assert {lane: row["counts"]["lost"] for lane, row in audit.lanes.items()} == {"a": 2, "b": 1}
