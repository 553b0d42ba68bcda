"""An epoch: what a ledger's numbers are about. Under another scope, mapping, form or server they are about something else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from recovery_api.domain.plans import scope_digest

CANONICAL_VERSION = 1
"""Of the canonical form (docs/architecture.md). It never changes; were it to, every digest would be another."""


def epoch_digest(
    *, scope: Sequence[str] | None, source: Mapping[str, Any], sink: Mapping[str, Any], incarnations: Sequence[str]
) -> str:
    """The epoch of one lane. `source`, `sink`: the options that decide (kinds.deciding), their kinds included.
    `incarnations`: of the source and of the sink, "" where one cannot be seen.

    >>> one = epoch_digest(scope=None, source={"table": "a"}, sink={}, incarnations=["s1", "k1"])
    >>> one == epoch_digest(scope=None, source={"table": "a"}, sink={}, incarnations=["s1", "k1"])
    True
    >>> one == epoch_digest(scope=["a"], source={"table": "a"}, sink={}, incarnations=["s1", "k1"])
    False
    """
    bound = {
        "scope": scope_digest(scope),
        "source": dict(source),
        "sink": dict(sink),
        "canonical": CANONICAL_VERSION,
        "incarnations": list(incarnations),
    }
    return hashlib.sha256(json.dumps(bound, sort_keys=True, default=str).encode()).hexdigest()
