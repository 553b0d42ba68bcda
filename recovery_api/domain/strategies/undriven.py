"""The strategies of sinks that nothing is sent to yet: no recovery runs by them."""

from __future__ import annotations

from recovery_api.domain.capabilities import Archetype
from recovery_api.domain.strategies.base import Strategy

READ_ONLY = Strategy(
    name="read_only",
    archetype=Archetype.QUERYABLE,
    does="Its record is audited and planned for, and no recovery runs",
    promise="nothing beyond what an audit finds",
    is_driven=False,
)
KEYED = Strategy(
    name="keyed",
    archetype=Archetype.DEDUPLICATING,
    does="No recovery runs here yet; a resend under keys made of source coordinates could say",
    promise="each owed event once inside the horizon, by payload; past it the sink is blind",
    is_driven=False,
)
BLIND = Strategy(
    name="blind",
    archetype=Archetype.BLIND,
    does="No recovery runs here: the ambiguous window and the recorded preference are all there is",
    promise="'at least once, by choice' where it resends, 'at most once, by choice' where it skips; never exactly once",
    is_driven=False,
)
