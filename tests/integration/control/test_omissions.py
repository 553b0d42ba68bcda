"""Acknowledging one and many: what can be, for how long, and what a preview binds its confirmation to."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

import pytest
from django.utils import timezone

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import BadInput, NotFound, Refused
from recovery_api.models import (
    AcknowledgedOmission,
    Audit,
    Event,
    Finding,
    OmissionPreview,
    Pipeline,
    Plan,
    PreviewedOmission,
)
from recovery_api.selectors.findings import FindingFilter
from recovery_api.selectors.omissions import acknowledged_by_lane, omission_list
from recovery_api.services.audits import audit_record
from recovery_api.services.findings import ListedFinding
from recovery_api.services.omission_previews import export_preview, omissions_preview, preview_confirm, preview_says
from recovery_api.services.omissions import (
    omission_acknowledge,
    omissions_accepted,
    omissions_end,
    omissions_withdraw,
)

pytestmark = pytest.mark.django_db


def found(position: int, finding: str = "lost", cause: str = "", lane: str = "0") -> ListedFinding:
    return ListedFinding(finding, cause, "", lane, position, 0, None, None, False, None, None)


def audit_make(
    pipeline: Pipeline, findings: Iterable[ListedFinding], *, at: int = 1000, rows: int | None = None
) -> Audit:
    now, listing = timezone.now(), list(findings)
    return audit_record(
        pipeline,
        status="owed",
        exit_code=1,
        now=now,
        started_at=now,
        is_full=True,
        says="Owed.",
        lost_count=sum(one.finding == "lost" for one in listing),
        frontier={lane: {"position": str(at), "ordinal": "0"} for lane in ("0", "a")},
        evidence_rows=len(listing) if rows is None else rows,
        listing=listing,
    )


def preview(pipeline: Pipeline, low: int | None = None, high: int | None = None, lane: str = "") -> OmissionPreview:
    low_at, high_at = (None if one is None else Coordinate(one) for one in (low, high))
    asked = FindingFilter(lane=lane, low=low_at, high=high_at)
    return omissions_preview(pipeline, asked, actor="ada", now=timezone.now())


def confirm(pipeline: Pipeline, one: OmissionPreview, **more: Any) -> int:
    return preview_confirm(pipeline, one.pk, actor="ada", now=timezone.now(), **{"reason": "test orders", **more})


def acknowledge(pipeline: Pipeline, coordinate: str, **more: Any) -> AcknowledgedOmission:
    given = {"reason": "test order", "actor": "ada", "now": timezone.now(), **more}
    return omission_acknowledge(pipeline, coordinate, **given)


def positions(pipeline: Pipeline) -> list[int]:
    return list(omission_list(pipeline).values_list("position", flat=True))


def test_a_range_acknowledges_what_was_lost_when_it_was_previewed_and_nothing_later(pipeline: Pipeline) -> None:
    audit_make(pipeline, [found(10), found(20), found(30), found(20, "duplicate"), found(20, lane="a")])
    one = preview(pipeline, 10, 25)
    assert preview_says(one) == "3 events would be acknowledged."
    audit_make(pipeline, [found(10), found(15), found(20), found(30), found(20, lane="a")])
    assert confirm(pipeline, one, reference="OPS-7") == 3
    assert [(row.lane, row.position, row.reference) for row in omission_list(pipeline)] == [
        ("0", 10, "OPS-7"),
        ("0", 20, "OPS-7"),
        ("a", 20, "OPS-7"),
    ]
    assert set(AcknowledgedOmission.objects.values_list("act", flat=True)) == {one.pk}
    event = Event.objects.get(kind="omission acknowledged")
    assert event.data["count"] == "3" and "ada acknowledged 3 omissions in one act: test orders (OPS-7)" in event.says


def test_a_confirmation_is_bound_to_what_was_shown(pipeline: Pipeline) -> None:
    audit_make(pipeline, [found(10), found(20)])
    one = preview(pipeline)
    audit_make(pipeline, [found(10)])
    with pytest.raises(Refused, match="1 of these are not lost any more"):
        confirm(pipeline, one)
    assert positions(pipeline) == []
    again = preview(pipeline)
    assert confirm(pipeline, again) == 1
    with pytest.raises(Refused, match="confirmed this preview already"):
        confirm(pipeline, again)


def test_what_is_acknowledged_already_is_told_apart(pipeline: Pipeline) -> None:
    audit_make(pipeline, [found(10), found(20)])
    acknowledge(pipeline, "10")
    one = preview(pipeline)
    assert one.counts == {"owed": "1", "already acknowledged": "1"} and confirm(pipeline, one) == 1
    with pytest.raises(Refused, match="nothing of this preview is lost and unacknowledged"):
        confirm(pipeline, preview(pipeline))


@pytest.mark.parametrize(
    ("coordinate", "says"),
    [("11", "did not find it lost"), ("1001", "lies above the frontier"), ("20", "did not find it lost")],
    ids=["accepted or never committed", "above f", "only doubled"],
)
def test_one_coordinate_that_is_not_lost_is_refused(pipeline: Pipeline, coordinate: str, says: str) -> None:
    audit_make(pipeline, [found(10), found(20, "duplicate")])
    with pytest.raises(Refused, match=says):
        acknowledge(pipeline, coordinate)


def test_what_the_audit_could_not_tell_may_be_acknowledged_one_by_one(pipeline: Pipeline) -> None:
    audit_make(pipeline, [found(10, "unknown", "record trimmed"), found(20, "unknown")])
    acknowledge(pipeline, "10")
    with pytest.raises(Refused):
        acknowledge(pipeline, "20")
    Audit.objects.update(status="unknown", exit_code=3)
    acknowledge(pipeline, "20")


def test_a_range_asks_for_an_audit_that_stands_and_for_the_one_that_was_looked_at(pipeline: Pipeline) -> None:
    with pytest.raises(Refused, match="no audit stands"):
        preview(pipeline)
    old = audit_make(pipeline, [found(10)])
    audit_make(pipeline, [found(10)])
    with pytest.raises(Refused, match="a newer audit stands"):
        omissions_preview(pipeline, FindingFilter(), audit_id=old.pk, actor="ada", now=timezone.now())


def test_a_listing_that_ends_before_the_range_does_is_no_ground(pipeline: Pipeline) -> None:
    audit_make(pipeline, [found(10), found(20), found(5, lane="a"), found(30, lane="a")], rows=9)
    with pytest.raises(Refused, match="4 of 9 findings are listed"):
        preview(pipeline, high=25)
    with pytest.raises(Refused, match="4 of 9 findings"):
        preview(pipeline, high=30, lane="a")
    assert preview(pipeline, high=29, lane="a").counts == {"owed": "1"}
    assert preview(pipeline, lane="0").counts == {"owed": "2"}


def test_one_with_an_end_is_owed_again_by_itself(pipeline: Pipeline, ready_plan: Plan) -> None:
    now = timezone.now()
    acknowledge(pipeline, "41", until=now + dt.timedelta(hours=1))
    acknowledge(pipeline, "42")
    assert omissions_end() == 0 and acknowledged_by_lane(pipeline)["0"].count == 2
    past = {"acknowledged_at": now - dt.timedelta(hours=2), "until": now - dt.timedelta(hours=1)}
    AcknowledgedOmission.objects.filter(position=41).update(**past)
    assert acknowledged_by_lane(pipeline)["0"].count == 1, "by the clock alone, before anybody swept"
    assert positions(pipeline) == [42]
    assert (omissions_end(), omissions_end()) == (1, 0)
    ready_plan.refresh_from_db()
    assert ready_plan.state == "lapsed"
    acknowledge(pipeline, "41", reason="again")
    assert positions(pipeline) == [41, 42]


def test_one_whose_time_is_over_can_be_acknowledged_again_before_any_sweep(pipeline: Pipeline) -> None:
    now = timezone.now()
    acknowledge(pipeline, "41", until=now + dt.timedelta(hours=1))
    past = {"acknowledged_at": now - dt.timedelta(hours=2), "until": now - dt.timedelta(hours=1)}
    AcknowledgedOmission.objects.update(**past)
    acknowledge(pipeline, "41", reason="again")
    assert AcknowledgedOmission.objects.get(withdrawn_by="its end").withdrawn_at == past["until"]


def test_an_end_that_is_over_is_refused(pipeline: Pipeline) -> None:
    with pytest.raises(BadInput, match="is over"):
        acknowledge(pipeline, "41", until=timezone.now() - dt.timedelta(seconds=1))


def test_an_act_is_withdrawn_as_one(pipeline: Pipeline, ready_plan: Plan) -> None:
    audit_make(pipeline, [found(10), found(20), found(30)])
    one = preview(pipeline, high=20)
    confirm(pipeline, one)
    acknowledge(pipeline, "30")
    assert omissions_withdraw(pipeline, one.pk, actor="ada", now=timezone.now()) == 2
    assert positions(pipeline) == [30]
    ready_plan.refresh_from_db()
    assert ready_plan.state == "lapsed"
    with pytest.raises(NotFound):
        omissions_withdraw(pipeline, one.pk, actor="ada", now=timezone.now())
    with pytest.raises(BadInput):
        omissions_withdraw(pipeline, "all", actor="ada", now=timezone.now())


def test_a_later_acceptance_is_marked_and_the_first_sight_of_it_kept(pipeline: Pipeline) -> None:
    acknowledge(pipeline, "41")
    first = timezone.now()
    assert omissions_accepted(pipeline, "0", [41, 42], [0, 0], first) == 1
    assert omissions_accepted(pipeline, "0", [41], [0], first + dt.timedelta(hours=1)) == 0
    assert omission_list(pipeline).get().accepted_seen_at == first


def test_many_come_in_one_query_in_order(pipeline: Pipeline, django_assert_num_queries: Any) -> None:
    audit_make(pipeline, [found(number, lane=lane) for lane in ("0", "a") for number in (-3, 7, 900)])
    confirm(pipeline, preview(pipeline))
    with django_assert_num_queries(1):
        lanes = acknowledged_by_lane(pipeline)
    held = lanes["a"].positions
    assert [int.from_bytes(held[at : at + 8], "big", signed=True) for at in range(0, len(held), 8)] == [-3, 7, 900]
    assert lanes["0"].ordinals == bytes(24) and lanes["0"].count == 3


def test_previews_go_after_a_day_and_their_coordinates_when_they_are_confirmed(pipeline: Pipeline) -> None:
    audit_make(pipeline, [found(10)])
    old = preview(pipeline)
    OmissionPreview.objects.update(created_at=timezone.now() - dt.timedelta(days=2))
    one = preview(pipeline)
    assert not OmissionPreview.objects.filter(pk=old.pk).exists()
    confirm(pipeline, one)
    assert not PreviewedOmission.objects.exists() and Finding.objects.count() == 1


def test_an_export_waits_for_a_worker_before_it_can_be_confirmed(pipeline: Pipeline) -> None:
    audit_make(pipeline, [found(10)])
    one, intent = export_preview(pipeline, "id\n10\n10\nx\n", actor="ada", now=timezone.now(), wake=False)
    assert intent.action == "omission_look_up" and one.counts is None
    assert (one.asked["recognised"], one.asked["ignored"], one.asked["rejected"]) == ("1", "1", "1")
    with pytest.raises(Refused, match="still looked up"):
        confirm(pipeline, one)
    with pytest.raises(BadInput, match="names no event"):
        export_preview(pipeline, "id\nx\n", actor="ada", now=timezone.now(), wake=False)
