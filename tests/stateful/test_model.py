"""The protocol's model, explored: nothing breaks with every rule in force, and each rule taken away breaks something."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tests.stateful.model import rules
from tests.stateful.model.explore import explore
from tests.stateful.model.rules import Identity, Rule, World

pytestmark = pytest.mark.slow

NONE, FORGETS, KEY = Identity.NONE, Identity.FORGETS, Identity.KEY

SOUND = [
    World(identity=KEY),
    World(identity=NONE),
    World(identity=FORGETS),
    World(identity=NONE, committed=1),
    World(identity=NONE, lands_one_by_one=True),
    World(identity=KEY, lands_one_by_one=True, recoverers=1),
    World(identity=NONE, has_late_stagers=True),
    World(identity=KEY, has_copies=True, recoverers=1),
    World(identity=NONE, may_stop=True),
    World(identity=NONE, may_release=True),
    World(identity=NONE, may_replan=True),
    World(identity=NONE, recoveries=2, relay_starts=3, recoverers=2),
    World(identity=NONE, events=1, committed=1, may_restore_control=True),
    World(identity=KEY, events=1, committed=1, relay_starts=1, recoverers=2, may_restore_sink=True),
]
"""Small enough for every run: two events, a restart and two recoverers, with one more thing that may go wrong each."""

BROKEN = [
    (Rule.FENCE, World(identity=NONE), "has claimed since"),
    (Rule.CLAIM_BEFORE_READ, World(identity=NONE), "a duplicate"),
    (Rule.HAND_OVER, World(identity=NONE), "a duplicate"),
    (Rule.START_IN_FIRE, World(identity=NONE), "a duplicate"),
    (Rule.FRONTIER_COVERS, World(identity=NONE), "a duplicate"),
    (Rule.RECOVERY_PER_RESTART, World(identity=NONE), "a duplicate"),
    (Rule.RECOVERY_PER_RESTART, World(identity=FORGETS), "a duplicate"),
    (Rule.SAFE_FRONTIER, World(committed=1), "the sink holds no 2"),
    (Rule.BOUND_APPROVAL, World(may_replan=True), "which nobody approved"),
    (Rule.LOCKED_SETTLE, World(may_stop=True), "after its recovery ended with nothing more to land"),
    (Rule.SINK_SETTLES, World(may_stop=True), "it ends stopped with 0 landed, and 1 have"),
    (Rule.ALL_SETTLED, World(), "landed, and 1 have"),
    (Rule.FOUND_BY_NAME, World(), "a claim of it is open for nobody"),
    (Rule.NEWER_CLAIM, World(), "nothing can follow"),
    (Rule.RECOMPUTED_DIGEST, World(has_late_stagers=True), "the sink holds no 1"),
]


@pytest.mark.parametrize("world", SOUND, ids=str)
def test_nothing_breaks_with_every_rule_in_force(world: World) -> None:
    explored = explore(world)
    assert explored.broken is None, str(explored)
    assert explored.is_whole


@pytest.mark.parametrize(("rule", "world", "says"), BROKEN, ids=lambda value: str(value))
def test_each_rule_taken_away_breaks_a_property(rule: Rule, world: World, says: str) -> None:
    explored = explore(rules.without(world, rule))
    assert explored.broken is not None, str(explored)
    assert says in explored.broken, str(explored)
    assert len(explored.story) <= 16


def test_frontier_below_what_was_accepted_is_harmless_where_the_sink_has_an_identity_key() -> None:
    assert explore(rules.without(World(identity=KEY), Rule.FRONTIER_COVERS)).broken is None


def test_model_is_made_of_the_standard_library_and_the_products_domain() -> None:
    for path in Path(rules.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                is_own = name.startswith(("recovery_api.domain", "tests.stateful.model"))
                assert is_own or name.partition(".")[0] in sys.stdlib_module_names, f"{path.name}: {name}"
