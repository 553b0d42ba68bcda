"""What every sink can be asked, whatever it is: a record, a delivery, or both in one end."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from recovery_api.domain.capabilities import Capability
from workers.connectors.readings import ConnectionReport


@runtime_checkable
class AnySink(Protocol):
    """A sink that can be tested. What its record or its delivery must do stands with those (`record`, `delivery`)."""

    kind: str

    def test(self) -> ConnectionReport:
        """What is there, whether it can serve, and a sentence for each thing that is wrong. Changes nothing."""
        ...

    def capability(self) -> Capability:
        """What this sink can do, as tested now, not as declared. A delivery alone can read no record."""
        ...
