"""What beat starts. Each entry only wakes someone: missing one delays work, and two at once do it once."""

from __future__ import annotations

from typing import Any

SWEEP_SECONDS = 10.0

SCHEDULE: dict[str, dict[str, Any]] = {
    "offer again the intents that the broker or a dead worker lost": {
        "task": "workers.tasks.intents_sweep",
        "schedule": SWEEP_SECONDS,
        "options": {"queue": "default", "expires": SWEEP_SECONDS},  # an outage leaves one behind, not a thousand
    },
}
