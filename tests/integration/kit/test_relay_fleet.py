"""Relays that crash, scale and crowd around an open claim: each is either in before it or fenced after it."""

from __future__ import annotations

import itertools
from collections import Counter

import psycopg
import pytest

from tests.contract.sink_engines import batch_make, digest_make
from tests.integration.kit.kit_world import KitWorld

START = {"0": {"position": "5", "ordinal": "0"}}
ASK = "SELECT answer, generation, start, detail FROM {schema}.relay_start('relay')"


def test_a_crash_looping_relay_voids_no_claim_and_uses_no_number_up(world: KitWorld) -> None:
    relay = world.connect(world.relay)
    older = world.relay_start(relay)
    generation, arm = world.staged(4, 5)
    before = world.sink.state()
    for _ in range(25):
        with psycopg.connect(world.relay, autocommit=True) as starting:
            answer, number, start, detail = world.one(starting, ASK)
            assert (answer, number, start) == ("wait", None, None)
            assert (detail["claim"], detail["claimed_by"]) == (
                generation,
                world.one(world.connect(world.recoverer), "SELECT session_user"),
            )
            assert detail["claimed_at"] < detail["until"]
            allocate = "SELECT answer, generation FROM {schema}.generation_allocate('relay', 'relay')"
            assert world.one(starting, allocate) == ("wait", None)
            assert world.deliver(starting, older, 7) == "fenced"
    after = world.sink.state()
    assert (after.counter, after.fence) == (before.counter, before.fence)
    assert after.open_claim is not None and after.open_claim.generation == generation
    assert world.sink.fire(generation, arm, START).word == "landed"
    answer, number, start, _ = world.one(relay, ASK)
    assert (answer, number, start["0"]["position"]) == ("started", generation + 1, "5")
    assert world.record() == [(4, generation), (5, generation)]


def test_a_relay_that_starts_between_a_recoverers_generation_and_its_claim_is_the_newer_one(world: KitWorld) -> None:
    """Nothing is open yet, so nobody waits; the claim is refused and says who took the newer generation."""
    recoverer = world.sink.generation_allocate("recoverer", "test").data["generation"]
    relay = world.connect(world.relay)
    newer = world.relay_start(relay)
    refused = world.sink.claim(recoverer, {})
    assert (refused.word, refused.data["fence"]) == ("refused", newer)
    assert str(refused.data["superseded_who"]).startswith("relay as ")
    assert world.deliver(relay, newer, 1) == "accepted"


