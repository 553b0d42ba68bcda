"""The invariant of a block: what was committed less what was accepted is the signed sum of its items."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.ledger.sums import Counted, is_balanced, sum_add, sum_subtract

limbs = st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 4).map(lambda four: ":".join(map(str, four)))
events = st.sampled_from("abcde")
DIGESTS = {name: f"{place}:{-place}:{place * 7}:1" for place, name in enumerate("abcde", 1)}


def counted(names) -> Counted:
    return sum((Counted(1, DIGESTS[name]) for name in names), Counted())


@given(limbs, limbs)
def test_what_is_added_is_taken_away_again(one, other):
    assert sum_subtract(sum_add(one, other), other) == one


@given(st.sets(events), st.lists(events, max_size=8))
def test_a_block_balances_with_its_items_and_with_nothing_else(committed, accepted):
    copies = Counter(accepted)
    lost = [counted([name]) for name in committed if name not in copies]
    surplus = [counted([name]) for name, times in copies.items() for _ in range(times - (name in committed))]
    assert is_balanced(counted(committed), counted(accepted), lost, surplus)
    if lost:
        assert not is_balanced(counted(committed), counted(accepted), lost[1:], surplus)
    if surplus:
        assert not is_balanced(counted(committed), counted(accepted), lost, surplus[1:])
