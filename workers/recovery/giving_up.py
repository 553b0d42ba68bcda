"""Ending a recovery whose work cannot go on, so that no claim of it stays open unsaid."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from recovery_api.domain.errors import FencepostError
from recovery_api.models import Intent
from recovery_api.services import intents
from workers.recovery.strategies import driver_make


def recovery_give_up(intent: Intent, report: Any, error: FencepostError) -> bool:
    """Whether the intent's recovery, and the intent with it, is over: its claims are released at the sink, and nothing of
    them landed unseen. False: every part has fired, so nothing is open and only its verification is missing.

    Needs neither Spark nor evidence. Raises: what the sink, or the control database, answers.
    """
    run = driver_make(intent, report, None)
    if run.is_over:
        intents.intent_finish(intent, {"recovery": str(run.recovery.id)}, timezone.now())
        return True
    while not run.is_over and run.recovery.batch_index < run.recovery.batches:
        run.refuse(error)  # a batch that landed unseen is one part more
    return run.is_over
