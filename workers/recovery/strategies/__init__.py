"""Driving a recovery by the strategy that its plan recorded: one driver for each strategy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from recovery_api.domain.errors import Refused, TerminalError
from recovery_api.domain.strategies.attested import ATTESTED
from recovery_api.domain.strategies.fenced import FENCED
from recovery_api.models import Intent
from recovery_api.selectors.recoveries import plan_strategy, recovery_get
from recovery_api.services import intents
from workers.recovery.ends import session_open
from workers.recovery.strategies.attested import AttestedDriver
from workers.recovery.strategies.driver import Driver
from workers.recovery.strategies.fenced import FencedDriver

DRIVERS: Mapping[str, type[Driver]] = {FENCED.name: FencedDriver, ATTESTED.name: AttestedDriver}


def driver_make(intent: Intent, report: Any, session: Any) -> Driver:
    """The driver of the intent's recovery. Raises: Refused where its strategy sends nothing."""
    recovery = recovery_get(intent.recovery_id)
    strategy = plan_strategy(recovery.plan)
    if strategy.name not in DRIVERS:
        raise Refused(f"driving {recovery}", f"its strategy, {strategy.name}, sends nothing", "Plan again.")
    return DRIVERS[strategy.name](intent, report, recovery, session)


def recovery_run(intent: Intent, report: Any) -> None:
    """Bring the intent's recovery to its end, from wherever a predecessor left it; its intent ends with it.

    A terminal error ends the recovery, never with a claim of it left open: before anything is sent it is refused, and
    after that its outcome is unknown until somebody settles it.
    Raises: SinkBusy, Unreachable and other transient errors: the intent is offered again, and settles first; Refused
    where the intent is no longer ours.
    """
    with session_open(intent) as session:
        run = driver_make(intent, report, session)
        if run.is_over:
            intents.intent_finish(intent, {"recovery": str(run.recovery.id)}, timezone.now())
        while not run.is_over:
            try:
                run.step()
            except TerminalError as error:
                run.refuse(error)
