"""The archive's folder full or closed, how long its files stay, and files that another archive made."""

from __future__ import annotations

import json
import resource
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from django.utils import timezone

from recovery_api.archive_rows import archive_as_row
from recovery_api.models import Intent, RecoveryOutcome
from recovery_api.selectors.archives import archive_folder
from recovery_api.services.archives import archive_import_request
from recovery_api.services.omissions import omission_acknowledge
from tests.integration.recovery.archive_world import floor_says, parts, path_of, with_losses_purged
from tests.integration.recovery.test_grounds import deliver
from tests.integration.recovery.test_ledger import KEYS, commit, purge
from tests.integration.recovery.world import World, run
from workers.evidence.archive import writing
from workers.recovery.archiving import archive_sweep

# -- its folder -------------------------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_written_leaves_the_verdict_and_is_said(archived: World) -> None:
    world = archived
    commit(world, KEYS[:3])
    deliver(world, KEYS[:3])
    world.audit()
    folder = archive_folder(world.pipeline.pk)
    kept = folder.rename(folder.with_name("elsewhere"))
    folder.write_text("a file where the folder was")
    commit(world, KEYS[3:])
    deliver(world, KEYS[3:])
    audit = world.audit()
    assert audit.status == "exactly_once", audit.says
    assert "Not archived above 3, because its folder cannot be written (" in audit.says
    assert archive_as_row(world.pipeline)["problems"][0].startswith("Not archived above 3, because")
    folder.unlink()
    kept.rename(folder)
    audit = world.audit()
    assert "Not archived" not in audit.says and audit.lanes["0"]["archive"]["rows"] == "6"


@contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """The operating system refuses whatever this process writes past `size` bytes of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_folder_keeps_what_was_whole_and_no_half_file(archived: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = archived
    monkeypatch.setattr(writing, "ROWS_A_BLOCK", 4)
    commit(world, KEYS[:4])
    world.commit(["e5"], {"large": secrets.token_hex(2**20)})
    commit(world, KEYS[5:])
    deliver(world, KEYS)
    with files_at_most(2**19):
        audit = world.audit()
    assert audit.status == "exactly_once"
    assert "Not archived above 4, because its folder cannot be written (File too large)." in audit.says
    assert [one.name for one in archive_folder(world.pipeline.pk).iterdir()] == [one.file for one in parts(world)]
    assert "Not archived" not in world.audit().says
    assert sum(one.rows for one in parts(world)) == 9


# -- retention --------------------------------------------------------------------------------------------------------


def test_a_file_goes_when_its_time_is_over_and_its_row_says_so(archived: World) -> None:
    world = archived
    commit(world, KEYS)
    deliver(world, KEYS)
    world.audit()
    (part,) = parts(world)
    assert archive_sweep(part.expires_at - timedelta(seconds=1)) == 0
    assert archive_sweep(part.expires_at) == 1 and not path_of(world, part).exists()
    (part,) = parts(world)
    assert part.gone_at == part.expires_at and part.gone_because
    assert archive_sweep(part.expires_at) == 0
    commit(world, ["e10"])
    assert world.audit().lanes["0"]["archive"]["rows"] == "1"  # what went is not written again


def test_what_an_open_item_needs_stays_until_it_is_settled(archived: World) -> None:
    world = archived
    with_losses_purged(world)
    later = timezone.now() + timedelta(days=30)
    assert archive_sweep(later) == 0
    assert archive_as_row(world.pipeline)["held"][0]["needed_files"] == "1"
    assert world.recover().outcome == RecoveryOutcome.EXACTLY_ONCE
    assert archive_sweep(later) == 1


def test_what_was_given_up_for_good_keeps_no_file(archived: World) -> None:
    world = archived
    with_losses_purged(world)
    for coordinate in ("2", "7"):
        omission_acknowledge(world.pipeline, coordinate, reason="abandoned", actor="grace", now=timezone.now())
    world.audit()
    assert archive_sweep(timezone.now() + timedelta(days=30)) == 1


# -- files of another archive -----------------------------------------------------------------------------------------


def imported(world: World, files: list[Path]) -> Intent:
    intent = archive_import_request(
        world.pipeline, [str(one) for one in files], actor="grace", now=timezone.now(), wake=False
    )
    run(intent)
    intent.refresh_from_db()
    return intent


def test_files_of_another_archive_are_counted_registered_and_fired(
    archived: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = archived
    world.pipeline.options = {}
    world.pipeline.save()
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.setenv("FENCEPOST_ARCHIVE_FOLDERS", str(folder))
    commit(world, KEYS)
    deliver(world, [key for key in KEYS if key not in ("e2", "e7")])
    assert world.audit().lost_count == 2
    with psycopg.connect(world.source_dsn) as connection:
        rows = connection.execute('SELECT id, event_id, op, "key", content FROM outbox ORDER BY id').fetchall()
    names = ("coordinate", "event_id", "op", "key", "value")
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    (folder / "outbox.jsonl").write_text("\n".join([*lines, "no event"]) + "\n")
    purge(world, "e2", "e7")
    assert "no recovery can send them" in world.audit().says
    result = imported(world, [folder / "outbox.jsonl"]).result
    (file,) = result["files"]
    assert (file["lines"], file["recognised"], file["rejected"]) == (10, 9, 1), file
    assert [(one.registered_by, one.rows) for one in parts(world)] == [("grace", 9)]
    assert world.audit().lost_count == 2
    recovery = world.recover()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 2), recovery.says


def test_an_imported_content_that_is_not_what_was_judged_is_never_sent(
    archived: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = archived
    world.pipeline.options = {}
    world.pipeline.save()
    monkeypatch.setenv("FENCEPOST_ARCHIVE_FOLDERS", str(tmp_path))
    commit(world, KEYS[:2])
    world.audit()
    lines = [{"coordinate": number, "op": "insert", "key": f"e{number}", "value": {"n": 1}} for number in (1, 2)]
    (tmp_path / "other.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    purge(world, "e1", "e2")
    imported(world, [tmp_path / "other.jsonl"])
    plan = world.plan()
    assert (plan.batch_count, plan.batch["unknowable"]) == (0, "2")
    assert "not in the archive" in floor_says(plan)
