"""Whom a step of the kit waited for, as a person can find them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def holders_say(found: list[Mapping[str, Any]]) -> str:
    """Whom the step waited for, each as a person can find it."""
    return "; ".join(map(_holder, found)) or "a transaction that has ended meanwhile"


def _holder(row: Mapping[str, Any]) -> str:
    if name := row.get("prepared_transaction"):
        return f"prepared transaction {name!r} of {row.get('role')} since {row.get('transaction_start')}"
    known = [f"session {row.get('pid')} ({row.get('application', 'no application name')}, {row.get('role')})"]
    known.append(f"{row.get('state', 'state not visible')} since {row.get('since', 'unknown')}")
    known.append(f"in a transaction since {row.get('transaction_start', 'unknown')}")
    if row.get("query_start"):
        known.append(f"last query at {row['query_start']}")
    return ", ".join(known)
