"""Seven weeks of a few pipelines by an injected clock: what is kept stays bounded, and the worst is still told."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from recovery_api.models import Event, LedgerItem, Observation, Pipeline
from recovery_api.selectors.retention import settled_gone
from tests.benchmarks.year import ARCHIVED_DAYS, OWED, year

AUDITS_A_DAY, DAYS, PIPELINES = 4, 48, 3
AGES = {"FENCEPOST_EVIDENCE_DAYS": 8, "FENCEPOST_RECORDS_DAYS": 30, "FENCEPOST_HISTORY_DAYS": 40}


@pytest.mark.django_db
def test_what_is_kept_of_a_long_time_stays_bounded_and_keeps_the_worst(tmp_path: Path, settings) -> None:
    settings.FENCEPOST_EVIDENCE_DIR = tmp_path
    for name, days in AGES.items():
        setattr(settings, name, days)
    begin = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    sizes = list(year(PIPELINES, DAYS, AUDITS_A_DAY, begin, tmp_path, every=8))
    hours, days = 31 - 2 + 1, AGES["FENCEPOST_HISTORY_DAYS"] - 31 + 1
    observed = PIPELINES * (AUDITS_A_DAY * (2 + hours + 1) + days)
    late = [size for size in sizes if size.day >= 40]  # the longest age that counts for these is 30 days and some
    assert max(one.rows["observation"] for one in sizes) <= observed
    assert max(one.rows["audit"] for one in late) - min(one.rows["audit"] for one in late) <= 2 * PIPELINES
    assert max(one.rows["event"] for one in late) <= PIPELINES * 2 * (30 // 7 + 1) + DAYS
    assert max(one.rows["evidenceplace"] for one in late) == max(one.folders for one in late)
    assert max(one.folders for one in late) - min(one.folders for one in late) <= 2 * PIPELINES
    asked, drilled, items = PIPELINES * (30 // 7 + 2), PIPELINES * 32, PIPELINES * OWED * (30 // 7 + 2)
    assert max(one.rows["imageaudit"] for one in late) <= asked
    assert max(one.rows["drill"] for one in late) <= drilled
    assert max(one.rows["intent"] for one in late) <= max(one.rows["audit"] for one in late) + asked + drilled
    assert max(one.rows["ledgeritem"] for one in late) <= items and late[-1].rows["settleditems"] == PIPELINES
    assert max(one.rows["archivepart"] for one in late) <= PIPELINES * (ARCHIVED_DAYS + 30 + 3)
    for pipeline in Pipeline.objects.all():
        ever = OWED * sum((pipeline.pk + day) % 7 == 0 for day in range(DAYS))
        assert LedgerItem.objects.filter(pipeline=pipeline).count() + settled_gone(pipeline) == ever
    for pipeline in Pipeline.objects.all():
        old = Observation.objects.filter(pipeline=pipeline, grain="day")
        owed = [row.at.date() for row in old if row.status == "owed"]
        expected = [(begin + dt.timedelta(days=day)).date() for day in range(DAYS) if (pipeline.pk + day) % 7 == 0]
        assert owed == [day for day in expected if min(row.at.date() for row in old) <= day <= old.last().at.date()]
        assert owed, "three owed quarters of a day are told a month later"
    last = Event.objects.filter(actor="retention").last()
    assert last is not None and int(last.data["events"]) >= 1
