"""What a person looks at: the listing of an audit and of a plan, their groups, and one event at both ends."""

from __future__ import annotations

import hashlib
import json

import psycopg
from django.utils import timezone

from recovery_api.domain.coordinates import Coordinate, coordinate_parse
from recovery_api.models import Audit, Event, EventContent, EventKind, Finding
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.findings import (
    FindingFilter,
    event_content_start,
    finding_at,
    finding_page,
    plan_findings,
)
from recovery_api.services.event_reads import KEPT_FOR, event_contents_purge, event_read_request
from recovery_api.services.findings import LISTINGS_KEPT
from tests.integration.recovery.world import World, run


def place(world: World, key: str) -> Coordinate:
    return coordinate_parse(world.coordinate(key), source_spelling(world.pipeline.source))


def test_an_audit_groups_its_findings_by_cause_and_contiguous_run(world: World) -> None:
    keys = [f"k{number}" for number in range(10)]
    world.commit(keys)
    world.deliver(["k3", "k7"])
    audit = world.audit()
    assert [(group["finding"], group["count"], group["runs_count"]) for group in audit.groups] == [("lost", "8", "3")]
    runs = audit.groups[0]["runs"]
    assert [(run["first_says"], run["last_says"], run["count"]) for run in runs] == [
        (world.coordinate("k0"), world.coordinate("k2"), "3"),
        (world.coordinate("k4"), world.coordinate("k6"), "3"),
        (world.coordinate("k8"), world.coordinate("k9"), "2"),
    ]


def test_a_listing_is_paged_by_number_and_filtered_by_range(world: World) -> None:
    world.commit([f"k{number}" for number in range(6)])
    audit = world.audit()
    assert audit.listed_count == 6
    first = finding_page(audit, FindingFilter(), limit=4)
    rest = finding_page(audit, FindingFilter(), after=first[-1].number, limit=4)
    assert [row.number for row in first + rest] == [0, 1, 2, 3, 4, 5]
    inside = FindingFilter(finding="lost", lane="0", low=place(world, "k1"), high=place(world, "k2"))
    assert [row.number for row in finding_page(audit, inside)] == [1, 2]
    assert finding_page(audit, FindingFilter(finding="premature")) == []
    assert [row.number for row in finding_at(audit, "0", place(world, "k5"))] == [5]


def test_only_the_newest_listings_are_kept_and_counts_and_groups_stay(world: World) -> None:
    world.commit(["a"])
    audits = [world.audit() for _ in range(LISTINGS_KEPT + 1)]
    audits[0].refresh_from_db()
    assert audits[0].listed_count == 0 and audits[0].lost_count == 1 and audits[0].groups[0]["count"] == "1"
    assert Finding.objects.filter(audit__isnull=False).count() == LISTINGS_KEPT


def test_scheduled_audits_push_out_no_listing_that_a_person_asked_for(world: World) -> None:
    world.commit(["a"])
    asked = world.audit()
    for _ in range(LISTINGS_KEPT):
        Audit.objects.filter(pk=world.audit().pk).update(is_scheduled=True)
    world.audit()
    asked.refresh_from_db()
    assert asked.listed_count == 1
    assert Finding.objects.filter(audit__isnull=False).count() == LISTINGS_KEPT + 2


def test_a_plan_lists_what_it_sends_and_what_it_leaves_out_with_the_reason(world: World) -> None:
    world.use_json_column()
    world.commit(["a", "b"])
    world.commit_text("nul", '{"x": "\\u0000"}')
    plan = world.plan()
    assert [row.evidence_class for row in plan_findings(plan)] == [
        "provably missing",
        "provably missing",
        "not representable at the sink",
    ]
    assert len(list(plan_findings(plan, is_sent_only=True))) == plan.batch_count == 2


def test_one_event_is_read_at_both_ends_as_the_source_printed_it(world: World) -> None:
    world.use_json_column()
    text = '{"n":12345678901234567890,"d":0.1234567890123456789,"s":"<script>alert(1)</script>"}'
    world.commit_text("a", text)
    world.deliver(["a"])
    intent = event_read_request(world.pipeline, "0", place(world, "a"), actor="ada", now=timezone.now(), wake=False)
    run(intent)
    found = intent.result
    assert found["coordinate"] == world.coordinate("a")
    assert found["source"]["rows"][0]["key"] == "a"
    assert found["source"]["rows"][0]["payload_digest"] == found["sink"]["rows"][0]["payload_digest"]
    assert found["content"]["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert "script" not in json.dumps(found), "the content lies apart from the result"
    assert event_content_start(intent, 10_000) == (text.encode(), len(text))
    assert Event.objects.filter(kind=EventKind.CONTENT_READ, actor="ada").count() == 1


def test_a_large_content_is_cut_for_the_screen_and_whole_for_the_download(world: World) -> None:
    big = json.dumps({"x": "y" * 20_000_000})
    world.commit_text("big", big)
    intent = event_read_request(world.pipeline, "0", place(world, "big"), actor="ada", now=timezone.now(), wake=False)
    run(intent)
    start, size = event_content_start(intent, 1000) or (b"", 0)
    assert (len(start), size) == (1000, len(big))
    assert int(intent.result["content"]["bytes"]) == size


def test_an_event_that_the_source_no_longer_holds_is_said_to_be_absent(world: World) -> None:
    world.commit(["a"])
    world.deliver(["a"])
    at = place(world, "a")
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("DELETE FROM outbox")
    intent = run(event_read_request(world.pipeline, "0", at, actor="ada", now=timezone.now(), wake=False))
    assert intent.result["source"]["rows"] == [] and len(intent.result["sink"]["rows"]) == 1
    assert intent.result["content"] is None


def test_what_was_read_goes_when_its_time_is_over(world: World) -> None:
    world.commit(["a"])
    now = timezone.now()
    run(event_read_request(world.pipeline, "0", place(world, "a"), actor="ada", now=now, wake=False))
    assert event_contents_purge(now) == 0
    assert event_contents_purge(timezone.now() + KEPT_FOR) == 1
    assert not EventContent.objects.exists()


def test_two_people_who_ask_for_one_event_share_the_work_and_both_are_in_the_timeline(world: World) -> None:
    world.commit(["a"])
    at, now = place(world, "a"), timezone.now()
    first = event_read_request(world.pipeline, "0", at, actor="ada", now=now, wake=False)
    second = event_read_request(world.pipeline, "0", at, actor="grace", now=now, wake=False)
    assert first.id == second.id
    asked = Event.objects.filter(kind=EventKind.CONTENT_READ).order_by("id").values_list("actor", flat=True)
    assert list(asked) == ["ada", "grace"]


def test_t16_more_runs_than_are_kept_are_counted_by_stretches_that_leave_none_out(world: World) -> None:
    keys = [f"k{number:04}" for number in range(600)]
    world.commit(keys)
    world.deliver(keys[::2])
    (group,) = world.audit().groups
    assert (group["count"], group["runs_count"], len(group["runs"])) == ("300", "300", 200)
    assert sum(int(one["count"]) for one in group["bins"]) == 300
    assert group["bins"][0]["first_says"] == world.coordinate("k0001")
    assert group["bins"][-1]["last_says"] == world.coordinate("k0599")
