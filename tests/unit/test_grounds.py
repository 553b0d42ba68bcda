"""What the catalogue's facts mean: obstacles, doubts, standing, and the digest by which a change is noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recovery_api.domain.grounds import (
    Catalogue,
    Column,
    Held,
    Right,
    Sequence,
    Set,
    Setter,
    Standing,
    came_late,
    doubts_say,
    drawn_judge,
    standing_of,
    transaction_ids_judge,
)

DRAWN = Sequence(9, "public.outbox_id_seq", 1, 1, False)
ROOT = Column("public.outbox", True, False, "bigint", True, "a", None, DRAWN)
PLAIN = Catalogue(7, "id", 1, False, (ROOT,), (), ())
LEAF = replace(ROOT, place="public.outbox_1", is_root=False)


def test_an_identity_that_nobody_can_choose_has_neither_obstacle_nor_doubt() -> None:
    judged = drawn_judge(PLAIN)
    assert (judged.obstacles, judged.doubts) == ((), ())
    assert standing_of(judged.doubts, is_attested=False) is Standing.PROVEN


@pytest.mark.parametrize("right", Right)
def test_every_right_is_a_doubt_that_changes_the_digest(right: Right) -> None:
    found = replace(PLAIN, columns=(replace(ROOT, identity="d"),), rights=(Held("app", right, "public.outbox"),))
    assert drawn_judge(found).doubts == (f"role 'app' may {right.value} public.outbox",)
    assert found.digest != replace(found, rights=()).digest


@pytest.mark.parametrize("setter", Setter)
def test_everything_that_sets_the_coordinate_is_a_doubt_that_changes_the_digest(setter: Setter) -> None:
    found = replace(PLAIN, setters=(Set("x", setter, "public.outbox"),))
    assert len(drawn_judge(found).doubts) == len(transaction_ids_judge(found).doubts) == 1
    assert found.digest != PLAIN.digest


def test_an_update_cannot_set_an_identity_that_is_always_generated() -> None:
    assert drawn_judge(replace(PLAIN, rights=(Held("app", Right.CHANGE, "public.outbox"),))).doubts == ()


def test_t24_a_partition_like_the_others_changes_nothing() -> None:
    """T24."""
    two = replace(PLAIN, columns=(ROOT, LEAF))
    assert drawn_judge(two).obstacles == ()
    assert (
        replace(two, columns=(ROOT, LEAF, replace(LEAF, place="public.outbox_2"))).digest == two.digest == PLAIN.digest
    )


def test_a_partition_that_draws_from_a_sequence_of_its_own_is_an_obstacle() -> None:
    other = replace(LEAF, sequence=replace(DRAWN, oid=10))
    assert "2 sequences" in drawn_judge(replace(PLAIN, columns=(ROOT, other))).obstacles[0]


def test_a_partition_without_a_default_draws_nothing_and_a_table_without_one_proves_nothing() -> None:
    bare = {"identity": "", "sequence": None}
    assert drawn_judge(replace(PLAIN, columns=(ROOT, replace(LEAF, **bare)))).obstacles == ()
    assert drawn_judge(replace(PLAIN, columns=(replace(ROOT, **bare),))).obstacles


def test_rows_on_another_server_are_no_ground() -> None:
    found = replace(PLAIN, columns=(ROOT, replace(LEAF, is_foreign=True)))
    assert "another server" in drawn_judge(found).obstacles[0]
    assert any("another server" in one for one in transaction_ids_judge(found).obstacles)


def test_an_unlogged_table_may_start_its_numbers_again() -> None:
    assert "UNLOGGED" in drawn_judge(replace(PLAIN, is_unlogged=True)).doubts[0]


def test_t5_an_owners_word_lifts_doubts_to_attested_and_no_further() -> None:
    """T5."""
    assert standing_of(("a doubt",), is_attested=True) is Standing.ATTESTED
    assert standing_of(("a doubt",), is_attested=False) is Standing.ASSUMED


def test_many_doubts_are_counted() -> None:
    assert doubts_say([str(number) for number in range(7)]) == "0; 1; 2; 3; 4; and 2 more"


def test_fewer_rows_than_before_show_no_late_one() -> None:
    assert came_late({"count": 5, "positions": 30}, {"count": 4, "positions": 28}) == 0


def test_as_many_rows_at_other_places_show_a_late_one() -> None:
    """Retention dropped one, and another came beside it: the count alone would show nothing."""
    assert came_late({"count": 5, "positions": 30}, {"count": 5, "positions": 31}) == 1
    assert came_late({"count": 5, "positions": 30}, {"count": 5, "positions": 30}) == 0
