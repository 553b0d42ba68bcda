"""Recoveries that nobody works on: their claim may be open, and the relay waits for it.

The law: the sweep only ever gives such a recovery up, by releasing its claims at the sink and asking what landed. It never
begins a claim anew: whether a recovery that failed is tried again is a person's decision.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from recovery_api.domain.errors import Refused
from recovery_api.models import LIVE_STATES, Intent, IntentAction, Recovery, RecoveryState
from recovery_api.services.constraints import constraints_mapped
from recovery_api.services.intents import intent_create

SETTLE_AFTER = timedelta(minutes=1)
"""How long after the last work on it ended: a person who is looking may settle it first."""
SWEEP_ACTOR = "sweep"


def recoveries_sweep(now: datetime) -> int:
    """How many recoveries were given work that releases their claims and settles them: those whose work failed."""
    live = Intent.objects.filter(recovery=OuterRef("id"), state__in=LIVE_STATES)
    recent = Intent.objects.filter(recovery=OuterRef("id"), finished_at__gt=now - SETTLE_AFTER, finished_at__lte=now)
    left = Recovery.objects.filter(
        ~Q(state=RecoveryState.FINISHED), ~Exists(live), ~Exists(recent), problem__isnull=False
    )
    asked = 0
    for recovery in left.select_related("pipeline")[:100]:
        try:
            with constraints_mapped(f"settling {recovery}"):
                intent_create(
                    IntentAction.SETTLE,
                    actor=SWEEP_ACTOR,
                    now=now,
                    pipeline=recovery.pipeline,
                    recovery=recovery,
                    arguments={"gives_up": True},
                )
        except Refused:
            continue  # somebody asked at this moment: it is settled by that
        asked += 1
    return asked
