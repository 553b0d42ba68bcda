"""The settle intent: learn from the sink what became of a recovery, and bring it to its end."""

from __future__ import annotations

from typing import Any

from recovery_api.models import Intent
from workers.recovery.protocol import recovery_run


def settle_run(intent: Intent, report: Any) -> None:
    """Settle by locking the claim at the sink and go on from there; a recovery half done is finished, never guessed."""
    recovery_run(intent, report)
