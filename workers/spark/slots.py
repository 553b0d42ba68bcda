"""How many tasks an engine works on at once."""

from __future__ import annotations

import time
from typing import Any

import pyarrow.compute as pc

from workers.spark.on_demand import OnDemand
from workers.spark.session import engine_errors_mapped, session_of
from workers.spark.tasks import InProcess, session_chosen

UNASKED = 2
"""Of an engine that nobody has asked yet."""

ASKED_EVERY_SECONDS = 600
ROWS_ASKED = 4096
"""An engine with more slots than this counts as one with so many."""

_known: dict[str, tuple[float, int]] = {}


def slots_of(session: Any, is_opened: bool = True) -> int:
    """How many tasks run at once where `session` does its work: asked once in ten minutes, for executors come and go.

    `is_opened` False: an engine that is not open yet is not opened for this, and counts as one of two slots.
    """
    if isinstance(session, OnDemand) and not is_opened and not session.is_opened:
        return UNASKED
    engine = session_chosen(session)
    if isinstance(engine, InProcess):
        return 1
    name, now = session_of(engine), time.monotonic()
    asked_at, slots = _known.get(name, (0.0, 0))
    if not slots or now - asked_at > ASKED_EVERY_SECONDS:
        with engine_errors_mapped():
            places = engine.range(ROWS_ASKED).selectExpr("spark_partition_id() AS place").toArrow()["place"]
        slots = len(pc.unique(places))
        _known.clear()
        _known[name] = now, slots
    return slots
