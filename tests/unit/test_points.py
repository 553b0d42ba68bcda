"""What a sink can do, point by point: the weaker of what is declared and what was tested counts."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from recovery_api.domain.capabilities import Archetype, Capability
from recovery_api.domain.kinds import kinds_offered, points_of
from recovery_api.domain.points import FOR_GOOD, Point, points_compared, weaker

KIT = Capability(Archetype.FENCED, True, True, True, True, True, batch_limit=100_000)
CONNECTION = {"connection": "env:FENCEPOST_END_MAIL"}


def counted(kind: str, options: dict[str, object], capability: Capability | None) -> dict[Point, object]:
    row = None if capability is None else asdict(capability)
    return {one.point: one.counts for one in points_of(kind, options, row)}


def test_what_was_tested_weaker_than_declared_counts_as_tested_and_says_why() -> None:
    told = Capability(Archetype.QUERYABLE, True, True, False, True, False, unfenced_because="Somebody replaced it.")
    [fence] = [one for one in points_of("postgresql_kit", CONNECTION, asdict(told)) if one.point is Point.FENCE]
    assert (fence.declared, fence.tested, fence.counts, fence.is_weaker) == (True, False, False, True)
    assert fence.because == "Somebody replaced it." and fence.how


def test_what_is_declared_weaker_than_tested_counts_as_declared() -> None:
    assert counted("postgresql_kit", {**CONNECTION, "batch_limit": 50}, KIT)[Point.BATCH_LIMIT] == 50
    assert counted("postgresql_kit", CONNECTION, KIT)[Point.MEMORY] == FOR_GOOD
    table = {**CONNECTION, "table": "accepted", "coordinate": ["id"], "is_append_only": False}
    told = Capability(Archetype.QUERYABLE, True, True, False, True, False)
    assert counted("postgresql_table", table, told)[Point.RECORD_COMPLETE] is False
    assert counted("postgresql_table", table, told)[Point.MEMORY] == 0


def test_a_record_alone_is_never_appended_to_whatever_its_login_may_do() -> None:
    table = {**CONNECTION, "table": "accepted", "coordinate": ["id"]}
    told = Capability(Archetype.QUERYABLE, True, True, False, True, True, may_append=True)
    found = counted("postgresql_table", table, told)
    assert found[Point.APPEND] is False and found[Point.ONE_TRANSACTION] is False
    effect = counted("postgresql_table", {**table, "is_effect": True}, told)
    assert effect[Point.APPEND] is True and effect[Point.ONE_TRANSACTION] is True


def test_what_could_not_be_tested_is_not_there() -> None:
    assert set(counted("postgresql_kit", CONNECTION, None).values()) == {False}
    row = next(one for one in points_of("postgresql_kit", CONNECTION, None) if one.point is Point.FENCE).as_row(None)
    assert (row["declared"], row["tested"], row["counts"]) == ("yes", "could not be tested", "no") and row["is_weaker"]


def test_a_point_nobody_declared_is_as_tested() -> None:
    [key] = [one for one in points_compared({}, asdict(KIT), {}) if one.point is Point.IDENTITY_KEY]
    assert (key.declared, key.counts, key.is_weaker) == (None, True, False)
    assert weaker(None, None) is False


@pytest.mark.parametrize("kind", kinds_offered("sink"), ids=lambda kind: kind.name)
def test_every_kind_of_sink_says_how_each_point_is_tested(kind: object) -> None:
    assert set(kind.tests) == set(Point), "every point"  # type: ignore[attr-defined]
