"""What one lane's ledger makes of a reading: what was never seen, whether its base stands, what is learnt."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.ledger.lanes import (
    LaneFound,
    LaneKnown,
    Unseen,
    base_lost,
    lane_inherit,
    lane_learn,
    unseen_find,
)


def at(number: int) -> Coordinate:
    return Coordinate(number)


def found(frontier: int, lowest: int | None, **more) -> LaneFound:
    return LaneFound(at(frontier), None if lowest is None else at(lowest), **{"step": 1, **more})


def test_numbers_dropped_before_the_first_audit_are_unknown_until_somebody_decides():
    first = found(9, 4, first_number=1)
    assert unseen_find(None, first) == Unseen(None, at(4))
    known = lane_learn(None, first, is_rebased=False)
    again = found(12, 4, first_number=1)
    assert unseen_find(known, again) == Unseen(None, at(4))
    known = lane_learn(known, again, is_rebased=True)
    assert unseen_find(known, again) == Unseen(None, at(4))
    decided = LaneKnown(**{name: getattr(known, name) for name in known.__slots__} | {"decided_below": at(4)})
    assert unseen_find(decided, again) is None


def test_what_was_seen_may_go_and_what_came_and_went_between_two_audits_may_not():
    known = lane_learn(None, found(100, 1, first_number=1), is_rebased=False)
    assert unseen_find(known, found(200, 101, first_number=1)) is None
    assert unseen_find(known, found(200, 90, first_number=1)) is None
    unseen = unseen_find(known, found(200, 151, first_number=1))
    assert unseen == Unseen(at(100), at(151))
    later = lane_learn(lane_learn(known, found(200, 151), is_rebased=False), found(300, 151), is_rebased=False)
    assert unseen_find(later, found(400, 160)) == unseen


def test_an_audit_of_an_empty_table_has_seen_nothing():
    known = lane_learn(None, LaneFound(Coordinate(-(2**63), -(2**63)), None, first_number=1), is_rebased=False)
    assert unseen_find(known, found(9, 1, first_number=1)) is None
    assert unseen_find(known, found(9, 4, first_number=1)) == Unseen(None, at(4))


def test_numbers_rolled_back_in_the_middle_are_nobodys_affair():
    known = lane_learn(None, found(100, 1, first_number=1), is_rebased=False)
    assert unseen_find(known, found(200, 1, first_number=1)) is None


def test_below_a_floor_that_no_audit_reached_nothing_is_known():
    purged = found(90, 50, floor=at(50))
    assert unseen_find(None, purged) == Unseen(None, at(50))
    known = lane_learn(None, found(40, 1, first_number=1), is_rebased=False)
    assert unseen_find(known, purged) == Unseen(at(40), at(50))


def test_another_epoch_forgets_what_was_seen_and_keeps_what_was_not():
    """Rows that went had keys that may be in scope by now: whether those arrived, nobody looked."""
    known = lane_learn(None, found(100, 1), is_rebased=False)
    known = lane_learn(known, found(150, 60), is_rebased=False)
    assert unseen_find(known, found(160, 60)) is None
    fresh = lane_inherit(known)
    assert unseen_find(fresh, found(160, 60)) == Unseen(None, at(60))
    assert fresh.frontier is None and base_lost(fresh, found(160, 60)) is None
    missed = lane_learn(known, found(300, 250), is_rebased=False)
    assert unseen_find(lane_inherit(missed), found(300, 1)) == Unseen(at(150), at(250))


def test_a_base_that_is_lost_stays_lost_until_an_audit_in_full_by_name():
    known = lane_learn(None, found(9, 1, admitted_below=700, prefix={"count": 3, "contents": 5}), is_rebased=False)
    gone = found(12, 1, admitted_below=900, prefix={"count": 4}, prefix_then={"count": 2, "contents": 4})
    assert "saw 3 acceptances of which the record holds 2" in str(base_lost(known, gone))
    known = lane_learn(known, gone, is_rebased=False)
    assert (known.admitted_below, known.frontier) == (700, at(9))
    assert base_lost(known, gone) is not None
    replaced = found(12, 1, admitted_below=900, prefix={"count": 4}, prefix_then={"count": 3, "contents": 6})
    assert "with other contents" in str(base_lost(known, replaced))
    known = lane_learn(known, gone, is_rebased=True)
    assert (known.admitted_below, known.prefix) == (900, {"count": 4})


def test_items_kept_with_an_evidence_that_is_gone_may_not_be_concluded_from():
    known = LaneKnown(frontier=at(9), is_whole=False, evidence="audits/1")
    assert "audits/1 alone is gone" in str(base_lost(known, found(9, 1, has_evidence=False)))
    assert base_lost(known, found(9, 1)) is None


def test_a_record_that_does_not_show_who_admitted_may_grow_and_not_shrink():
    known = lane_learn(None, found(9, 1, prefix={"count": 3}), is_rebased=False)
    assert base_lost(known, found(9, 1, prefix_then={"count": 5})) is None
    assert base_lost(known, found(9, 1, prefix_then={"count": 2})) is not None


numbers = st.integers(1, 30)


@given(st.lists(st.tuples(numbers, numbers, st.booleans()), max_size=8))
def test_what_nobody_saw_never_shrinks_and_the_frontier_never_falls(readings):
    known: LaneKnown | None = None
    unseen: Unseen | None = None
    for frontier, lowest, is_rebased in readings:
        one = found(max(frontier, lowest), lowest, first_number=1)
        now = unseen_find(known, one)
        if unseen is not None:
            assert now is not None and now.below >= unseen.below
            assert now.above is None or (unseen.above is not None and now.above <= unseen.above)
        learnt = lane_learn(known, one, is_rebased=is_rebased)
        assert known is None or known.frontier is None or learnt.frontier >= known.frontier
        known, unseen = learnt, now
        assert known.unseen == unseen
