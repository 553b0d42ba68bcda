"""What an end may tell of itself beside its rows: its clock, what it keeps for a relay, how large things are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, runtime_checkable

from recovery_api.domain.headroom.seen import EndSeen


@runtime_checkable
class Looked(Protocol):
    """An end that can be looked at. One that cannot has no clock that was measured, and no slot."""

    def look(self, clock: Callable[[], datetime]) -> EndSeen:
        """`clock`: the one clock that everything is compared with. What cannot be read is no error: `problem` says so."""
        ...
