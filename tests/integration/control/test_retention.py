"""What goes by age and what stays, over rows as workers leave them, by the sweep of an injected clock."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from recovery_api.checks import settings_check
from recovery_api.domain.errors import BadInput
from recovery_api.domain.retention import Ages
from recovery_api.models import (
    Audit,
    Event,
    EvidencePlace,
    Intent,
    LedgerItem,
    LedgerReading,
    Plan,
    PlanState,
    Recovery,
    RecoveryOutcome,
    RecoveryState,
    RefusalCount,
)
from recovery_api.selectors.retention import audit_kept, plan_kept, recovery_kept
from recovery_api.services.audits import audit_record, audit_request
from recovery_api.services.events import event_append
from recovery_api.services.intents import intent_take
from recovery_api.services.refusals import refusal_record
from recovery_api.services.retention import Retired, evidence_retire, records_retire, upkeep_begin
from tests.integration.control.conftest import FRONTIER, make_pipeline
from workers.recovery.retention import evidence_sweep, retention_sweep

DAY = dt.timedelta(days=1)
AGES = Ages(10 * DAY, 60 * DAY, 400 * DAY)
THEN = dt.datetime(2025, 1, 1, 3, tzinfo=dt.UTC)
"""Long ago by any clock of a server: the timeline's trigger goes by that."""


@pytest.fixture
def now():
    return THEN


@pytest.fixture
def folder(settings, tmp_path):
    settings.FENCEPOST_EVIDENCE_DIR = tmp_path
    settings.FENCEPOST_EVIDENCE_DAYS, settings.FENCEPOST_RECORDS_DAYS = 10, 60
    return tmp_path


def written(folder, *names):
    path = Path(folder).joinpath(*names)
    path.mkdir(parents=True)
    (path / "part-0.parquet").write_bytes(b"rows")
    return str(path)


def judged(pipeline, at, uri="", **more):
    """An audit that a person asked for, with parts at `uri`."""
    intent = intent_take(audit_request(pipeline, actor="ada", now=at, wake=False).id, "worker", at)
    given = {"status": "exactly_once", "exit_code": 0, "frontier": FRONTIER, "evidence_digest": "d", **more}
    return audit_record(
        pipeline,
        now=at,
        started_at=at,
        record_read_at=at,
        is_full=True,
        says="x",
        intent=intent,
        evidence_uri=uri,
        **given,
    )


def planned(pipeline, at, state=PlanState.LAPSED, uri="", **more):
    ready = {"digest": "d", "frontier": FRONTIER, "computed_at": at, "batch_count": 1}
    approved = {"approved_by": "bo", "approved_at": at, "approved_digest": "d"} if state == PlanState.APPLIED else {}
    given = {"evidence_uri": uri, **ready, **approved, **more}
    return Plan.objects.create(pipeline=pipeline, state=state, author="ada", created_at=at, **given)


def recovered(pipeline, at, uri, state=RecoveryState.FINISHED):
    """A recovery with its verification and its applied plan, parts at `uri` and `uri`/plan."""
    plan = planned(pipeline, at, PlanState.APPLIED, f"{uri}/plan")
    ended = {"outcome": RecoveryOutcome.EXACTLY_ONCE, "finished_at": at, "certificate": {}, "certificate_digest": "c"}
    recovery = Recovery.objects.create(
        pipeline=pipeline,
        plan=plan,
        frontier=FRONTIER,
        state=state,
        reason="crash",
        requested_by="bo",
        created_at=at,
        **(ended if state == RecoveryState.FINISHED else {}),
    )
    audit = judged(pipeline, at, uri)
    Audit.objects.filter(pk=audit.pk).update(recovery=recovery)
    return recovery


def test_parts_go_by_age_and_the_newest_stay_with_figures_and_digests(pipeline, now, folder):
    old, new = (judged(pipeline, now + DAY * n, written(folder, "audits", str(n)), lost_count=0) for n in (0, 1))
    plans = [planned(pipeline, now + DAY * n, uri=written(folder, "plans", str(n))) for n in (0, 1)]
    later = now + 20 * DAY
    retention_sweep(later), evidence_sweep(later)
    old.refresh_from_db(), new.refresh_from_db(), plans[0].refresh_from_db(), plans[1].refresh_from_db()
    assert (old.evidence_gone_at, old.evidence_digest, old.obligation_count) == (later, "d", 0)
    assert (new.evidence_gone_at, plans[0].evidence_gone_at, plans[1].evidence_gone_at) == (None, later, None)
    assert sorted(str(one.relative_to(folder)) for one in folder.glob("*/*")) == ["audits/1", "plans/1"]
    assert audit_kept(new).keeping(AGES, later).says == "Pinned: its pipeline has no newer audit."
    assert plan_kept(plans[1]).keeping(AGES, later).says == "Pinned: its pipeline has no newer plan."


