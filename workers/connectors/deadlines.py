"""How long an end may stay silent in each step, and what to do about its silence: decided here, without I/O.

One law: time alone ends nothing that goes on. An end that was heard, or whose backend was seen at work for us, has made
progress, and its clock starts again; one that is neither is given up at its step's deadline, from this side, whatever
the network pretends (a proxy acknowledges keepalives for a server that is gone). What the end did then is not known,
and is learnt by settling with it.
"""

from __future__ import annotations

from dataclasses import dataclass

ANSWER_SECONDS = 30
"""How long an end may be silent where nothing else is configured, besides what its step adds."""

ENTRIES_A_SECOND = 5_000
"""What a step is granted for its entries: a tenth of the pace measured for landing, so that a slow server is no dead one."""

FIRST_LOOK_SECONDS = 2.0
LOOK_AGAIN_SECONDS = 10.0
"""When our backend is looked at on a second connection: soon, so that a short wait for a lock can name whom it waits
for, and then often enough for a heartbeat."""


@dataclass(frozen=True, slots=True)
class Step:
    """What an end is being asked to do. `waits_seconds`: how long it may itself wait for others before it answers."""

    name: str
    entries: int = 0
    waits_seconds: float = 0.0

    def deadline_seconds(self, answer_seconds: float) -> float:
        """How long the end may be silent in this step.

        >>> Step("the fire", entries=100_000, waits_seconds=5).deadline_seconds(30)
        55.0
        """
        return answer_seconds + self.waits_seconds + self.entries / ENTRIES_A_SECOND


ASKING = Step("a question")


@dataclass(frozen=True, slots=True)
class Backend:
    """Our own session at a server, as a second one sees it. `blockers`: who holds the lock it waits for, for people."""

    state: str | None
    wait_event_type: str | None = None
    wait_event: str | None = None
    blockers: tuple[str, ...] = ()

    @property
    def is_at_work(self) -> bool:
        """Whether it runs a statement and waits for nobody: not for a lock, a standby, or us.

        One that waits for its client while we wait for it shows that what is sent does not arrive.
        """
        if self.state != "active":
            return False
        return self.wait_event_type not in ("Lock", "Client", "BufferPin") and self.wait_event != "SyncRep"


class Silence:
    """How long an end has been silent in one call. Times are any monotonic clock's, in seconds."""

    def __init__(self, deadline_seconds: float, now: float) -> None:
        self.deadline_seconds = deadline_seconds
        self._since = now
        self._look_at = now + self._first_look()

    def heard(self, now: float) -> None:
        """The end said something: its clock starts again."""
        self._since = now
        self._look_at = now + self._first_look()

    def looked(self, backend: Backend | None, now: float) -> bool:
        """Whether what was seen is progress; None: no second connection could be made, or it saw nobody."""
        self._look_at = now + min(LOOK_AGAIN_SECONDS, self.deadline_seconds / 2)
        if backend is None or not backend.is_at_work:
            return False
        self._since = now
        return True

    def wants_look(self, now: float) -> bool:
        """Whether our backend is to be looked at: also before giving up, which is decided by what is seen then."""
        return now >= self._look_at or self.is_over(now)

    def is_over(self, now: float) -> bool:
        return now - self._since >= self.deadline_seconds

    def _first_look(self) -> float:
        return min(FIRST_LOOK_SECONDS, self.deadline_seconds / 2)
