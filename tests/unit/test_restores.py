"""Restores: who is behind decides what it was, and no memory goes down silently."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.restores import SinkMemory, Standing, restore_find

BEFORE = SinkMemory("cluster 1, timeline 1", counter=7, fence=6, last_entry=100)
NUMBERS = st.integers(min_value=0, max_value=20)
MEMORIES = st.builds(SinkMemory, st.sampled_from(["a", "b"]), NUMBERS, NUMBERS, st.none() | NUMBERS)


def test_first_word_of_a_sink_is_kept():
    found = restore_find(None, BEFORE)
    assert (found.standing, found.memory) == (Standing.FIRST_SEEN, BEFORE)


def test_sink_that_went_on_is_remembered_where_it_is():
    said = SinkMemory(BEFORE.incarnation, 9, 9, 130)
    found = restore_find(BEFORE, said)
    assert (found.standing, found.memory) == (Standing.AGREES, said)


@pytest.mark.parametrize(
    ("said", "behind"),
    [
        (SinkMemory(BEFORE.incarnation, 6, 6, 100), "its counter is 6 and was 7"),
        (SinkMemory(BEFORE.incarnation, 7, 5, 100), "its fence is 5 and was 6"),
        (SinkMemory(BEFORE.incarnation, 7, 6, 99), "its last entry is 99 and was 100"),
        (SinkMemory(BEFORE.incarnation, 7, 6, None), "its last entry is none and was 100"),
        (
            SinkMemory("cluster 1, timeline 2", 8, 8, 120),
            "its identity is cluster 1, timeline 2 and was cluster 1, timeline 1",
        ),
    ],
)
def test_sink_behind_its_memory_was_restored(said, behind):
    found = restore_find(BEFORE, said)
    assert found.is_restored and found.behind == (behind,)
    assert behind in found.says and "Nothing fires" in found.says


@given(MEMORIES, MEMORIES)
def test_memory_is_never_lowered_and_the_floor_passes_both_sides(remembered, said):
    found = restore_find(remembered, said)
    assert found.memory.counter == max(remembered.counter, said.counter)
    assert found.memory.fence == max(remembered.fence, said.fence)
    assert found.counter_floor >= max(remembered.counter, remembered.fence, said.counter, said.fence)
    assert (found.memory.last_entry or 0) >= max(remembered.last_entry or 0, said.last_entry or 0)
    assert found.is_restored == bool(found.behind)


@given(MEMORIES, st.tuples(NUMBERS, NUMBERS, NUMBERS))
def test_sink_ahead_of_the_memory_is_never_called_restored(remembered, more):
    ahead = SinkMemory(
        remembered.incarnation,
        remembered.counter + more[0],
        remembered.fence + more[1],
        (remembered.last_entry or 0) + more[2],
    )
    assert not restore_find(remembered, ahead).is_restored


def test_sink_without_a_counter_is_known_by_its_incarnation_alone():
    table = SinkMemory("cluster 1/1/shop/16411")
    assert restore_find(None, table).counter_floor == 0
    assert not restore_find(table, table).is_restored
    found = restore_find(table, SinkMemory("cluster 1/2/shop/16411"))
    assert found.is_restored and found.memory == table and found.counter_floor == 0
    assert "counter" not in found.says and "a full audit has run" in found.says


def test_incarnation_that_cannot_be_seen_is_not_another_one_and_not_forgotten():
    table = SinkMemory("cluster 1/1/shop/16411")
    found = restore_find(table, SinkMemory(""))
    assert not found.is_restored and found.memory == table


def test_sink_that_lost_its_counter_was_replaced():
    assert restore_find(SinkMemory("a", 7, 6), SinkMemory("a")).behind == (
        "its counter is none and was 7",
        "its fence is none and was 6",
    )
