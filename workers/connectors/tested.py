"""What a sink can do, as tested now: its record's capability, what its delivery may do, and the weaker of what its kind
declares and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recovery_api.domain.abilities import Ability
from recovery_api.domain.capabilities import Capability, archetype_weaker
from recovery_api.domain.kinds import kind_get
from workers.connectors.registry import delivery_make, has_ability, record_make


def capability_tested(kind_name: str, options: Mapping[str, Any]) -> Capability:
    """The capability that a strategy is chosen from. Raises: what opening the record raises."""
    tested = record_make(kind_name, options).capability()
    if has_ability(kind_name, Ability.APPENDED):
        ability = delivery_make(kind_name, options, Ability.APPENDED).append_ability()
        tested = replace(
            tested,
            may_append=ability.may_append,
            absorbs_late_sends=ability.absorbs_late_sends,
            unappended_because=" ".join(ability.problems),
        )
    return replace(tested, archetype=archetype_weaker(kind_get(kind_name).archetype, tested.archetype))
