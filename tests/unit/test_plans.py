"""An approval binds to everything that it rests on: each part of a plan's digest makes another digest."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from recovery_api.domain.capabilities import Archetype, Capability
from recovery_api.domain.kinds import deciding
from recovery_api.domain.plans import plan_digest, scope_digest

TABLE = Capability(Archetype.QUERYABLE, True, True, False, True, True, may_append=True, absorbs_late_sends=True)
SOURCE = {"connection": "env:FENCEPOST_END_SHOP", "table": "outbox", "coordinate": ["id"]}


def ends(**more: Any) -> dict[str, Any]:
    return {"source": deciding("postgresql_outbox", {**SOURCE, **more})}


PLAN: dict[str, Any] = {
    "pipeline": "orders-mail",
    "frontier": {"0": "12"},
    "floor": {"0": None},
    "scope_digest": "all",
    "ends": ends(filter="kind = 'mail'"),
    "capability": TABLE,
    "history": {"0": {"count": 12, "positions": 78}},
    "batch_digest": "1:2:3:4",
    "batch_count": 3,
    "acknowledged": ("0:5:0",),
}
OTHERS: dict[str, list[Any]] = {
    "pipeline": ["orders-post"],
    "frontier": [{"0": "13"}, {"1": "12"}],
    "floor": [{"0": "3"}],
    "scope_digest": [scope_digest(["k1"]), scope_digest([])],
    "ends": [ends(), ends(filter="kind = 'letter'"), ends(filter="kind = 'mail'", key="key"), {}],
    "capability": [replace(TABLE, absorbs_late_sends=False), replace(TABLE, may_append=False)],
    "history": [{"0": {"count": 12, "positions": 79}}, {"0": {"count": 13, "positions": 78}}],
    "batch_digest": ["1:2:3:5"],
    "batch_count": [4],
    "acknowledged": [(), ("0:5:0", "0:6:0")],
}


def test_the_list_of_what_is_bound_is_whole() -> None:
    assert set(OTHERS) == set(PLAN)


@pytest.mark.parametrize("part", PLAN)
def test_another_part_makes_another_digest(part: str) -> None:
    digests = {plan_digest(**{**PLAN, part: other}) for other in [PLAN[part], *OTHERS[part]]}
    assert len(digests) == 1 + len(OTHERS[part])


def test_the_same_said_otherwise_is_the_same_plan() -> None:
    again = {**PLAN, "ends": ends(filter="kind = 'mail'", answer_timeout_seconds=5), "acknowledged": iter(["0:5:0"])}
    again["capability"] = replace(TABLE, grounds=("It was looked at once more.",))
    assert plan_digest(**again) == plan_digest(**PLAN)


@pytest.mark.parametrize("name", [one.name for one in fields(Capability) if one.name != "grounds"])
def test_every_point_of_a_capability_is_bound(name: str) -> None:
    value = getattr(TABLE, name)
    other: Any = Archetype.BLIND if name == "archetype" else (not value) if isinstance(value, bool) else "another"
    assert plan_digest(**{**PLAN, "capability": replace(TABLE, **{name: other})}) != plan_digest(**PLAN)
