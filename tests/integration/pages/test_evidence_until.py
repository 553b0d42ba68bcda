"""Verdicts and certificates expire, by an injected clock: the same on the page, by REST and by command."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.core.management import call_command
from django.test import Client

from recovery_api.domain.looks import look_of
from recovery_api.domain.outcomes import OUTCOMES
from recovery_api.models import Audit, Pipeline, Plan, PlanState, Recovery, RecoveryState
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.selectors.fleet_pages import fleet_entries
from recovery_api.selectors.metrics import measures
from recovery_api.services.recoveries import recovery_finish
from tests.integration.pages.headroom_world import (
    DAY,
    NOW,
    audited,
    clock_stand,
    make,
    moments,
    noon,
    owed,
    redriven,
    told,
)
from workers.recovery.outcomes import certificate_digest, certificate_make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]
__all__ = ["noon"]

EXPIRED = "unknown (evidence expired)"
RECORD = {
    "is_append_only": False,
    "record_keeps_seconds": DAY,
    "disk_free_bytes": None,
    "disk_growth_bytes_per_hour": None,
}

CURSOR = {"says": "42", "lost_behind": "0", "lost_beyond": "0", "judged": "window", "has_window": False}
HOLDS = "the record holds everything committed"
NOT_KNOWN = '<span class="quiet">?</span>'


def counted(now: datetime) -> set[str]:
    """Which figures of what the newest check found a scrape shows."""
    return {one.name for one in measures(now) if one.name in ("owed_events", "hazards") and one.values}


def command(name: str, *words: str) -> tuple[str, int]:
    out, code = io.StringIO(), 0
    try:
        call_command(name, *words, stdout=out)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return out.getvalue(), code


def certified(pipeline: Pipeline, when: datetime) -> Recovery:
    """A recovery that ended exactly once, with the certificate that a worker makes of it."""
    plan = Plan.objects.create(pipeline=pipeline, state=PlanState.LAPSED, author="ada", created_at=when)
    recovery = Recovery.objects.create(
        plan=plan,
        pipeline=pipeline,
        frontier={"0": {"position": "42", "ordinal": "0"}},
        state=RecoveryState.HANDING_OVER,
        reason="crash",
        requested_by="ada",
        created_at=when,
    )
    audited(pipeline, when, 1_000, 1_000, 0, {"recovery": recovery})
    certificate = certificate_make(recovery, "exactly_once", "Exactly once at 42.")
    return recovery_finish(
        recovery,
        outcome="exactly_once",
        says="Exactly once at 42.",
        certificate=certificate,
        certificate_digest=certificate_digest(certificate),
        actor="worker",
        now=when,
    )


def seen(client: Client, recovery: Recovery) -> tuple[str, str, str]:
    """What each place says of pipeline, headroom and certificate, where all of them say the same."""
    headroom, by_command, page, code = told(client)
    assert moments(headroom) == moments(by_command) and (code == 0) == (headroom["headroom"] == "ok")
    assert look_of(f"headroom_{headroom['headroom']}").says in page
    status = client.get("/api/v1/pipelines/mail/status").json()
    listed, check = command("pipelines", "list", "--check")
    (entry,) = fleet_entries(now_get())
    assert (status["status"], status["exit_code"]) == (entry.word, check)
    assert OUTCOMES[status["status"]].words in page and OUTCOMES[status["status"]].words in listed
    by_rest = client.get(f"/api/v1/recoveries/{recovery.pk}/certificate").json()
    sheet = client.get(f"/recoveries/{recovery.pk}/certificate/").content.decode()
    shown, code = command("recovery", str(recovery.pk))
    assert by_rest["certificate_is_expired"] == (EXPIRED in sheet) == (EXPIRED in shown) == (code == 3)
    return status["status"], headroom["headroom"], "expired" if by_rest["certificate_is_expired"] else "holds"


def test_pipeline_left_alone_with_its_relay_stopped_goes_through_all_of_it(sign_in: Callable[..., Client]) -> None:
    """The relay stops at 12:00; its schedule goes on auditing; the sink remembers for a day."""
    pipeline, client = make({"memory_seconds": DAY}), sign_in("viewer")
    redriven(pipeline)
    audited(pipeline, NOW - timedelta(hours=1), 910, 910, 0)
    recovery = certified(pipeline, NOW)
    story = [("0:00:00", *seen(client, recovery))]
    for hours, minutes in ((1, 0), (23, 10), (23, 20), (23, 50), (24, 0)):
        later = timedelta(hours=hours, minutes=minutes)
        clock_stand(NOW + later)
        audit = audited(pipeline, NOW + later, 1_090, 1_000, 90)
        if hours == 1:
            owed(pipeline, audit, 90, NOW + timedelta(minutes=1))
        story.append((str(later), *seen(client, recovery)))
    clock_stand(NOW + timedelta(hours=27))
    story.append(("its worker stops, too", *seen(client, recovery)))
    assert story == [
        ("0:00:00", "exactly_once", "ok", "holds"),
        ("1:00:00", "owed", "ok", "holds"),
        ("23:10:00", "owed", "ok", "holds"),
        ("23:20:00", "owed", "low", "holds"),
        ("23:50:00", "owed", "gone", "holds"),
        ("1 day, 0:00:00", "owed", "gone", "expired"),
        ("its worker stops, too", "unknown", "gone", "expired"),
    ]


def test_verdict_that_expired_reads_unknown_everywhere_and_says_what_it_found(sign_in: Callable[..., Client]) -> None:
    pipeline, client = make(RECORD, stale_after_seconds=10 * DAY), sign_in("viewer")
    audited(pipeline, NOW - timedelta(hours=2), 10, 10, 0)
    audit = audited(pipeline, NOW, 10, 10, 0, {}, status="exactly_once", cursor=CURSOR, says=["Exactly once at 42."])
    of_lanes = {"0": audit.lanes["0"], "1": audit.lanes["0"]}
    Audit.objects.filter(pk=audit.pk).update(lanes=of_lanes)
    until = NOW + timedelta(hours=22)
    row = client.get(f"/api/v1/audits/{audit.pk}").json()
    assert (row["evidence_until"], row["is_expired"]) == (until.isoformat(), False), "from where the one before ended"
    assert (row["status"], row["status_found"], row["exit_code"]) == ("exactly_once", "exactly_once", 0)
    assert counted(NOW) == {"owed_events", "hazards"}
    clock_stand(until - timedelta(seconds=1))
    overview = client.get("/").content.decode()
    assert EXPIRED not in overview and NOT_KNOWN not in overview
    assert HOLDS in client.get(f"/audits/{audit.pk}/").content.decode()
    clock_stand(until)
    row = client.get(f"/api/v1/audits/{audit.pk}").json()
    assert (row["status"], row["status_found"], row["exit_code"]) == ("unknown", "exactly_once", 3)
    of_audit, of_pipeline = row["lanes"]["1"], client.get("/api/v1/pipelines/mail/frontiers").json()["lanes"][1]
    for lane in (of_audit, of_pipeline):
        assert (lane["status"], lane["status_found"]) == ("unknown", "exactly_once")
        assert "evidence expired" in lane["says"][0] and "When issued: Exactly once at 42." in lane["says"][0]
    assert counted(until) == set(), "no figure of what nothing shows any more, and no zero"
    status = client.get("/api/v1/pipelines/mail/status").json()
    assert (status["status"], status["exit_code"], status["is_expired"]) == ("unknown", 3, True)
    for address in ("/", "/pipelines/mail/", f"/audits/{audit.pk}/"):
        page = client.get(address).content.decode()
        assert EXPIRED in page and "evidence expired at 2026-03-02 10:00:00 UTC" in page, address
        assert HOLDS not in page, "what the record is said to hold is the verdict's word"
        assert address == "/" or page.count(EXPIRED) >= 3, "each of its lanes says so"
        assert address != "/" or page.count(NOT_KNOWN) == 2, "no zero of lost ones and of hazards"
    for asked, count in (("unknown", 1), ("exactly_once", 1)):  # of the first nobody knows from when it counts
        assert len(client.get(f"/api/v1/audits?status={asked}").json()["items"]) == count
    shown, code = command("pipelines", "list", "--check")
    assert EXPIRED in shown and code == 3
    body = json.loads(command("pipelines", "show", "mail", "--json")[0])
    assert (body["status"]["status"], body["audit"]["status"]) == ("unknown", "unknown")


def test_what_is_declared_later_changes_no_verdict_that_was_issued() -> None:
    pipeline = make(RECORD, stale_after_seconds=10 * DAY, clock_error_seconds=None)
    audited(pipeline, NOW - timedelta(hours=2), 10, 10, 0)
    audit = audited(pipeline, NOW, 10, 10, 0)
    assert audit.evidence_until is None and "was not measured" in audit.evidence_says
    pipeline.options = {**pipeline.options, "clock_error_seconds": 0}
    pipeline.save()
    assert Audit.objects.get(pk=audit.pk).evidence_until is None
    assert pipeline_status(pipeline, NOW + timedelta(days=9)).status == "exactly_once"
    assert audited(pipeline, NOW + timedelta(hours=1), 10, 10, 0).evidence_until == NOW + timedelta(hours=24)


def test_nothing_declared_never_expires_and_says_so() -> None:
    pipeline = make(dict.fromkeys(RECORD) | {"is_append_only": False}, stale_after_seconds=366 * DAY)
    audited(pipeline, NOW - timedelta(hours=2), 10, 10, 0)
    audit = audited(pipeline, NOW, 10, 10, 0)
    assert audit.evidence_until is None
    assert "record_keeps_seconds" in audit.evidence_says
    assert not pipeline_status(pipeline, NOW + timedelta(days=100)).is_expired


def test_first_audit_of_all_knows_no_moment_from_which_its_evidence_counts() -> None:
    audit = audited(make(RECORD), NOW, 10, 10, 0)
    assert audit.evidence_until is None and "When it began to count is not known." in audit.evidence_says


def test_owed_verdict_counts_from_its_oldest_event_and_not_from_the_audit() -> None:
    pipeline = make(RECORD)
    first = audited(pipeline, NOW - timedelta(hours=2), 10, 9, 1)
    owed(pipeline, first, 1, NOW - timedelta(hours=5))
    audit = audited(pipeline, NOW, 10, 9, 1)
    assert audit.evidence_until == NOW + timedelta(hours=19)


def test_certificate_carries_the_moment_and_its_digest_covers_it(sign_in: Callable[..., Client]) -> None:
    pipeline, client = make(RECORD), sign_in("viewer")
    audited(pipeline, NOW - timedelta(hours=2), 10, 10, 0)
    recovery = certified(pipeline, NOW)
    until = (NOW + timedelta(hours=22)).isoformat()
    body = client.get(f"/recoveries/{recovery.pk}/certificate.json").json()
    assert body["certificate"]["evidence_until"] == body["evidence_until"] == until and not body["is_expired"]
    assert certificate_digest(body["certificate"]) == body["digest"]
    assert "evidence of its certificate lasts until 2026-03-02T10:00:00Z" in command("recovery", str(recovery.pk))[0]
    of_recovery = f"recovery {recovery.pk}: "
    assert of_recovery + "exactly once at f" in command("pipelines", "show", "mail")[0]
    clock_stand(NOW + timedelta(hours=22))
    assert of_recovery + EXPIRED in command("pipelines", "show", "mail")[0]
    assert client.get(f"/recoveries/{recovery.pk}/certificate.json").json()["is_expired"]
    assert EXPIRED in client.get(f"/recoveries/{recovery.pk}/").content.decode()
