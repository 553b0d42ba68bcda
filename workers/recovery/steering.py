"""Obeying people between two steps of a recovery: holding while a pause is wanted, ending where a stop is, and going no
further while its pipeline is frozen.

The law: a pause waits only where no snapshot is held open. Asked while the record is read or staged, it lets the reading
go, keeps the claim, and reads again under it when the recovery goes on.
"""

from __future__ import annotations

import threading
from typing import Any

from recovery_api.domain.actors import by
from recovery_api.models import Intent, Recovery, Wanted
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.freezes import freeze_of, frozen_error
from recovery_api.services import recoveries

PAUSE_SECONDS = 1.0


class Asked(Exception):
    """People want something else than to go on, and snapshots are open here: let them go first."""


def wanted_after_pause(
    recovery: Recovery, intent: Intent, report: Any, before: str, *, is_reading: bool = False
) -> str:
    """What is wanted, run or stop, once no pause is. Meanwhile the recovery is shown as holding before the step `before`.

    `is_reading`: what follows sends nothing, so that no freeze holds it.
    Raises: Frozen where nothing may be sent, unless a stop is wanted: the claim, if there is one, stays, and the worker is
    free; Refused where the intent is no longer ours; WorkStopped where this process is told to end.
    """
    report.check()
    holds = False
    while (wanted := recoveries.recovery_wanted(recovery)) != Wanted.STOP:
        if not is_reading and (freeze := freeze_of(recovery.pipeline_id)) is not None:
            because = f"{freeze.what} is frozen {by(freeze.frozen_by)}: {freeze.reason}"
            recoveries.recovery_hold(
                recovery, before, actor=intent.taken_by, now=now_get(), intent=intent, because=because
            )
            raise frozen_error(freeze, f"Going on with recovery {recovery.id} to {before}")
        if wanted != Wanted.PAUSE:
            break
        if not holds:
            recoveries.recovery_hold(recovery, before, actor=intent.taken_by, now=now_get(), intent=intent)
            holds = True
        report(step="paused", says=f"holds before {before}; a claim already taken stays open")
        threading.Event().wait(PAUSE_SECONDS)
    if holds:
        recoveries.recovery_hold(recovery, None, actor=intent.taken_by, now=now_get(), intent=intent)
    return str(wanted)


def unless_asked(recovery: Recovery, report: Any) -> None:
    """Goes on, or raises Asked where a person wants a pause or a stop, or nothing may be sent."""
    report.check()
    if recoveries.recovery_wanted(recovery) != Wanted.RUN or freeze_of(recovery.pipeline_id) is not None:
        raise Asked
