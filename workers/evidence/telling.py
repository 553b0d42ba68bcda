"""What one range comes to: the sums of its groups, and its findings, encoded as they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recovery_api.domain.ledger.blocks import counts_join, fingerprint_join
from workers.connectors.readings import LateRows
from workers.evidence import schemas
from workers.evidence.acknowledged import acknowledged_write
from workers.evidence.canonical import batch_digest_add
from workers.evidence.store import FINDINGS, ITEMS, Encoder

if TYPE_CHECKING:
    from workers.evidence.ranges import MeetSpec


def _number_add(values: list[Any]) -> Any:
    return sum(values)


def _names_add(values: list[dict[str, int]]) -> dict[str, int]:
    names = dict.fromkeys(name for one in values for name in one)
    return {name: sum(one.get(name, 0) for one in values) for name in names}


def _lowest(values: list[Any]) -> Any:
    return min((one for one in values if one is not None), default=None)


JOINED: dict[str, Callable[[list[Any]], Any]] = {
    "counts": counts_join,
    "findings": _number_add,
    "batch_count": _number_add,
    "batch_digest": lambda values: batch_digest_add(*values),
    "stranded": _number_add,
    "waiting": _lowest,
    "blocks": lambda values: [row for one in values for row in one],
    "history": lambda values: fingerprint_join(*values),
    "earlier": lambda values: fingerprint_join(*values),
    "prefix": lambda values: fingerprint_join(*values),
    "prefix_then": lambda values: fingerprint_join(*values),
    "above": lambda values: fingerprint_join(*values),
    "archived": _names_add,
    "unarchived": _names_add,
    "ledger": _names_add,
    "approval": _names_add,
}
"""How what two neighbouring groups came to is one."""


class Told:
    """One range's summary in the making. `findings`, `items`: its parts, encoded as they are added."""

    def __init__(self, spec: MeetSpec, index: int, lane: str) -> None:
        self.findings = Encoder(spec.evidence, FINDINGS, index, schemas.FINDING)
        self.items = Encoder(spec.evidence, ITEMS, index, schemas.ITEM)
        self.acknowledged: list[pa.Table] = []
        self._late: dict[str, Any] = {}
        self._spec, self._index, self._lane = spec, index, lane
        self._groups: list[dict[str, Any]] = []

    def close(self) -> None:
        """Lets go what was encoded of its parts."""
        self.findings.close()
        self.items.close()

    def add(self, group: dict[str, Any]) -> None:
        self._groups.append(group)

    def late_add(self, late: LateRows, missing: list[tuple[int, int]]) -> None:
        """What was seen of late rows in a stretch; `missing`: those of the named ones that the sink lacks."""
        first = [(one.position, one.ordinal) for one in late.first]
        told = {"count": late.count, "written_since": late.written_since, "first": first, "missing": missing}
        if first:
            self._late = {name: self._late.get(name, type(value)()) + value for name, value in told.items()}

    def finish(self) -> dict[str, Any]:
        """The range's summary, once everything is written: `written` says what was."""
        spec, index = self._spec, self._index
        written = [*self.findings.finish(), *self.items.finish()]
        written += acknowledged_write(spec.evidence, index, self._lane, self.acknowledged)
        names = dict.fromkeys(name for group in self._groups for name in group)
        joined = {name: JOINED[name]([group[name] for group in self._groups if name in group]) for name in names}
        if not spec.block_rows:
            del joined["blocks"]
        told = {"lane": self._lane, "written": [one.as_row() for one in written], **joined}
        return {**told, **({"late": self._late} if self._late else {})}
