"""The design check: does the shortest memory last longer than the worst case that was planned for?

The law: T_dedup > T_max_outage + T_operator_delay + T_replay_catchup + margin. What is not declared is unknown, and never
nothing; but what is known may already be too much. It is about the design, not about today: domain/headroom/live.py is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from recovery_api.domain.headroom.terms import span


class Holds(StrEnum):
    """What the design check comes to."""

    FAILS = "fails"
    """The steps that are known already take longer than the memory lasts."""
    UNKNOWN = "unknown"
    """Something of it is neither declared nor measured."""
    HOLDS = "holds"
    """The memory outlasts the planned worst case."""


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the waterfall. `takes` None: not known. `is_measured`: seen, not declared."""

    name: str
    takes: timedelta | None
    is_measured: bool = False


@dataclass(frozen=True, slots=True)
class DesignCheck:
    """`horizon`: T_dedup, the shortest that is declared; None: none is. `is_whole`: every memory's is. `spare`: horizon less
    all steps, negative where it fails; where something is not known, at most so much.
    """

    holds: Holds
    horizon: timedelta | None
    is_whole: bool
    steps: tuple[Step, ...]
    spare: timedelta | None

    @property
    def missing(self) -> tuple[str, ...]:
        """What to declare or to measure, by name."""
        return (*(() if self.is_whole else ("horizon",)), *(one.name for one in self.steps if one.takes is None))


def design_check(horizon: timedelta | None, steps: Sequence[Step], *, is_whole: bool = True) -> DesignCheck:
    """Strictly longer: a memory that ends with the last step has no room for the clock's tick.

    >>> from datetime import timedelta as t
    >>> design_check(t(minutes=5), [Step("max_outage", t(minutes=5)), Step("operator_delay", None)]).holds.value
    'fails'
    """
    if horizon is None:
        return DesignCheck(Holds.UNKNOWN, None, False, tuple(steps), None)
    spare = horizon - sum((one.takes for one in steps if one.takes is not None), timedelta(0))
    is_known = is_whole and all(one.takes is not None for one in steps)
    holds = Holds.FAILS if spare <= timedelta(0) else Holds.HOLDS if is_known else Holds.UNKNOWN
    return DesignCheck(holds, horizon, is_whole, tuple(steps), spare)


def catch_up(
    arrivals_per_second: float | None,
    max_outage: timedelta | None,
    operator_delay: timedelta | None,
    rate_per_second: float | None,
    overhead: timedelta | None,
) -> timedelta | None:
    """T_replay_catchup: what comes in while nothing is delivered, at the highest arrival rate, sent again at the re-drive's
    rate, and what a re-drive takes besides. None where one of them is not known."""
    if max_outage is None or operator_delay is None or overhead is None or arrivals_per_second is None:
        return None
    if not rate_per_second:
        return None
    backlog = arrivals_per_second * (max_outage + operator_delay).total_seconds()
    return overhead + span(backlog / rate_per_second)
