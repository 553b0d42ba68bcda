"""From a database constraint's name to the error a person reads. The name is the sentence; this adds what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from django.db import IntegrityError

from recovery_api.domain.errors import FencepostError, Refused

REMEDIES = {
    "a_sink_serves_one_pipeline": "Register a sink of its own (another schema) for this pipeline.",
    "a_delivery_serves_one_pipeline": "Register a sink of its own for this pipeline's delivery.",
    "a_pipeline_has_one_unfinished_recovery": "Wait for it, or settle it: manage.py recovery PIPELINE settle.",
    "a_plan_is_applied_once": "See its recovery: manage.py recovery PIPELINE.",
    "a_recovery_has_one_live_intent": "A worker is at it; wait for it to end.",
    "a_scope_names_at_least_one_key": "Leave the scope out to owe every key, or name the keys.",
    "a_sink_has_one_drill_at_a_time": "Wait for it: manage.py intents list.",
    "a_coordinate_is_acknowledged_once": "Withdraw the first acknowledgement to give another reason.",
}


def constraint_of(error: IntegrityError) -> str:
    """The name of the constraint that `error` violated; empty where the database names none."""
    diagnosis = getattr(error.__cause__, "diag", None)
    return getattr(diagnosis, "constraint_name", None) or ""


@contextmanager
def constraints_mapped(
    action: str, special: Mapping[str, Callable[[], FencepostError]] | None = None
) -> Iterator[None]:
    """Turns a violated constraint into Refused, or into what `special` makes for it. Anything else passes through.

    Enter it outside the transaction: `special` may then look at who got there first.
    """
    try:
        yield
    except IntegrityError as error:
        name = constraint_of(error)
        if special and name in special:
            raise special[name]() from error
        if not name:
            raise
        raise Refused(action, name.replace("_", " "), REMEDIES.get(name, "")) from error
