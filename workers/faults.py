"""Named points where a test may kill or hold a process. Nothing happens unless armed by the environment.

`FENCEPOST_CRASH=point:marker`   whoever creates the file `marker` at that point dies by SIGKILL. One-shot: the
                                 replacement finds the marker and lives.
`FENCEPOST_PAUSE=point:gate`     whoever comes to that point creates `gate.reached` and waits until the file `gate`
                                 exists: a barrier for tests.

Several are separated by `;`. Executors inherit the environment of the Spark server, not of the worker.
"""

from __future__ import annotations

import os
import signal
import time
from enum import StrEnum
from pathlib import Path

POLL_SECONDS = 0.01


class Point(StrEnum):
    """What has happened at each point, and what a death there leaves behind."""

    INTENT_TAKEN = "intent_taken"
    """The row names its taker; nothing else was done. The sweep offers it again."""
    BEFORE_CLAIM = "before_claim"
    """Written down that it claims; the sink was not asked. A successor asks it under a name of its own."""
    AFTER_CLAIM = "after_claim"
    """The fence is raised and the claim open, and nobody wrote it down. The relay waits; a successor finds it at the sink
    by the recovery's name, releases it and claims anew."""
    DURING_READ = "during_read"
    """The record is being read under the claim. Nothing is armed; the snapshots go with their holder."""
    BEFORE_ARM = "before_arm"
    """The delta is computed and known to nobody else."""
    AFTER_ARM = "after_arm"
    """The sink knows count and digest; nothing is staged."""
    DURING_STAGING = "during_staging"
    """Some rows are staged under this generation and arm, which no other arm will ever count."""
    BEFORE_FIRE = "before_fire"
    """Everything is staged; nothing has landed."""
    DURING_FIRE = "during_fire"
    """The fire may be running at the sink without us: only locking the claim tells."""
    AFTER_FIRE = "after_fire"
    """The batch has landed and only the sink knows."""
    BEFORE_OUTCOME = "before_outcome"
    """The outcome is known here and not yet in the control database: settled again from the sink."""
    BEFORE_VERIFY = "before_verify"
    """Fired and recorded, not audited: no outcome may be claimed yet."""
    BEFORE_HAND_OVER = "before_hand_over"
    """Verified; the relay has not been handed its start."""
    DURING_APPEND = "append.inserted"
    """The rows are inserted at a sink without a fence and its lock is held; nothing is committed."""
    AFTER_APPEND = "append.committed"
    """A part has landed there and only the sink knows: a successor finds it already there."""
    BEFORE_APPEND = "append.prepared"
    """What is missing is known here, written down as begun; the sink was not asked."""
    APPENDED = "append.answered"
    """The sink has answered and nobody wrote it down: the part has landed, and a successor finds it there."""
    FRONTIER_PINNED = "reading.pinned"
    """The frontier is pinned, and neither end's snapshot is open: what commits now lies above it. Nothing is held."""
    DURING_DRILL = "drill.playing"
    """A drill's namespace stands at the sink, and only the next drill takes it away."""
    ARCHIVE_JOINED = "archive.joined"
    """A day's files of the archive are one file, too, and no row tells of it: they are joined again, and it goes after a day."""
    RELAY_ACCEPTED = "relay.accepted"
    """The reference relay's event is accepted at the sink and its cursor still says it is not sent."""


def crash_point(point: Point | str) -> None:
    """Kills this process, or holds it, where `point` is armed. Costs two look-ups in the environment otherwise."""
    for marker in _armed("FENCEPOST_PAUSE", point):
        with marker.with_name(marker.name + ".reached").open("wb"):  # may be a named pipe that somebody reads
            pass
        while not marker.exists():
            time.sleep(POLL_SECONDS)
    for marker in _armed("FENCEPOST_CRASH", point):
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)


def _armed(variable: str, point: Point | str) -> list[Path]:
    """The files named for `point`. Raises: ValueError for a point that does not exist (a test would prove nothing)."""
    armed = os.environ.get(variable)
    if not armed:
        return []
    pairs = [part.partition(":") for part in armed.split(";")]
    return [Path(file) for name, _, file in pairs if Point(name) == Point(point)]