def test_eight_workers_of_one_generation_are_in_before_the_claim_or_fenced_after_it(world: KitWorld) -> None:
    """Two workers send each event. None is accepted twice, none after the claim, and the fire lands the rest once."""
    relays = [world.connect(world.relay) for _ in range(8)]
    generation = world.relay_start(relays[0])

    def deliver_on(number: int) -> list[tuple[int, str]]:
        said: list[tuple[int, str]] = []
        for position in itertools.count(number // 2, 4):
            said.append((position, world.deliver(relays[number], generation, position)))
            if said[-1][1] not in ("accepted", "absorbed"):
                return said
        raise AssertionError

    workers = [world.later(lambda number=number: deliver_on(number)) for number in range(8)]
    world.until("SELECT count(*) >= 80 FROM {schema}.accepted")
    claimed = world.claim()
    frozen = world.record()  # as a recoverer reads it: nothing of what follows may change it
    said = [one for worker in workers for one in worker.result()]
    assert Counter(word for _, word in said)["fenced"] == 8
    assert {word for _, word in said} == {"accepted", "absorbed", "fenced"}
    assert world.record() == frozen
    assert Counter(position for position, word in said if word == "accepted") == Counter(
        position for position, _ in frozen
    )
    assert {number for _, number in frozen} == {generation}

    owed = sorted(set(range(max(position for position, _ in said) + 1)) - {position for position, _ in frozen})
    batch = batch_make(*owed)
    arm = world.arm(claimed, batch)
    world.sink.stage(claimed, arm, iter([batch]))
    assert world.sink.fire(claimed, arm).data["landed_count"] == len(owed)
    assert Counter(position for position, _ in world.record()) == Counter(range(owed[-1] + 1))


def test_a_fleet_that_is_scaled_up_under_an_open_claim_delivers_only_after_the_next_start(world: KitWorld) -> None:
    """Scaling takes no generation: the new workers share the group's, and are fenced with it."""
    first = world.connect(world.relay)
    older = world.relay_start(first)
    assert world.deliver(first, older, 1) == "accepted"
    generation, arm = world.staged(2, 3)
    added = [world.connect(world.relay) for _ in range(4)]
    assert [world.deliver(worker, older, 4) for worker in (first, *added)] == ["fenced"] * 5
    assert [world.one(worker, ASK)[0] for worker in added] == ["wait"] * 4
    assert world.sink.fire(generation, arm, START).word == "landed"
    newer = world.relay_start(added[0])
    assert [world.deliver(worker, newer, 4) for worker in (first, *added)] == ["accepted"] + ["absorbed"] * 4
    assert world.deliver(first, older, 5) == "fenced"
    assert world.record() == [(1, older), (2, generation), (3, generation), (4, newer)]


def test_a_worker_added_while_a_claim_waits_for_admission_comes_after_it(world: KitWorld) -> None:
    inside, added = world.connect(world.relay, autocommit=False), world.connect(world.relay)
    older = world.relay_start(inside)
    inside.commit()
    assert world.deliver(inside, older, 1) == "accepted"
    recoverer = world.sink.generation_allocate("recoverer", "test").data["generation"]
    claiming = world.connect(world.recoverer)
    claim = world.later(lambda: world.one(claiming, "SELECT answer FROM {schema}.claim(%s, NULL, 30)", recoverer))
    world.until_waiting(claiming.info.backend_pid)
    delivery = world.later(lambda: world.deliver(added, older, 2))
    world.until_waiting(added.info.backend_pid)
    inside.commit()
    assert (claim.result(), delivery.result()) == ("granted", "fenced")
    assert world.record() == [(1, older)]


def test_a_generation_that_goes_backwards_moves_nothing(world: KitWorld) -> None:
    """The word is the same at every step, the fence and the counter stay, and the refusal of a claim says by whom."""
    relay = world.connect(world.relay)
    older_relay = world.relay_start(relay)
    older_claim = world.sink.generation_allocate("recoverer", "slept").data["generation"]
    newer = world.relay_start(relay)
    before = world.sink.state()
    assert world.deliver(relay, older_relay, 1) == "fenced"
    assert world.one(relay, "SELECT answer FROM {schema}.begin(%s)", older_relay) == "refused"
    assert world.sink.claim(older_claim, {}).word == "refused"
    assert world.sink.arm(older_claim, digest_make(batch_make()), {}).word == "fenced"
    assert world.sink.fire(older_claim, 1).word == "fenced"
    assert world.sink.counter_raise(newer - 1) == newer
    after = world.sink.state()
    assert (after.counter, after.fence) == (before.counter, before.fence) == (newer, newer)
    assert world.deliver(relay, newer, 1) == "accepted"


def test_numbers_that_a_raised_counter_skipped_were_never_allocated(world: KitWorld) -> None:
    relay = world.connect(world.relay)
    generation = world.relay_start(relay)
    assert world.sink.counter_raise(generation + 10) == generation + 10
    assert [world.deliver(relay, skipped, 1) for skipped in (generation + 1, generation + 10)] == ["unallocated"] * 2
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="thousand million"):
        world.one(world.connect(world.recoverer), "SELECT {schema}.counter_raise(%s)", 2**63 - 1)
    assert world.relay_start(relay) == generation + 11


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_jump_of_the_sinks_clock_under_an_open_claim_doubles_and_loses_nothing(world: KitWorld, hours: int) -> None:
    """Only the wait of a relay is told by the sink's clock. Ahead: the relay goes first and the claim is void, which its
    fire is told. Back: the relay waits for as long as the claim is open, and the claim lands."""
    relay = world.connect(world.relay)
    generation, arm = world.staged(4, 5)
    jump = "UPDATE {schema}.claim SET claimed_at = claimed_at - make_interval(hours => %s) RETURNING state"
    assert world.one(world.admin, jump, hours) == "open"
    answer, newer, _, _ = world.one(relay, ASK)
    fired = world.sink.fire(generation, arm, START)
    assert (answer, fired.word) == (("started", "fenced") if hours > 0 else ("wait", "landed"))
    if hours > 0:
        assert fired.data["superseded_by"] == newer
        assert world.deliver(relay, newer, 4) == "accepted"
        generation, arm = world.staged(4, 5)
        assert world.sink.fire(generation, arm, START).data["landed_count"] == 1
    assert world.relay_start(relay) > generation
    assert sorted(position for position, _ in world.record()) == [4, 5]
