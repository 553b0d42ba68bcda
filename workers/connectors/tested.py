"""What a sink can do, as tested now: a record, a delivery, or both in one.

Where the kind declares less than was found, or more, the weaker counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recovery_api.domain.abilities import Ability
from recovery_api.domain.capabilities import Capability, archetype_weaker
from recovery_api.domain.kinds import abilities_of, kind_get
from workers.connectors.registry import delivery_make, sink_make

RECORD_ALONE = (
    "Nothing is sent here: it is registered as a record alone, whose rows are the mark of an effect that happens elsewhere."
    " Set is_effect, where a row here is the effect itself."
)


def capability_tested(kind_name: str, options: Mapping[str, Any]) -> Capability:
    """The capability that a strategy is chosen from. Raises: what opening the sink raises."""
    tested = sink_make(kind_name, options).capability()
    declared = kind_get(kind_name).abilities
    if Ability.APPENDED in declared - abilities_of(kind_name, options):
        tested = replace(tested, unappended_because=tested.mark_because or RECORD_ALONE)
    elif Ability.APPENDED in declared:
        ability = delivery_make(kind_name, options, Ability.APPENDED).append_ability()
        tested = replace(
            tested,
            may_append=ability.may_append,
            absorbs_late_sends=ability.absorbs_late_sends,
            unappended_because=" ".join(ability.problems),
        )
    return replace(tested, archetype=archetype_weaker(kind_get(kind_name).archetype, tested.archetype))
