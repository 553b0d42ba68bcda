"""All strategies: which one a sink's tested capability allows, and which one has a given name."""

from __future__ import annotations

from collections.abc import Mapping

from recovery_api.domain.capabilities import Archetype, Capability
from recovery_api.domain.errors import Refused
from recovery_api.domain.strategies.attested import ATTESTED
from recovery_api.domain.strategies.base import Strategy
from recovery_api.domain.strategies.fenced import FENCED
from recovery_api.domain.strategies.undriven import BLIND, KEYED, READ_ONLY

STRATEGIES: Mapping[str, Strategy] = {one.name: one for one in (FENCED, ATTESTED, READ_ONLY, KEYED, BLIND)}


def strategy_of(capability: Capability) -> Strategy:
    """What a sink may be recovered by, from what was tested of it now, never from the name of its kind.

    >>> strategy_of(Capability(Archetype.FENCED, True, True, True, True, True)).name
    'fenced'
    >>> strategy_of(Capability(Archetype.QUERYABLE, True, True, False, True, False)).name
    'read_only'
    """
    match capability.archetype:
        case Archetype.FENCED if capability.has_fence:
            return FENCED
        case Archetype.QUERYABLE if capability.can_read_record and capability.may_append:
            return ATTESTED
        case Archetype.DEDUPLICATING:
            return KEYED
        case Archetype.BLIND:
            return BLIND
        case _:
            return READ_ONLY


def strategy_named(name: str) -> Strategy:
    """Raises: Refused for a name that this version does not have: a newer one wrote it down."""
    if name not in STRATEGIES:
        remedy = f"Run the version that made it; this one has: {', '.join(STRATEGIES)}."
        raise Refused("Recovering", f"its strategy is called {name!r}, which is not known here", remedy)
    return STRATEGIES[name]
