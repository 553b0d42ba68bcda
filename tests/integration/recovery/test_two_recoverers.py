"""Two who recover at once: the number decides, not who came last; and pressing twice asks once."""

from __future__ import annotations

import pytest

from recovery_api.domain.errors import Refused
from recovery_api.models import EventKind, RecoveryOutcome
from tests.integration.recovery.world import World, run


def test_who_holds_the_older_of_two_generations_is_fenced_whole_and_a_fresh_one_recovers(world: World) -> None:
    """RC-42: the one that stayed in use held the older number: fenced, nothing accepted, a fresh one before any retry."""
    world.commit(["e1", "e2", "e3"])
    sink = world.sink()
    older, newer = (int(sink.generation_allocate("recoverer", name).data["generation"]) for name in ("B", "A"))
    assert sink.claim(newer, {}).word == "granted"
    assert world.deliver(["e1", "e2", "e3"], older) == ["fenced"] * 3
    refused = sink.claim(older, {})
    assert (refused.word, refused.data["fence"]) == ("refused", newer)
    assert "A as" in refused.data["superseded_who"] and refused.data["superseded_at"]
    assert world.accepted_keys() == []
    recovery = world.recover()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says
    assert recovery.generation > newer and recovery.landed_count == 3


def test_retry_pressed_twice_and_once_more_for_one_event_delivers_each_once(world: World) -> None:
    """RC-47: the second press attaches to the first; another plan is refused with the first one's id; one execution."""
    keys = [f"e{number}" for number in range(1, 41)]
    world.commit(keys)
    plan = world.approve(world.plan())
    first = world.request(plan)
    assert world.request(plan).id == first.id
    other = world.approve(world.plan())
    with pytest.raises(Refused, match=str(first.id)):
        world.request(other)
    assert world.request(plan).id == first.id
    run(first.intents.get())
    first.refresh_from_db()
    assert first.outcome == RecoveryOutcome.EXACTLY_ONCE, first.says
    assert sorted(world.accepted_keys()) == sorted(keys)
    asked = first.events.filter(kind=EventKind.RECOVERY_REQUESTED).values_list("actor", flat=True)
    assert list(asked) == ["ada"] * 3 and first.generations.count() == 1
