"""Blocks as rows of the control database: an audit goes on from them as from what it was given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from django.utils import timezone

from recovery_api.domain.ledger.following import Known
from recovery_api.models import LedgerItem
from recovery_api.selectors.blocks import known_get
from recovery_api.services.blocks import blocks_remember
from tests.integration.recovery.world import World, world_make
from workers.evidence import schemas
from workers.evidence.read import AuditRequest, Evidence, evidence_read
from workers.evidence.remembered import ledger_parts
from workers.evidence.store import parts_of
from workers.recovery.ends import request_make
from workers.recovery.following import learned_keep, reach_says
from workers.recovery.verdicts import audit_write
from workers.spark.on_demand import OnDemand
from workers.spark.tasks import InProcess


@pytest.fixture
def world(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    return world_make(database_factory, tmp_path)


def read(request: AuditRequest, place: Path, session: Any = None) -> Evidence:
    place.mkdir()
    with evidence_read(session or InProcess(), replace(request, evidence=str(place)), lambda **_: None) as found:
        return found


def said(found: Evidence) -> dict[str, Any]:
    """What an audit concludes from, and what it tells the ledger."""
    rows = [
        ds.dataset(parts, format="parquet", schema=schema).to_table().to_pylist()
        for parts, schema in (
            (parts_of(found.directory), schemas.FINDING),
            (ledger_parts(found.directory), schemas.ITEM),
        )
    ]
    lanes = {
        lane: (one.counts, one.fingerprint, one.found and replace(one.found, evidence="", admitted_below=None))
        for lane, one in found.lanes.items()
    }
    return {"rows": [sorted(map(repr, some)) for some in rows], "lanes": lanes}


def test_audits_that_go_on_from_rows_tell_the_ledger_what_ones_in_full_tell_it(world: World, tmp_path: Path) -> None:
    """Blocks of two events, so that there are some that need not be read; kept as rows from one audit to the next."""
    keys = [f"e{number}" for number in range(12)]
    for key in keys:
        world.commit([key])
    kept = 0
    for step, more in enumerate((keys[:9:2], keys[9:11], keys[1:2], keys[:0], keys[:0])):
        world.deliver(more)
        world.until_safe()
        request = replace(request_make(world.pipeline, ""), block_rows=2)
        full = read(request, tmp_path / f"full {step}")
        known = known_get(world.pipeline, "epoch")
        no_engine = (
            OnDemand(50_000, lambda: pytest.fail("an engine was opened")) if known is not None else None
        )  # so little is judged in this process
        found = read(replace(request, is_followed=True, known=known), tmp_path / f"new {step}", no_engine)
        assert said(found) == said(full), reach_says(found)
        assert found.followed is not None
        for segment, summary in zip(found.followed.reach.segments, found.followed.summaries, strict=True):
            kept += len(segment.kept)
            if segment.kept:  # what is owed there waits as before
                assert (summary["waiting"] is None) == (summary["counts"]["lost"] == 0)
        audit = audit_write(world.pipeline, found, started_at=timezone.now(), is_full=False)
        learned_keep(world.pipeline, found, "epoch")
        assert audit.lost_count == 12 - len(world.accepted_keys())
        assert LedgerItem.objects.filter(settled_at__isnull=True).count() == audit.lost_count
        assert known_get(world.pipeline, "epoch") == found.followed.learned
    assert kept > 4


def test_an_older_reading_never_takes_the_place_of_a_newer_one(world: World) -> None:
    at = timezone.now()
    newer, older = Known("5:5:", "newer", at), Known("4:4:", "older", at - timedelta(seconds=1))
    assert blocks_remember(world.pipeline, newer, "epoch")
    assert not blocks_remember(world.pipeline, older, "epoch")
    assert known_get(world.pipeline, "epoch") == newer
    assert blocks_remember(world.pipeline, older, "another epoch"), "another epoch's says nothing of this one"
    assert known_get(world.pipeline, "epoch") is None
