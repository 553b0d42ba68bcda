"""What a drill proves, when there is nothing to prove, and that the in-memory sink passes every one."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from recovery_api.domain.capabilities import APART, Archetype, Capability, capability_joined
from recovery_api.domain.drills import (
    TITLES,
    DrillName,
    DrillResult,
    DrillVerdict,
    drill_names,
    not_applicable,
    verdict_of,
    verdict_says,
)
from recovery_api.domain.errors import UnknownOption
from recovery_api.domain.strategies import strategy_of
from recovery_api.domain.strategies.attested import ATTESTED
from recovery_api.domain.strategies.fenced import FENCED
from workers.connectors.registry import delivery_make
from workers.connectors.sinks.memory import Memory
from workers.connectors.sinks.memory_store import STORES
from workers.drills.script import SCRIPT, drill_play


def _capability(archetype: Archetype, **more: bool) -> Capability:
    has = archetype is Archetype.FENCED
    given = {"can_read_record": has, "is_record_complete": has, "has_fence": has, "has_identity_key": has} | more
    return Capability(archetype, lands_in_one_transaction=has, **given)


def _not_applicable(name: DrillName, capability: Capability, **more: Any) -> DrillResult | None:
    return not_applicable(name, strategy_of(capability), capability, **more)


def _memory() -> Memory:
    return delivery_make("memory", {"name": secrets.token_hex(8)})


def test_every_drill_is_described_and_has_its_script():
    assert set(TITLES) == set(DrillName) == set(SCRIPT) == set(FENCED.drills) == set(ATTESTED.drills)


@pytest.mark.parametrize("name", DrillName)
def test_the_sink_in_memory_passes(name):
    sink = _memory()
    with sink.drill_namespace() as namespace:
        result = drill_play(name, namespace.sink)
    assert result.verdict is DrillVerdict.PASSED, result
    assert len(result.steps) > 8 and all(step["holds"] for step in result.steps)


def test_a_drill_leaves_nothing_in_memory_and_nothing_in_the_store_it_drills():
    sink = _memory()
    before, stores = sink.state(), set(STORES)
    with sink.drill_namespace() as namespace:
        drill_play(DrillName.SPLIT_BRAIN_WORKER, namespace.sink)
        assert namespace.sink.state().counter > 0
    assert (sink.state(), set(STORES)) == (before, stores)


class _Unfenced(Memory):
    """A sink that says it is fenced and lands whatever it has staged."""

    def fire(self, generation, arm, start=None):
        self.store.fence = min(self.store.fence, generation)
        return super().fire(generation, arm, start)


@pytest.mark.parametrize("name", [DrillName.SPLIT_BRAIN_WORKER, DrillName.CRASH_INSIDE_RECOVERY])
def test_a_sink_without_a_fence_at_its_fire_fails_with_the_step_that_went_wrong(name):
    result = drill_play(name, _Unfenced({"name": secrets.token_hex(8), "batch_limit": 100}))
    assert result.verdict is DrillVerdict.FAILED
    assert [step["holds"] for step in result.steps].count(False) == 1 and not result.steps[-1]["holds"]
    assert "fenced" in result.says


@pytest.mark.parametrize("archetype", [Archetype.BLIND, Archetype.QUERYABLE, Archetype.DEDUPLICATING])
def test_a_sink_without_a_fence_yields_what_its_archetype_yields(archetype):
    result = _not_applicable(DrillName.CHECKPOINT_CRASH, _capability(archetype), has_namespace=True)
    assert result is not None and result.verdict is DrillVerdict.NOT_APPLICABLE
    assert archetype.value in result.says and result.yields


@pytest.mark.parametrize(
    ("preference", "says"), [("resend", "may duplicate"), ("skip", "may omit"), (None, "no failure preference")]
)
def test_a_blind_sink_yields_the_configured_duplicate_or_omission(preference, says):
    blind = _capability(Archetype.BLIND)
    result = _not_applicable(DrillName.IN_FLIGHT_STRAGGLER, blind, has_namespace=False, preference=preference)
    assert result is not None and says in result.yields


def test_a_fenced_sink_without_identities_has_none_that_can_expire():
    fenced = _capability(Archetype.FENCED, has_identity_key=False)
    assert _not_applicable(DrillName.SPLIT_BRAIN_WORKER, fenced, has_namespace=True) is None
    result = _not_applicable(DrillName.EXPIRED_DEDUPLICATION, fenced, has_namespace=True)
    assert result is not None and "none can expire" in result.says


def test_a_drill_that_did_not_run_never_passed():
    def verdict(*verdicts: DrillVerdict) -> DrillVerdict:
        return verdict_of(DrillResult(DrillName.CHECKPOINT_CRASH, one, "") for one in verdicts)

    assert verdict() is DrillVerdict.UNKNOWN
    assert verdict(DrillVerdict.NOT_APPLICABLE) is DrillVerdict.NOT_APPLICABLE
    assert verdict(DrillVerdict.PASSED, DrillVerdict.NOT_APPLICABLE) is DrillVerdict.PASSED
    assert verdict(DrillVerdict.PASSED, DrillVerdict.UNKNOWN) is DrillVerdict.UNKNOWN
    assert verdict(DrillVerdict.PASSED, DrillVerdict.UNKNOWN, DrillVerdict.FAILED) is DrillVerdict.FAILED
    assert verdict_says([]) == "nothing was drilled."


def test_drills_run_in_their_order_and_an_unknown_name_is_refused():
    assert drill_names([]) == list(DrillName)
    assert drill_names(["split_brain_worker", "checkpoint_crash"]) == list(DrillName)[0:3:2]
    with pytest.raises(UnknownOption, match="split_brain"):
        drill_names(["split_brain"])


@pytest.mark.parametrize("name", DrillName)
def test_two_ends_have_nothing_to_prove_and_say_why(name):
    fenced = _capability(Archetype.FENCED)
    result = _not_applicable(name, capability_joined(fenced, fenced), has_namespace=True)
    assert result is not None and result.verdict is DrillVerdict.NOT_APPLICABLE
    assert result.says == APART and "no recovery runs" in result.yields
