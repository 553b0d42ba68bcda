"""What is observed of one sink, and of the installation itself. The law is that of `pipelines`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from recovery_api.domain.alerts.causes import Cause, Scope
from recovery_api.domain.alerts.evaluation import INSTALLATION, Observed, Subject

OLD_AFTER_PERIODS = 2
"""A drill is too old once none has passed for so many of its periods: one that failed to be made is noticed."""
FENCEPOST = "Fencepost"
"""How the installation is named in a group."""


@dataclass(frozen=True, slots=True)
class DrillSeen:
    """The newest run of drills of a sink that ended."""

    id: str
    state: str
    says: str
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class SinkNow:
    """One sink that serves a pipeline. `weaker`: sentences of what its test found less than declared; None: not tested since its options
    changed. `kit`: the installed version; None: it has none, or was not asked. `drill_period` None: drilled only when asked."""

    key: int
    end: str
    restored_at: datetime | None = None
    restored_says: str = ""
    tested_at: datetime | None = None
    weaker: Sequence[str] | None = None
    kit: int | None = None
    drill: DrillSeen | None = None
    drill_period: timedelta | None = None
    drilled_since: datetime | None = None


def sink_observations(of: SinkNow, newest_kit: int | None, now: datetime) -> Iterator[Observed]:
    """`drilled_since`: when a drill last passed, or it was registered. `newest_kit` None: this process does not know it."""
    subject = Subject(Scope.SINK, of.key)
    if of.restored_at is not None:
        says = of.restored_says
        yield Observed(
            Cause.GENERATION_BACKWARDS,
            subject,
            True,
            now,
            says,
            evidence=f"sink:{of.key}",
            since=of.restored_at,
            end=of.end,
        )
    else:
        yield Observed(Cause.GENERATION_BACKWARDS, subject, False, now, end=of.end)
    if of.tested_at is not None:
        tested: dict[str, Any] = {"evidence": f"test:{of.key}:{of.tested_at.isoformat()}", "end": of.end}
        if of.weaker is not None:
            says = " ".join(of.weaker)
            yield Observed(
                Cause.CAPABILITY_WEAKER, subject, bool(says), of.tested_at, says, is_conclusive=not says, **tested
            )
        if of.kit is not None and newest_kit is not None:
            is_old = of.kit < newest_kit
            says = f"Version {of.kit} of the sink kit is installed; this release brings {newest_kit}." if is_old else ""
            yield Observed(Cause.KIT_OUTDATED, subject, is_old, of.tested_at, says, is_conclusive=not is_old, **tested)
    yield from _drills(of, subject, now)


def _drills(of: SinkNow, subject: Subject, now: datetime) -> Iterator[Observed]:
    if of.drill is not None and of.drill.state in ("passed", "failed", "unknown"):
        has_failed = of.drill.state != "passed"
        about: dict[str, Any] = {"evidence": f"drill:{of.drill.id}", "end": of.end, "is_conclusive": not has_failed}
        says = of.drill.says if has_failed else ""
        yield Observed(Cause.DRILL_FAILED, subject, has_failed, of.drill.finished_at, says, **about)
    if of.drill_period is None or of.drilled_since is None:
        yield Observed(Cause.DRILL_OLD, subject, False, now, end=of.end)
        return
    due = of.drilled_since + OLD_AFTER_PERIODS * of.drill_period
    is_old = now > due
    hours = int(of.drill_period.total_seconds() // 3600)
    says = (
        f"No drill has passed since {of.drilled_since:%Y-%m-%d %H:%M} UTC; one is due every {hours} h."
        if is_old
        else ""
    )
    yield Observed(Cause.DRILL_OLD, subject, is_old, now, says, since=due if is_old else None, end=of.end)


@dataclass(frozen=True, slots=True)
class Reached:
    """Whether a server takes connections, as seen from the pager. `says`: how it does not."""

    is_there: bool
    says: str = ""


def installation_observations(
    worker_says: str | None, is_waited_for: bool, reached: Mapping[Cause, Reached], now: datetime
) -> Iterator[Observed]:
    """`worker_says`: that none is there, in a sentence; None: one is. `is_waited_for`: work waits for one."""
    if worker_says is None or is_waited_for:
        says = worker_says or ""
        yield Observed(Cause.NO_WORKER, INSTALLATION, bool(says), now, says, evidence="workers", end=FENCEPOST)
    for cause, one in reached.items():
        yield Observed(cause, INSTALLATION, not one.is_there, now, one.says, evidence="pager", end=FENCEPOST)
