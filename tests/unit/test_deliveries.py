"""Which sinks can be sent to at all: a record alone never, any other in its own way and no other."""

from __future__ import annotations

from typing import Any

import pytest

from recovery_api.domain.abilities import DELIVERIES, Ability
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.kinds import abilities_of
from workers.connectors.registry import delivery_find, delivery_make

TABLE: dict[str, Any] = {"connection": "env:FENCEPOST_END_MAIL", "table": "accepted", "coordinate": ["id"]}
IDS: dict[str, Any] = {
    "connection": "env:FENCEPOST_END_MAIL",
    "table": "inbox",
    "identity": "event_id",
    "event_id": "id",
    "is_append_only": True,
}
ALONE = {
    "a table that is not said to be the effect": TABLE,
    "ids": IDS,
}


@pytest.mark.parametrize("case", ALONE)
def test_a_record_alone_is_never_sent_to(case: str) -> None:
    options = ALONE[case]
    assert not abilities_of("postgresql_table", options) & DELIVERIES
    assert delivery_find("postgresql_table", options) is None
    for ability in (None, *DELIVERIES, Ability.DRILLED):
        with pytest.raises(Refused, match="mark of an effect, and not the effect"):
            delivery_make("postgresql_table", options, ability)  # type: ignore[call-overload]


def test_nobody_can_say_that_a_list_of_ids_is_the_effect() -> None:
    with pytest.raises(BadInput, match="mark of an effect, not the effect"):
        abilities_of("postgresql_table", {**IDS, "is_effect": True})


def test_a_sink_is_sent_to_in_its_own_way_and_no_other() -> None:
    effect = {**TABLE, "is_effect": True}
    assert abilities_of("postgresql_table", effect) & DELIVERIES == {Ability.APPENDED}
    assert delivery_find("postgresql_table", effect) is not None
    with pytest.raises(Refused, match="it is appended and not fenced"):
        delivery_make("postgresql_table", effect, Ability.FENCED)
    with pytest.raises(Refused, match="it is fenced and not appended"):
        delivery_make("postgresql_kit", {"connection": "env:FENCEPOST_END_MAIL"}, Ability.APPENDED)


def test_a_source_is_not_sent_to() -> None:
    source = {"connection": "env:FENCEPOST_END_SHOP", "table": "outbox", "coordinate": ["id"]}
    with pytest.raises(Refused, match="is a kind of source"):
        delivery_make("postgresql_outbox", source)