def test_what_something_rests_on_is_pinned_with_its_reason(pipeline, now, folder):
    seen, based, waiting = (judged(pipeline, now + DAY * n, f"u{n}") for n in range(3))
    LedgerItem.objects.create(
        pipeline=pipeline,
        lane="0",
        position=1,
        word="lost",
        epoch="e",
        first_audit=seen,
        first_seen_at=now,
        last_audit=seen,
        last_seen_at=now,
    )
    LedgerReading.objects.create(pipeline=pipeline, epoch="e", snapshot="s", evidence_uri="u1", read_at=now)
    unfinished = recovered(make_pipeline("other", now), now, "o", RecoveryState.SETTLING)
    ready = planned(pipeline, now, PlanState.READY, "p0")
    planned(pipeline, now + DAY, uri="p1")
    judged(pipeline, now + 4 * DAY, "u4")
    later = now + 500 * DAY
    assert [one.uri for one in evidence_retire(later, AGES)] == ["u2"]
    waiting.refresh_from_db()
    assert waiting.evidence_gone_at == later
    said = {
        one.uri: one.keeping(AGES, later).says
        for one in [audit_kept(seen), audit_kept(based), plan_kept(ready), *recovery_kept(unfinished)]
    }
    assert said == {
        "u0": "Pinned: an open item was seen in them.",
        "u1": "Pinned: the ledger goes by them.",
        "p0": "Pinned: the plan can still be approved or applied.",
        "o": "Pinned: a recovery that is not finished goes by them.",
        "o/plan": "Pinned: a recovery that is not finished goes by them.",
    }


def test_newest_certificate_is_pinned_and_an_older_one_goes_by_age_with_what_was_read_under_its_claim(
    pipeline, now, folder
):
    old = recovered(pipeline, now, written(folder, "recoveries", "old"))
    new = recovered(pipeline, now + DAY, written(folder, "recoveries", "new"))
    claim, kept_claim = (written(folder, "recoveries", f"{one.id}-7") for one in (old, new))
    for recovery, uri in ((old, claim), (new, kept_claim)):
        EvidencePlace.objects.create(uri=uri, begun_at=now, kept_at=now, recovery=recovery)
    judged(pipeline, now + 2 * DAY, "newest")
    retention_sweep(now + 100 * DAY), evidence_sweep(now + 100 * DAY)
    assert [one.gone_at is not None for one in recovery_kept(old)] == [True, True]
    assert [one.gone_at for one in recovery_kept(new)] == [None, None]
    assert not Path(claim).exists() and Path(kept_claim).exists()
    says = recovery_kept(new)[0].keeping(AGES, now + 100 * DAY).says
    assert says == "Pinned: its pipeline's newest certificate rests on them."


def test_what_an_older_certificate_needs_stays_until_its_evidence_ends(pipeline, now, folder):
    old = recovered(pipeline, now, written(folder, "recoveries", "old"))
    recovered(pipeline, now + DAY, written(folder, "recoveries", "new"))
    judged(pipeline, now + 2 * DAY, "newest")
    old.certificate_evidence_until = now + 60 * DAY
    old.save(update_fields=["certificate_evidence_until"])
    retention_sweep(now + 50 * DAY)
    kept = recovery_kept(old)
    assert [one.gone_at for one in kept] == [None, None]
    assert kept[0].keeping(AGES, now + 50 * DAY).says.startswith("Pinned: a certificate needs them until ")
    retention_sweep(now + 61 * DAY)
    assert [one.gone_at is not None for one in recovery_kept(old)] == [True, True]


def test_parts_are_deleted_again_where_the_worker_died_between_row_and_folder(pipeline, now, folder):
    uri = written(folder, "audits", "0")
    judged(pipeline, now, uri), judged(pipeline, now + DAY, "newest")
    assert [one.uri for one in evidence_retire(now + 20 * DAY, AGES)] == [uri]
    assert Path(uri).exists(), "it died here"
    assert evidence_sweep(now + 20 * DAY) == 1 and not Path(uri).exists()
    assert evidence_retire(now + 30 * DAY, AGES) == []


def test_parts_that_cannot_be_deleted_or_lie_elsewhere_are_not_said_to_be_gone(pipeline, now, folder, tmp_path_factory):
    (folder / "audits").mkdir()
    stuck = folder / "audits" / "0"
    stuck.write_bytes(b"no folder: deleting one fails here")
    elsewhere = written(tmp_path_factory.mktemp("before"), "audits", "1")
    audits = [judged(pipeline, now + DAY * n, uri) for n, uri in enumerate((str(stuck), elsewhere, "newest"))]
    later = now + 20 * DAY
    retention_sweep(later), evidence_sweep(later)
    assert stuck.exists() and Path(elsewhere).exists()
    for audit in audits:
        audit.refresh_from_db()
        assert audit.evidence_gone_at is None
    assert audit_kept(audits[0]).keeping(AGES, later).says.startswith("Due to go since")


def test_worker_without_the_evidence_folder_says_of_nothing_that_it_is_gone(pipeline, now, folder, settings):
    settings.FENCEPOST_EVIDENCE_DIR = folder / "not mounted"
    judged(pipeline, now, str(folder / "audits/0")), judged(pipeline, now + DAY, "newest")
    retention_sweep(now + 20 * DAY), evidence_sweep(now + 20 * DAY)
    assert not Audit.objects.filter(evidence_gone_at__isnull=False).exists()


