"""Lists: paged by keyset, exact in their numbers, and as cheap with many rows as with few."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from recovery_api.models import (
    AcknowledgedOmission,
    Audit,
    Claim,
    Event,
    EventKind,
    Generation,
    Intent,
    LedgerItem,
    LedgerLane,
    Plan,
    Recovery,
)
from recovery_api.serializers import about, ledger, recoveries, shapes, work
from recovery_api.services.audits import audit_request
from recovery_api.services.drills import drill_record, drill_request
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.events import event_append
from recovery_api.services.findings import ListedFinding, audit_listing_record, plan_listing_record
from recovery_api.services.intents import intent_take
from recovery_api.services.omissions import omission_acknowledge
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.recoveries import recovery_finish, recovery_request
from tests.integration.control.conftest import FRONTIER, make_pipeline

WIDE = 9223372036854775807
SECOND = dt.timedelta(seconds=1)


def make_audit(pipeline, at, **more):
    return Audit.objects.create(
        pipeline=pipeline,
        **{"status": "owed", "exit_code": 1, "is_full": True, "frontier": FRONTIER, **more},
        record_read_at=at,
        started_at=at,
        finished_at=at,
    )


def drill_finished(sink, now):
    """One run of drills that ended."""
    drill, intent = drill_request(sink, actor="x", now=now, wake=False)
    taken = intent_take(intent.id, "w", now)
    assert taken is not None
    drill_record(drill, [], intent=taken, now=now)


def fill(pipeline, now, count):
    """`count` more of everything that is listed, of one pipeline, and `count` more pipelines."""

    for number in range(count):
        drill_finished(pipeline.sink, now)
        at = now + number * SECOND
        one = make_pipeline(f"{pipeline.name} {number}", now)
        for owner in (one, pipeline):
            make_audit(owner, at)
            audit_request(owner, actor="x", now=at, wake=False)
        AcknowledgedOmission.objects.create(
            pipeline=pipeline, lane="0", position=number, reason="r", acknowledged_by="x", acknowledged_at=now
        )
        seen = Audit.objects.filter(pipeline=pipeline).latest("started_at")
        told = {"pipeline": pipeline, "epoch": "e", "lane": str(number)}
        LedgerLane.objects.create(**told, audit=seen, read_at=at)
        LedgerItem.objects.create(
            **told,
            position=number,
            word="lost",
            first_audit=seen,
            first_seen_at=at,
            last_audit=seen,
            last_seen_at=at,
        )
        Plan.objects.create(pipeline=pipeline, author="x", created_at=at)
        plan = Plan.objects.create(
            pipeline=pipeline,
            author="x",
            created_at=at,
            computed_at=at,
            state="applied",
            digest="d",
            approved_digest="d",
            approved_by="y",
            approved_at=at,
            frontier=FRONTIER,
            batch_count=1,
        )
        recovery = Recovery.objects.create(
            plan=plan,
            pipeline=pipeline,
            frontier=FRONTIER,
            reason="r",
            requested_by="x",
            created_at=at,
            state="finished",
            outcome="exactly_once",
            finished_at=at,
        )
        Generation.objects.create(
            pipeline=pipeline, recovery=recovery, number=number, purpose="recoverer", asked_by="x", taken_at=at
        )
        Claim.objects.create(
            pipeline=pipeline, recovery=recovery, generation=number, state="open", claimed_at=at, said_at=at
        )


LISTS = {
    "/sources": shapes.SourceShape,
    "/sinks": shapes.SinkShape,
    "/pipelines": shapes.PipelineShape,
    "/statuses": shapes.StatusShape,
    "/audits": shapes.AuditShape,
    "/plans": shapes.PlanShape,
    "/recoveries": recoveries.RecoveryShape,
    "/events": shapes.EventShape,
    "/intents": work.IntentShape,
    "/tokens": about.TokenShape,
    "/kinds": about.KindShape,
    "/sinks/mail-sink/drills": shapes.DrillShape,
    "/pipelines/mail/generations": shapes.GenerationShape,
    "/pipelines/mail/claims": shapes.ClaimShape,
    "/pipelines/mail/omissions": shapes.OmissionShape,
    "/pipelines/mail/items": ledger.ItemShape,
    "/pipelines/mail/ledger": ledger.LedgerLaneShape,
}


def queries_of(api, path):
    with CaptureQueriesContext(connection) as captured:
        assert api.get(path).status_code == 200
    return len(captured)


def test_queries_of_a_list_do_not_grow_with_its_rows(pipeline, now, viewer):
    viewer.get("/me")  # the first use of a token in a minute is kept
    fill(pipeline, now, 2)
    few = {path: queries_of(viewer, f"{path}?limit=200" if path != "/kinds" else path) for path in LISTS}
    fill_more = make_pipeline("more", now)
    fill(fill_more, now, 3)
    for name, model in (("mail", Recovery), ("mail", Audit)):
        assert model.objects.filter(pipeline__name=name).exists()
    many = {path: queries_of(viewer, f"{path}?limit=200" if path != "/kinds" else path) for path in LISTS}
    assert many == few
    assert few.pop("/statuses") <= 12, "a status says headroom, too: six queries more"
    assert max(few.values()) <= 7, few


@pytest.mark.parametrize("path", [path for path in LISTS if path not in ("/kinds", "/tokens")])
def test_pages_together_are_the_list_each_row_once(pipeline, now, viewer, path):
    fill(pipeline, now, 3)
    whole = viewer.get(f"{path}?limit=200").body
    assert whole["next"] is None and len(whole["items"]) >= 3
    found, address = [], f"{path}?limit=2"
    while address:
        answer = viewer.get(address)
        assert answer.status_code == 200 and len(answer.body["items"]) <= 2
        found += answer.body["items"]
        if answer.body["next"]:
            assert answer.headers["Link"] == f'<{answer.body["next"]}>; rel="next"'
        address = (answer.body["next"] or "").removeprefix("/api/v1")
    if path != "/events":  # asking is not an event, but others of the list could be
        assert found == whole["items"]
    assert len(found) == len({json.dumps(row, sort_keys=True) for row in found})


@pytest.mark.parametrize("path", LISTS)
def test_rows_are_what_the_document_says(pipeline, now, viewer, path):
    fill(pipeline, now, 1)
    rows = viewer.get(path).body["items"]
    assert rows
    for row in rows:
        assert set(row) == set(LISTS[path]().fields)
    assert all(
        numbers_in(row) <= {"exit_code", "attempts", "part", "parts", "options", "drill_every_hours"} for row in rows
    )


def numbers_in(value, name=""):
    """The names of members that are JSON numbers."""
    if isinstance(value, dict):
        return set() if name == "options" else {one for key, inner in value.items() for one in numbers_in(inner, key)}
    if isinstance(value, list):
        return set() if name == "options" else {one for inner in value for one in numbers_in(inner, name)}
    return {name} if isinstance(value, int | float) and not isinstance(value, bool) else set()


def test_cursor_is_bound_to_its_list_and_its_filters(pipeline, now, viewer):
    fill(pipeline, now, 3)
    following = viewer.get("/audits?limit=1").body["next"].removeprefix("/api/v1")
    assert viewer.get(following).status_code == 200
    assert viewer.get(following.replace("limit=1", "limit=2")).status_code == 200
    for other in (following + "&status=owed", following.replace("/audits", "/plans"), following[:-3] + "AAA"):
        answer = viewer.get(other)
        assert (answer.status_code, answer.body["field"]) == (400, "cursor")


def test_deep_page_reads_no_more_than_the_first(pipeline, now, viewer):
    Event.objects.bulk_create(
        Event(at=now, kind=EventKind.STEP, actor="x", pipeline=pipeline, says=str(number)) for number in range(3000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE recovery_api_event")
    address = "/events?pipeline=mail&limit=100"
    for _ in range(25):
        address = viewer.get(address).body["next"].removeprefix("/api/v1")
    with CaptureQueriesContext(connection) as captured:
        viewer.get(address)
    statement = next(query["sql"] for query in captured if '"recovery_api_event"."id" >' in query["sql"])
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {statement}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan on recovery_api_event" not in plan and "OFFSET" not in statement, plan


def test_list_is_followed_by_id_and_read_from_its_end(pipeline, now, viewer):
    ids = [
        event_append(EventKind.STEP, actor="x", now=now, says=str(number), pipeline=pipeline).id for number in range(3)
    ]
    assert [row["id"] for row in viewer.get(f"/events?after={ids[0]}").body["items"]] == [str(one) for one in ids[1:]]
    assert viewer.get("/events?order=newest&limit=1").body["items"][0]["id"] == str(ids[-1])
    assert viewer.get(f"/events?after={WIDE}").body["items"] == []
    assert viewer.get(f"/events?after={WIDE + 1}").status_code == 400


def test_filters_are_obeyed(pipeline, now, viewer):
    fill(pipeline, now, 2)
    assert {row["pipeline"] for row in viewer.get("/audits?pipeline=mail").body["items"]} == {"mail"}
    assert viewer.get("/audits?status=hazard").body["items"] == []
    assert {row["state"] for row in viewer.get("/plans?state=draft").body["items"]} == {"draft"}
    assert viewer.get("/intents?is_live=true&action=plan").body["items"] == []
    assert [row["name"] for row in viewer.get("/pipelines?sink=mail-sink").body["items"]] == ["mail"]
    assert viewer.get("/sources?kind=paper_sauce").body["items"] == []
    assert viewer.get("/audits?pipeline=mial").body["code"] == "bad_input"
    assert viewer.get("/recoveries?outcome=exactly_once&pipeline=mail").body["items"]
    one = viewer.get("/recoveries").body["items"][0]["recovery"]
    assert len(viewer.get(f"/pipelines/mail/claims?recovery={one}").body["items"]) == 1


def test_numbers_past_2_53_are_exact_texts(pipeline, now, viewer):
    frontier = {"0": {"position": "9007199254740993", "ordinal": "0"}}
    lanes = {"0": {"status": "owed", "frontier_says": "9007199254740993", "counts": {"lost_retained": WIDE}}}
    audit = make_audit(
        pipeline,
        now,
        frontier=frontier,
        lost_count=WIDE,
        accepted_count=WIDE,
        evidence_rows=WIDE,
        evidence_uri="file:///evidence/1",
        lanes=lanes,
    )
    audit_listing_record(audit, [listed(9007199254740993, accepted_count=WIDE)])
    shown = viewer.get(f"/audits/{audit.id}").body
    assert (shown["lost"], shown["frontier"], shown["evidence"]["rows"]) == (str(WIDE), "9007199254740993", str(WIDE))
    assert shown["lanes"]["0"]["counts"]["lost_retained"] == str(WIDE)
    found = viewer.get(f"/audits/{audit.id}/findings").body
    assert found["items"][0]["coordinate"] == "9007199254740993" and found["items"][0]["accepted_count"] == str(WIDE)
    assert found["is_whole"] is False and found["evidence"]["uri"] == "file:///evidence/1"
    lane = viewer.get("/pipelines/mail/frontiers").body["lanes"][0]
    assert lane["frontier"] == "9007199254740993" and lane["counts"] == {"lost_retained": str(WIDE)}
    omitted = omission_acknowledge(pipeline, "-7210000000000000123", reason="r", actor="x", now=now)
    assert viewer.get("/pipelines/mail/omissions").body["items"][0]["coordinate"] == str(omitted.position)


def listed(position, finding="lost", **more):
    fields = {"cause": "", "evidence_class": "provably missing", "lane": "0", "ordinal": 0, "entry": 1}
    fields |= {"accepted_count": None, "is_acknowledged": False, "history_digest": b"h" * 32, "accepted_digest": None}
    return ListedFinding(finding=finding, position=position, **{**fields, **more})


def test_findings_are_paged_filtered_and_say_where_the_whole_is(pipeline, now, viewer):
    audit = make_audit(pipeline, now, lost_count=5, evidence_rows=9, evidence_uri="file:///e", evidence_digest="d")
    audit_listing_record(audit, [listed(number) for number in range(1, 6)] + [listed(6, "duplicate", entry=None)])
    path = f"/audits/{audit.id}/findings"
    first = viewer.get(f"{path}?limit=4").body
    assert (first["listed"], first["is_whole"], first["evidence"]["rows"]) == ("6", False, "9")
    rest = viewer.get(first["next"].removeprefix("/api/v1")).body
    assert [row["coordinate"] for row in first["items"] + rest["items"]] == ["1", "2", "3", "4", "5", "6"]
    assert rest["next"] is None and set(rest["items"][0]) == set(shapes.FindingShape().fields)
    assert [row["number"] for row in viewer.get(f"{path}?low=2&high=3").body["items"]] == ["1", "2"]
    assert [row["coordinate"] for row in viewer.get(f"{path}?finding=duplicate").body["items"]] == ["6"]
    Audit.objects.filter(id=audit.id).update(evidence_rows=6)
    assert viewer.get(path).body["is_whole"] is True


def test_reversed_range_is_refused_and_compared_as_coordinates(now, viewer, db):
    source = source_create("log", "paper_source", {"path": "p", "spelling": "pg_lsn"}, actor="x", now=now)
    sink = sink_create("record", "paper_sink", {"path": "p"}, actor="x", now=now)
    audit = make_audit(pipeline_create("log", source, sink, actor="x", now=now), now, frontier={})
    path = f"/audits/{audit.id}/findings"
    answer = viewer.get(f"{path}?low=100/0&high=FF/FFFFFFFF")
    assert (answer.status_code, answer.body["code"], answer.body["field"]) == (422, "bad_input", "low")
    assert "reversed" in answer.body["detail"]
    assert viewer.get(f"{path}?low=FF/FFFFFFFF&high=100/0").status_code == 200
    answer = viewer.get(f"{path}?low=100-0")
    assert (answer.status_code, answer.body["code"], answer.body["field"]) == (422, "bad_coordinate", "low")


def test_batch_of_a_plan_is_listed_by_evidence_class(approved_plan, viewer):
    rows = [listed(1), listed(2, evidence_class="acknowledged")]
    plan_listing_record(approved_plan, approved_plan.pipeline, rows)
    path = f"/plans/{approved_plan.id}/findings"
    whole = viewer.get(path).body
    assert (len(whole["items"]), whole["listed"], whole["plan"]) == (2, "2", str(approved_plan.id))
    some = viewer.get(f"{path}?evidence_class=provably%20missing").body["items"]
    assert [row["coordinate"] for row in some] == ["1"]


def test_frontier_past_2_53_arrives_as_it_was_sent(operator, pipeline):
    for text in ("9007199254740993", "-9223372036854775808", "9223372036854775807"):
        assert operator.post("/audits", {"pipeline": "mail", "frontier": text}).status_code == 202
        assert Intent.objects.first().arguments["frontier"] == {"0": {"position": text, "ordinal": "0"}}
    assert operator.post("/audits", {"pipeline": "mail", "frontier": 9007199254740993}).status_code == 400


def test_certificate_is_given_as_its_digest_was_taken(approved_plan, now, viewer):
    recovery = recovery_request(approved_plan.id, "r", "mail", "x", now=now, wake=False)
    path = f"/recoveries/{recovery.id}/certificate"
    assert viewer.get(path).status_code == 404
    certificate = {"claims": [{"landed_count": 3, "generation": "5"}], "lanes": {"0": {"counts": {"lost": 0}}}}
    recovery_finish(
        recovery,
        outcome="exactly_once",
        says="Done.",
        actor="w",
        now=now,
        certificate=certificate,
        certificate_digest="d",
    )
    body = viewer.get(path).body
    assert body["certificate"] == certificate and body["certificate_digest"] == "d"
    assert set(body) == set(recoveries.CertificateShape().fields)


def test_every_member_of_a_row_is_a_row_of_this_pipeline_alone(pipeline, now, viewer):
    fill(pipeline, now, 1)
    assert {row["pipeline"] for row in viewer.get("/intents?pipeline=mail").body["items"]} == {"mail"}
    assert {row["pipeline"] for row in viewer.get("/events?pipeline=mail%200").body["items"]} == {"mail 0"}
