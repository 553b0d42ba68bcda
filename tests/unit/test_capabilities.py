"""What a record and a delivery may do together: what was accepted is the record's word, how a batch arrives the delivery's."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from recovery_api.domain.capabilities import APART, Archetype, Capability, capability_from_row, capability_joined
from recovery_api.domain.strategies import strategy_of

INBOX = Capability(
    Archetype.QUERYABLE,
    can_read_record=True,
    is_record_complete=True,
    has_fence=False,
    has_identity_key=True,
    lands_in_one_transaction=False,
    can_lose_acceptances=True,
    horizon_seconds=3600,
    grounds=("Rows live an hour.",),
    mark_because="A row here is a mark.",
)
KIT = Capability(Archetype.FENCED, True, True, True, True, True, batch_limit=500, grounds=("It has a fence.",))
TABLE = Capability(Archetype.QUERYABLE, True, True, False, False, True, may_append=True, absorbs_late_sends=True)
WRITE_ONLY = Capability(Archetype.BLIND, False, False, False, False, False)


def test_a_record_without_a_delivery_of_its_own_is_what_it_was_tested_as() -> None:
    assert [capability_joined(one, None) for one in (INBOX, KIT, TABLE)] == [INBOX, KIT, TABLE]


@pytest.mark.parametrize("delivery", [KIT, TABLE, WRITE_ONLY], ids=["fenced", "appended", "write only"])
@pytest.mark.parametrize("record", [INBOX, KIT, TABLE], ids=["inbox", "kit", "table"])
def test_two_ends_are_never_fired_into_and_say_why(record: Capability, delivery: Capability) -> None:
    pair = capability_joined(record, delivery)
    assert strategy_of(pair).name == "read_only" and not strategy_of(pair).is_driven
    assert not pair.has_fence and not pair.may_append
    assert pair.apart_because == APART == pair.grounds[0]


def test_reading_is_as_the_record_was_tested_and_sending_as_the_delivery_was() -> None:
    pair = capability_joined(INBOX, KIT)
    of_record = ("can_read_record", "is_record_complete", "has_identity_key", "can_lose_acceptances", "horizon_seconds")
    for name in of_record:
        assert getattr(pair, name) == getattr(INBOX, name), name
    assert (pair.lands_in_one_transaction, pair.batch_limit) == (True, 500)
    assert pair.grounds[1:] == ("Record: Rows live an hour.", "Delivery: It has a fence.")
    assert not capability_joined(replace(INBOX, has_identity_key=False), KIT).has_identity_key


def test_a_mark_is_in_the_way_of_the_delivery_alone() -> None:
    assert capability_joined(INBOX, KIT).mark_because == ""
    assert capability_joined(KIT, INBOX).mark_because == INBOX.mark_because


def test_a_record_that_cannot_be_read_makes_its_pair_blind() -> None:
    assert strategy_of(capability_joined(WRITE_ONLY, KIT)).name == "blind"


def test_what_a_test_kept_is_the_same_capability_again() -> None:
    for one in (INBOX, KIT, TABLE, capability_joined(INBOX, KIT)):
        row = {**asdict(one), "declared": "fenced", "strategy": "fenced", "recovery": "Says."}
        assert capability_from_row(row | {"grounds": list(one.grounds)}) == one
    assert capability_from_row(None) is None