def test_rows_of_finished_work_go_by_age_and_the_timeline_says_so(pipeline, now, folder):
    recovery = recovered(pipeline, now, "r")
    event_append("fired", actor="worker", now=now, says="Fired.", recovery=recovery)
    gone = judged(pipeline, now, "u0")
    newest = judged(pipeline, now + DAY, "u1")
    lapsed = planned(pipeline, now, uri="p")
    planned(pipeline, now + DAY, uri="q")
    refusal_record(actor="eve", says="No.", data={}, now=now)
    young = event_append("step", actor="worker", now=now + 99 * DAY, says="Young.", pipeline=pipeline)
    before = Event.objects.count()
    evidence_retire(now + 100 * DAY, AGES)
    went = records_retire(now + 100 * DAY, AGES)
    assert (went.audits, went.plans, went.intents) == (1, 1, 1)
    assert not Audit.objects.filter(pk=gone.pk).exists() and not Plan.objects.filter(pk=lapsed.pk).exists()
    assert Audit.objects.filter(pk=newest.pk).exists(), "nothing has taken its place"
    assert Recovery.objects.filter(pk=recovery.pk).exists() and recovery.audits.exists()
    kept = set(Event.objects.values_list("says", flat=True))
    assert {"Fired.", young.says} <= kept and not RefusalCount.objects.exists()
    told = Event.objects.order_by("id").last()
    assert (told.actor, told.data["events"]) == ("retention", str(went.events))
    assert Event.objects.count() == before - went.events + 1
    assert told.says.startswith(f"{went.events} events of 2025-01-01 to 2025-01-02 went from the timeline")
    assert len(told.data["digest"]) == 64
    assert Intent.objects.count() == 2, "those of the audits that stay"
    assert records_retire(now + 100 * DAY, AGES) == Retired()


def test_rows_go_only_after_their_parts(pipeline, now):
    judged(pipeline, now, "u0"), judged(pipeline, now + DAY, "u1")
    assert records_retire(now + 100 * DAY, AGES).audits == 0
    evidence_retire(now + 100 * DAY, AGES)
    assert records_retire(now + 100 * DAY, AGES).audits == 1


@pytest.mark.parametrize(
    ("at", "bound"),
    [
        (THEN, ""),  # no bound is named
        (THEN, THEN.isoformat()),  # it is not below the bound
        (None, "2999-01-01T00:00:00+00:00"),  # of today: whatever bound is named
    ],
)
def test_timeline_lets_no_event_go_that_is_young_or_not_below_a_named_bound(pipeline, at, bound):
    at = at or dt.datetime.now(dt.UTC)
    event = event_append("step", actor="worker", now=at, says="A step.", pipeline=pipeline)
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('fencepost.retire_events_before', %s, true)", [bound])
        with pytest.raises(IntegrityError, match="the timeline is append-only"), transaction.atomic():
            cursor.execute("DELETE FROM recovery_api_event WHERE id = %s", [event.id])
        with pytest.raises(IntegrityError, match="the timeline is append-only"), transaction.atomic():
            cursor.execute("UPDATE recovery_api_event SET says = 'other' WHERE id = %s", [event.id])


def test_one_of_many_sweeps_does_a_chore_and_a_clock_that_jumped_back_delays_none(db, now):
    hour = dt.timedelta(hours=1)
    assert upkeep_begin("chore", now, hour)
    assert not upkeep_begin("chore", now, hour)
    assert not upkeep_begin("chore", now + hour - dt.timedelta(seconds=1), hour)
    assert upkeep_begin("chore", now + hour, hour) and not upkeep_begin("chore", now + hour, hour)
    assert upkeep_begin("chore", now - DAY, hour), "it says to have been done tomorrow"


def test_age_that_cannot_be_used_is_found_by_the_check_and_nothing_goes(pipeline, now, folder, settings):
    settings.FENCEPOST_RECORDS_DAYS = 9
    judged(pipeline, now, "u0"), judged(pipeline, now + DAY, "u1")
    with pytest.raises(BadInput, match="FENCEPOST_RECORDS_DAYS"):
        retention_sweep(now + 900 * DAY)
    assert not Audit.objects.filter(evidence_gone_at__isnull=False).exists()
    (found,) = [one for one in settings_check() if one.id == "fencepost.E008"]
    assert "FENCEPOST_RECORDS_DAYS is 9 days" in found.msg and found.hint == "Set it to 30 to 36,600."


def test_command_says_what_is_kept_and_pinned(pipeline, now, folder, capsys):
    judged(pipeline, now, "u0"), judged(pipeline, now + DAY, "u1")
    evidence_retire(now + 20 * DAY, AGES)
    call_command("retention", pipeline.name)
    said = capsys.readouterr().out
    assert "parts of evidence are kept for 10 days, rows of finished work for 60, the history for 400." in said
    assert "1 audits, plans and image audits have parts, 1 of them pinned; 1 had." in said
    assert "Pinned: its pipeline has no newer audit." in said
