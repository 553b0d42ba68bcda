"""From a reading to the verdict of its lane: what the frontier rests on and what was approved are not lost on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from recovery_api.domain.coordinates import Coordinate, Spelling
from recovery_api.domain.grounds import Standing
from recovery_api.domain.ledger.lanes import LaneFound, LaneKnown
from recovery_api.domain.outcomes import Status
from recovery_api.domain.verdicts import LaneCounts
from workers.connectors.readings import LaneReading, Reading, SafeFrontier, Width
from workers.evidence.ranges import EndSpec, MeetSpec
from workers.evidence.read import Evidence, LaneEvidence
from workers.recovery.outcomes import not_as_approved
from workers.recovery.verdicts import lane_verdicts, weaknesses

NINE = Coordinate(9)
PROVEN = SafeFrontier(NINE, "share lock", "No writer was open.", standing=Standing.PROVEN)
GRACE = SafeFrontier(NINE, "grace", "All had ended.", weakness="Grace: a cached number.", given="that none was cached")
CLEAN = LaneCounts(obligations_retained=9, obligations_journal=9, history_rows=9, journal_rows=9, accepted_rows=9)


def evidence(safe: SafeFrontier = PROVEN, approval: dict[str, int] | None = None, **sink: Any) -> Evidence:
    lane = LaneReading("0", NINE, Coordinate(1), None, safe)
    readings = Reading("source", {}, {"0": lane}), Reading("sink", {}, **sink)
    source = {"connection": "env:FENCEPOST_END_SHOP", "table": "outbox", "coordinate": ["id"]}
    ends = EndSpec("postgresql_outbox", source), EndSpec("postgresql_kit", {"connection": "env:FENCEPOST_END_MAIL"})
    return Evidence(
        *readings,
        lanes={"0": LaneEvidence("0", NINE, lane, CLEAN, {"count": 9, "positions": 45}, 0)},
        batch_count=0,
        batch_digest="0:0:0:0",
        findings_count=0,
        spelling=Spelling.BIGINT,
        approval=approval,
        spec=MeetSpec(*ends, *readings, (), {}, Width.PAYLOAD, ""),
        pieces=(),
    )


def test_the_frontiers_weakness_and_what_was_given_stand_in_the_lanes_verdict() -> None:
    made = lane_verdicts(evidence(GRACE))["0"]
    assert made.status is Status.EXACTLY_ONCE_GIVEN
    assert made.given == ("that none was cached",)
    assert "Grace: a cached number." in made.weaknesses
    assert "Grace: a cached number." in weaknesses(evidence(GRACE), {"0": made})
    proven = lane_verdicts(evidence())["0"]
    assert (proven.status, proven.given, proven.weaknesses) == (Status.EXACTLY_ONCE, (), ())


def test_what_was_attested_stands_in_the_lanes_verdict_beside_a_ground_that_is_proven() -> None:
    made = lane_verdicts(evidence(), ["that this was the only recoverer"])["0"]
    assert made.status is Status.EXACTLY_ONCE_GIVEN
    assert made.given == ("that this was the only recoverer",)


def test_an_end_that_was_not_read_whole_makes_its_lanes_verdict_unknown() -> None:
    made = lane_verdicts(evidence(is_complete=False, weaknesses=("A policy hides rows.",)))["0"]
    assert made.status is Status.UNKNOWN
    assert "The acceptance record could not be read whole. A policy hides rows." in made.unknown_because


def dropped_below(floor: int, known: LaneKnown | None, **more: Any) -> Evidence:
    """The source has dropped what lies below the floor, of which the record shows nothing that is not justified."""
    found = evidence(**more)
    lane = found.lanes["0"]
    seen = LaneFound(NINE, Coordinate(floor), Coordinate(floor))
    lane = replace(lane, reading=replace(lane.reading, floor=Coordinate(floor)), known=known, found=seen)
    return replace(found, lanes={"0": lane})


def test_an_earlier_audit_stands_for_what_was_dropped_only_where_the_record_would_show_what_it_lost_since() -> None:
    """A record that does not show who admitted an entry may have been put back to an earlier state, and looks whole."""
    seen = LaneKnown(NINE, Coordinate(1), admitted_below=40)
    assert lane_verdicts(dropped_below(5, seen))["0"].status is Status.EXACTLY_ONCE
    for known in (None, replace(seen, admitted_below=None), replace(seen, frontier=Coordinate(4))):
        made = lane_verdicts(dropped_below(5, known))["0"]
        assert made.status is Status.UNKNOWN
        assert any("below the floor" in reason for reason in made.unknown_because)


def test_what_can_pass_the_fence_is_a_weakness_of_the_verdict() -> None:
    path = ("privilege", "loader", "loader holds INSERT on post.letters")
    said = weaknesses(evidence(), lane_verdicts(evidence()), [path])
    assert said == ["Others can write past the fence (C1): loader holds INSERT on post.letters."]


def test_a_batch_that_is_not_the_approved_one_is_refused_either_way() -> None:
    """More than was approved, and approved events that are neither owed nor accepted any more: both are another batch."""
    assert not_as_approved(evidence(approval={"not_approved": 0, "unexplained": 0, "now_accepted": 3})) is None
    more = not_as_approved(evidence(approval={"not_approved": 2, "unexplained": 0}))
    assert more == "2 owed events were not in the approved batch."
    gone = not_as_approved(evidence(approval={"not_approved": 0, "unexplained": 1}))
    assert gone == "1 approved events are neither owed nor accepted with that content any more."
