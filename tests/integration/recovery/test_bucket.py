"""Evidence in a bucket, from the audit to the certificate and to its end; and a sweep that knows what nothing rests on."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from recovery_api.domain.errors import EvidenceUnwritable
from recovery_api.models import Audit, EvidencePlace, Intent, Plan, Recovery, RecoveryOutcome
from recovery_api.selectors.evidence_places import stored_get
from recovery_api.services.evidence_places import evidence_keep
from tests.buckets import ENVIRONMENT, Bucket, bucket_served
from tests.integration.recovery.world import World, run
from workers.evidence.batch import batch_held
from workers.evidence.store import FINDINGS, PUT_BYTES, part_write
from workers.recovery.ends import evidence_place
from workers.recovery.retention import evidence_sweep, retention_sweep

DAY = dt.timedelta(days=1)


@pytest.fixture
def bucket(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with bucket_served() as served:
        settings.FENCEPOST_EVIDENCE_URL = served.url
        yield served


def test_an_incident_is_audited_planned_and_recovered_with_evidence_in_a_bucket(
    world: World, bucket: Bucket, settings: Any
) -> None:
    world.commit(["e1", "e2", "e3"])
    world.deliver(["e2"])
    assert world.audit().lost_count == 2
    plan = world.approve(world.plan())
    fence = world.sink().state().fence
    (part,) = [name for name in bucket.names("plans/") if "/part-" in name]
    body = bucket.get(part)
    bucket.put(part, body[:-9] + b"x" + body[-8:])
    altered = world.request(plan)
    run(altered.intents.get())
    altered.refresh_from_db()
    assert altered.outcome == RecoveryOutcome.REFUSED and "is gone, whole or in part" in altered.says
    assert world.sink().state().fence == fence, "the relay was fenced for nothing"
    recovery = world.request(world.approve(world.plan()))
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 2), recovery.says
    assert not list(Path(settings.FENCEPOST_EVIDENCE_DIR).rglob("*.parquet")), "nothing lies in a folder"
    named = {
        f"{place.uri.partition('evidence/')[2]}/{row[2]}"
        for place in EvidencePlace.objects.all()
        for row in place.manifest
    }
    assert named == set(bucket.names()), "what exists is what the manifests say"
    assert EvidencePlace.objects.filter(recovery=recovery, kept_at__isnull=False).count() == 1
    rows = [str(list(model.objects.values())) for model in (Audit, Plan, Recovery, Intent, EvidencePlace)]
    assert not [row for row in rows if "a-secret" in row or "secret_key" in row]
    settings.FENCEPOST_EVIDENCE_DAYS = 1
    world.audit()
    later = timezone.now() + 3 * DAY
    retention_sweep(later), evidence_sweep(later)
    kept = {place.uri for place in EvidencePlace.objects.all()}
    assert {name.rpartition("/")[0] for name in bucket.names()} <= {uri.partition("evidence/")[2] for uri in kept}
    assert bucket.names("plans/") and not [name for name in bucket.names() if str(plan.pk) in name]


def test_what_nothing_rests_on_goes_within_a_day_and_what_a_manifest_names_stays(world: World) -> None:
    world.commit(["e1"])
    audit = world.audit()
    abandoned = Path(evidence_place("audits", "died"))
    part_write(str(abandoned), FINDINGS, 0, _rows(audit))
    kept = Path(audit.evidence_uri)
    (kept / "part-00000-ofanotherattempt.parquet").write_bytes(b"half")
    (kept / "part-00000-ofnow.parquet").write_bytes(b"half")
    old = time.time() - 5 * 86_400
    os.utime(kept / "part-00000-ofanotherattempt.parquet", (old, old))
    for one in kept.iterdir():
        if one.name != "part-00000-ofnow.parquet":
            os.utime(one, (old, old))
    now = timezone.now()
    assert evidence_sweep(now) == 0 and abandoned.exists()
    EvidencePlace.objects.update(begun_at=now - 2 * DAY)
    EvidencePlace.objects.filter(kept_at__isnull=False).update(kept_at=now - 2 * DAY)
    assert evidence_sweep(now + dt.timedelta(hours=2)) == 1 and not abandoned.exists()
    assert batch_held(stored_get(audit.evidence_uri)) == 1
    left = [one.name for one in kept.iterdir() if "-of" in one.name]
    assert left == ["part-00000-ofnow.parquet"], "of this day's nobody knows yet"
    with pytest.raises(EvidenceUnwritable, match="longer than a day"):
        from recovery_api.domain.evidence_places import Stored

        evidence_keep(Stored(str(abandoned)), now)


def _rows(audit: Audit) -> Any:
    from workers.evidence.schemas import FINDING
    from workers.evidence.store import rows_read

    stored = stored_get(audit.evidence_uri)
    assert stored is not None and max(one.size for one in stored.objects) < PUT_BYTES
    return rows_read(stored, stored.of(FINDINGS), FINDING)
