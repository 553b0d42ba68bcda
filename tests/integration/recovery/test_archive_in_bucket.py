"""The archive in a bucket: written, sent from, joined and taken away there; and what a store that fails makes of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from recovery_api.archive_rows import archive_as_row
from recovery_api.models import ArchivePart, RecoveryOutcome
from tests.buckets import Bucket, refusing
from tests.integration.recovery.archive_world import floor_says, parts, with_losses_purged
from tests.integration.recovery.test_bucket import bucket
from tests.integration.recovery.test_grounds import deliver
from tests.integration.recovery.test_ledger import KEYS, commit
from tests.integration.recovery.world import World
from workers.evidence import places
from workers.recovery.archiving import archive_join, archive_sweep

__all__ = ["bucket"]


def test_what_is_gone_at_the_source_is_sent_from_the_bucket_and_nothing_lies_in_a_folder(
    archived: World, bucket: Bucket, settings: Any
) -> None:
    world = archived
    with_losses_purged(world)
    (part,) = parts(world)
    assert bucket.names("archive/") == [f"run/archive/{world.pipeline.pk}/{part.file}"]
    assert part.place == f"s3://evidence/run/archive/{world.pipeline.pk}"
    assert not Path(settings.FENCEPOST_EVIDENCE_DIR).exists()
    assert "a-secret" not in str(list(ArchivePart.objects.values())) and "secret_key" not in part.place
    recovery = world.recover()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 2), recovery.says
    assert sorted(world.accepted_keys()) == KEYS


def test_a_file_in_the_bucket_that_was_changed_or_taken_away_gives_nothing(archived: World, bucket: Bucket) -> None:
    world = archived
    with_losses_purged(world)
    (name,) = bucket.names("archive/")
    body = bucket.get(name)
    bucket.put(name, body[:-9] + b"x" + body[-8:])
    plan = world.plan()
    assert plan.batch_count == 0 and "is not what was written there" in floor_says(plan)
    bucket.delete(name)
    plan = world.plan()
    assert plan.batch_count == 0 and "in a file of the archive that cannot be read" in floor_says(plan)
    assert "1 file of the archive is gone" in world.audit().says


def test_files_in_the_bucket_become_one_and_go_when_their_time_is_over(archived: World, bucket: Bucket) -> None:
    world = archived
    for some in (KEYS[:4], KEYS[4:]):
        commit(world, some)
        deliver(world, some)
        assert world.audit().status == "exactly_once"
    before = bucket.names("archive/")
    assert len(before) == 2
    assert archive_join(timezone.now() + timedelta(days=1)) == 1
    (joined,) = parts(world)
    assert joined.rows == 9 and len(bucket.names("archive/")) == 3, "somebody may read the old ones"
    world.audit()
    assert len(bucket.names("archive/")) == 3, "for a day"
    assert archive_sweep(joined.expires_at) == 1
    assert f"run/archive/{world.pipeline.pk}/{joined.file}" not in bucket.names("archive/")


def test_a_bucket_that_answers_503_leaves_the_verdict_and_is_said(
    archived: World, bucket: Bucket, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, served = archived, settings.FENCEPOST_EVIDENCE_URL
    monkeypatch.setattr(places, "ATTEMPTS", 1)
    commit(world, KEYS[:3])
    deliver(world, KEYS[:3])
    world.audit()
    commit(world, KEYS[3:])
    deliver(world, KEYS[3:])
    with refusing(503, "ServiceUnavailable") as away:
        settings.FENCEPOST_EVIDENCE_URL = away
        audit = world.audit()
        assert audit.status == "exactly_once", audit.says
        assert "Not archived above 3, because its store cannot be written (the store is not available" in audit.says
        assert "of the archive is gone" not in audit.says, "nobody could look"
        assert archive_sweep(timezone.now() + timedelta(days=30)) == 0
    settings.FENCEPOST_EVIDENCE_URL = served
    assert not ArchivePart.objects.filter(gone_at__isnull=False).exists()
    audit = world.audit()
    assert "Not archived" not in audit.says and audit.lanes["0"]["archive"]["rows"] == "6"


def test_files_of_before_the_bucket_are_sent_and_those_of_a_bucket_that_is_not_set_any_more_are_not(
    archived: World, settings: Any, request: pytest.FixtureRequest
) -> None:
    world = archived
    with_losses_purged(world)
    assert parts(world)[0].place == ""
    request.getfixturevalue("bucket")
    commit(world, ["e10"])
    world.audit()
    assert [one.place == "" for one in parts(world)] == [True, False]
    assert world.plan().batch_count == 3, "two of them from the folder"
    ArchivePart.objects.filter(place="").update(place="s3://another/run/archive/1")
    plan = world.plan()
    assert plan.batch_count == 1 and "its bucket is not set any more" in floor_says(plan)
    assert archive_as_row(world.pipeline)["held"][0]["files"] == "2"
