"""Looking at both ends of a pipeline at an audit: what each shows of itself is kept with the audit."""

from __future__ import annotations

from typing import Any

from recovery_api.domain.headroom.seen import end_seen_as_row
from recovery_api.selectors.clock import now_get
from workers.connectors.protocols.looked import Looked
from workers.evidence.read import Evidence


def ends_look(found: Evidence) -> dict[str, Any]:
    """By end (source, record, delivery), as rows. An end that cannot be looked at is left out."""
    spec = found.spec
    ends: dict[str, object] = {"source": spec.source.source(), "record": spec.sink.record()}
    if spec.delivery is not None:
        ends["delivery"] = spec.delivery.delivery()
    return {name: end_seen_as_row(end.look(now_get)) for name, end in ends.items() if isinstance(end, Looked)}
