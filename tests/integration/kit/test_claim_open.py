"""A recoverer's number is drawn inside its claim and found again by the recoverer's name (R5)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from recovery_api.domain.errors import SinkBusy
from tests.contract.sink_engines import batch_make
from tests.integration.kit.kit_world import KitWorld


def test_r5_relays_that_start_all_the_while_void_no_claim(world: KitWorld) -> None:
    """Each relay's start and the claim are one step each: the claim stands above whatever came before it."""
    relays = [world.connect(world.relay) for _ in range(4)]

    def start_on(relay: psycopg.Connection[Any]) -> int:
        number = 0
        while True:
            answer, generation = world.one(relay, "SELECT answer, generation FROM {schema}.relay_start('crashing')")
            if answer == "wait":
                return number
            number = int(generation)

    starts = [world.later(lambda relay=relay: start_on(relay)) for relay in relays]
    world.until("SELECT allocated > 8 FROM {schema}.counter")
    answer = world.sink.claim_open("recovery 1", {})
    generation = int(answer.data["generation"])
    assert answer.word == "granted"
    assert max(start.result() for start in starts) < generation
    state = world.sink.state()
    assert (state.fence, state.counter) == (generation, generation)
    assert state.open_claim is not None and state.open_claim.generation == generation
    batch = batch_make(1)
    arm = world.arm(generation, batch)
    world.sink.stage(generation, arm, iter([batch]))
    assert world.sink.fire(generation, arm).word == "landed"


def test_r5_a_number_that_a_relay_draws_before_the_claim_is_older_than_the_claims(world: KitWorld) -> None:
    relay = world.connect(world.relay)
    drawn = "SELECT generation FROM {schema}.generation_allocate('relay', 'between')"
    before = world.one(relay, drawn)
    generation = world.sink.claim_open("recovery 1", {}).data["generation"]
    assert generation == before + 1
    assert world.one(relay, "SELECT answer FROM {schema}.begin(%s)", before) == "refused"
    assert world.deliver(relay, before, 1) == "fenced"
    assert world.sink.state().open_claim.generation == generation


def test_r5_a_claim_is_not_granted_beside_a_delivery_that_is_under_way(world: KitWorld) -> None:
    """What is in flight either lands before the claim reads the record, or is fenced: it never lands unseen."""
    relay = world.connect(world.relay, autocommit=False)
    generation = world.relay_start(relay)
    relay.commit()
    assert world.deliver(relay, generation, 1) == "accepted"
    with pytest.raises(SinkBusy):
        world.sink.claim_open("recovery 1", {}, wait_seconds=0.05)
    relay.commit()
    assert world.sink.claim_open("recovery 1", {}).word == "granted"
    assert world.deliver(relay, generation, 2) == "fenced"
    assert world.record() == [(1, generation)]


def test_r5_the_open_claim_of_a_name_is_found_and_what_it_had_armed_counts_no_more(world: KitWorld) -> None:
    first = world.sink.claim_open("recovery 1, attempt 1", {}).data["generation"]
    arm = world.arm(first, batch_make(1))
    again = world.sink.claim_open("recovery 1, attempt 1", {})
    assert (again.word, again.data["generation"]) == ("granted", first)
    world.sink.stage(first, arm, iter([batch_make(1)]))
    assert world.sink.fire(first, arm).word == "not armed"
    assert world.sink.state().counter == first
    other = world.sink.claim_open("recovery 1, attempt 2", {}).data["generation"]
    assert other == first + 1
    assert world.sink.settle(first).state == "superseded"


def test_r5_another_logins_claim_of_the_same_name_is_not_handed_out(world: KitWorld, tmp_path: Path) -> None:
    first = world.sink.claim_open("recovery 1", {}).data["generation"]
    assert world.sink_as(world.dsn, tmp_path).claim_open("recovery 1", {}).data["generation"] == first + 1


def test_r5_claims_are_found_by_the_beginning_of_their_names(world: KitWorld) -> None:
    numbers = [
        world.sink.claim_open(name, {}).data["generation"]
        for name in ("recovery 1, attempt 1", "recovery 2, attempt 1", "recovery 1, attempt 2")
    ]
    found = world.sink.claim_find("recovery 1, ")
    assert (found.generations, found.newest) == ((numbers[0], numbers[2]), numbers[2])
    assert world.sink.claim_find("recovery 3").generations == ()


def test_r5_who_slept_while_another_claimed_is_refused(world: KitWorld) -> None:
    newest = world.sink.claim_find("recovery 1").newest
    other = world.sink.claim_open("recovery 2", {}, newest).data["generation"]
    refused = world.sink.claim_open("recovery 1", {}, newest)
    assert (refused.word, refused.data["fence"]) == ("refused", other)
    assert str(refused.data["superseded_who"]).startswith("recovery 2 as ")
    assert world.sink.state().counter == other
    assert world.sink.claim_open("recovery 1", {}, other).word == "granted"


def test_r5_a_claim_that_is_still_asked_for_is_found_once_it_is_decided(world: KitWorld) -> None:
    """Its worker died while it waited: who looks for it comes after it in the queue, not past it."""
    idle = world.connect(world.relay, autocommit=False)
    generation = world.relay_start(idle)
    idle.commit()
    world.deliver(idle, generation, 1)
    asking = world.connect(world.recoverer)
    open_ = "SELECT generation FROM {schema}.claim_open('recovery 1', NULL, NULL, 30)"
    asked = world.later(lambda: world.one(asking, open_))
    world.until_waiting(asking.info.backend_pid)
    looking = world.connect(world.recoverer)
    found = world.later(lambda: world.one(looking, "SELECT detail FROM {schema}.claim_find('recovery 1', 30)"))
    world.until_waiting(looking.info.backend_pid)
    idle.commit()
    assert found.result()["generations"] == [asked.result()]


def test_r5_only_a_recoverer_may_open_find_or_tell(world: KitWorld) -> None:
    for login in (world.relay, world.auditor):
        for call in ("claim_open('x', NULL)", "claim_find('x')", "lanes_tell(NULL)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                world.connect(login).execute(world.sql(f"SELECT {{schema}}.{call}"))


def test_r5_both_fenced_kinds_answer_alike(world: KitWorld, memory: Callable[[], Any]) -> None:
    said = []
    for sink in (world.sink, memory()):
        steps = [
            sink.claim_open("a", {}),
            sink.claim_open("a", {}),
            sink.claim_open("b", {}, 0),
            sink.claim_open("b", {}, 1),
        ]
        found = [sink.claim_find(name) for name in ("a", "b", "c")]
        said.append(
            (
                [(step.word, step.data.get("generation"), step.data.get("fence")) for step in steps],
                [(one.generations, one.newest) for one in found],
            )
        )
    assert said[0] == said[1]


@pytest.fixture
def memory(tmp_path: Path) -> Callable[[], Any]:
    from workers.connectors.registry import delivery_make

    return lambda: delivery_make("memory", {"name": str(tmp_path)})
