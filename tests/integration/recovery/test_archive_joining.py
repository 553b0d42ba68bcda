"""The archive's files of a day become one: the same contents, whatever dies on the way, and whoever reads meanwhile."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from recovery_api.archive_rows import archive_as_row
from recovery_api.models import ArchivePart, RecoveryOutcome
from recovery_api.selectors.archives import archive_folder, archive_parts, archive_token
from tests.faults.processes import environment
from tests.integration.recovery.archive_world import parts, path_of
from tests.integration.recovery.test_grounds import deliver
from tests.integration.recovery.test_ledger import KEYS, commit, purge
from tests.integration.recovery.world import World
from tests.zygote import forked
from workers.evidence.archive.parts import part_check
from workers.evidence.canonical import batch_digest_add
from workers.recovery.archiving import archive_join, archive_sweep


@pytest.fixture
def day(archived: World) -> World:
    """Four audits of one day, each of which wrote a file; e2 and e7 never arrived and are gone at the source since."""
    for keys in (KEYS[:3], KEYS[3:5], KEYS[5:6], KEYS[6:]):
        commit(archived, keys)
        deliver(archived, [key for key in keys if key not in ("e2", "e7")])
        archived.audit()
    purge(archived, "e1", "e2", "e7")
    noon = timezone.now().replace(hour=12, minute=0)
    assert ArchivePart.objects.update(written_at=noon, expires_at=noon + timedelta(days=7)) == 4
    return archived


def tomorrow() -> Any:
    return timezone.now() + timedelta(days=1)


def test_the_files_of_a_day_become_one_that_serves_as_they_did(day: World) -> None:
    before, token = parts(day), archive_token(day.pipeline)
    for one in before:
        os.utime(path_of(day, one), (0, 0))
    assert archive_join(timezone.now()) == 0, "the day is not over"
    assert archive_join(tomorrow()) == 1
    (joined,) = parts(day)
    assert joined.rows == 9 and joined.digest == batch_digest_add(*(one.digest for one in before))
    assert (joined.low_position, joined.high_position) == (before[0].low_position, before[-1].high_position)
    assert (joined.expires_at, joined.audit_id) == (before[-1].expires_at, before[-1].audit_id)
    assert archive_token(day.pipeline) == token, "an audit at work would throw away what it wrote"
    assert archive_join(tomorrow()) == 0
    assert all(path_of(day, one).exists() for one in before), "somebody may read them"
    day.audit()
    assert all(path_of(day, one).exists() for one in before), "for a day"
    assert archive_as_row(day.pipeline)["held"][0]["files"] == "1"
    recovery = day.recover()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 2), recovery.says
    commit(day, ["e10"])
    day.audit()
    assert [one.rows for one in parts(day)] == [9, 1]
    assert archive_sweep(joined.expires_at) == 1 and not path_of(day, joined).exists()


def test_a_worker_that_dies_between_the_file_and_its_row_loses_nothing(day: World, tmp_path: Path) -> None:
    before, marker = parts(day), tmp_path / "died"
    with forked("tests.faults.join_archive", env=environment(FENCEPOST_CRASH=f"archive.joined:{marker}")) as worker:
        assert worker.wait(timeout=120) == -signal.SIGKILL and marker.exists()
    assert parts(day) == before
    for part in archive_parts(day.pipeline):
        part_check(part)
    left = {one.name for one in archive_folder(day.pipeline.pk).iterdir()} - {one.file for one in before}
    assert len(left) == 1, "a whole file that no row tells of"
    assert archive_join(tomorrow()) == 1
    (joined,) = parts(day)
    assert joined.rows == 9 and joined.file not in left
    assert day.recover().outcome == RecoveryOutcome.EXACTLY_ONCE


def test_a_file_that_is_not_what_was_written_is_joined_with_nothing(day: World) -> None:
    before = parts(day)
    altered = path_of(day, before[1])
    altered.write_bytes(altered.read_bytes()[:-1] + b"x")
    assert archive_join(tomorrow()) == 0
    assert [(one.pk, one.file) for one in parts(day)] == [(one.pk, one.file) for one in before]
    assert not ArchivePart.objects.filter(joined_at__isnull=True).exists(), "and is not read again by every sweep"
    assert day.recover().outcome == RecoveryOutcome.EXACTLY_ONCE, "e2 and e7 lie in others"
    names = {one.name for one in archive_folder(day.pipeline.pk).iterdir()}
    assert names == {one.file for one in before}


def test_days_stay_apart_and_what_went_meanwhile_is_left_alone(day: World) -> None:
    first, second, *_ = parts(day)
    ArchivePart.objects.filter(pk__in=[first.pk, second.pk]).update(written_at=first.written_at - timedelta(days=1))
    assert archive_join(timezone.now()) == 1, "yesterday's"
    assert [one.rows for one in parts(day)] == [5, 1, 3]
    assert archive_join(tomorrow()) == 1
    assert [one.rows for one in parts(day)] == [5, 4]
