"""What a destination is told, before it has any destination's shape: the state of one group of alerts, whole.

The law: a message says all that is so, so that a newer one replaces an older one; nothing is told by difference. Members are
counted and never lost: where a shape has no room for all names, it says how many more there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from recovery_api.domain.alerts.causes import Cause, Severity
from recovery_api.domain.alerts.outbox import DeliveryKind, late_by
from recovery_api.domain.schedules import span_at_least
from recovery_api.domain.visible import visible

NAMES_KEPT = 1_000
SAYS_KEPT = 50
"""Of so many members the sentence is told, too."""


@dataclass(frozen=True, slots=True)
class MemberTold:
    """One alert of a group. `name`: the pipeline, source or sink; "Fencepost" for the installation."""

    alert: str
    name: str
    says: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Message:
    """`key`: the de-duplication key. `id`: the delivery's, the same in every attempt. `kind`: what it is for.

    `count`: how many alerts are open in the group; of a resolve: how many there were. `members`: the first of them. `url`, `runbook_url`: where a person
    looks; "" where this installation's address was not set. `due_since`: when it should have left.
    """

    id: str
    key: str
    kind: DeliveryKind
    cause: str
    severity: Severity
    end: str
    count: int
    members: tuple[MemberTold, ...]
    since: datetime
    due_since: datetime
    note: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    runbook_url: str = ""

    @property
    def label(self) -> str:
        """What a person calls the cause."""
        return Cause(self.cause).label if self.cause in list(Cause) else self.cause

    @property
    def names(self) -> list[str]:
        return [visible(one.name) for one in self.members]

    @property
    def title(self) -> str:
        """One line: what, of whom, of how many."""
        if self.kind is DeliveryKind.TEST:
            return f"Test of the destination {visible(self.end)}: nothing is wrong."
        where = f" ({visible(self.end)})" if self.end and self.count > 1 else ""
        of = self.names[0] if self.members else ""
        if self.count > 1:
            of = f"{self.count:,} {Cause(self.cause).scope.value}s{where}"
        before = {
            DeliveryKind.RESOLVE: "Resolved: ",
            DeliveryKind.ACKNOWLEDGE: "Acknowledged: ",
        }.get(self.kind, "")
        return f"{before}{self.label}: {of}"

    def body(self, sent_at: datetime) -> list[str]:
        """Sentences for a person: the note, what is late, what each member says, and how many more there are."""
        lines = [self.note] if self.note else []
        if late := late_says(self.due_since, sent_at):
            lines.append(late)
        if self.kind is DeliveryKind.RESOLVE:
            return [*lines, f"It was so since {self.since:%Y-%m-%d %H:%M} UTC. Members: {', '.join(self.names)}."]
        for one in self.members[:SAYS_KEPT]:
            lines.append(f"{visible(one.name)}: {visible(one.says)} Since {one.since:%Y-%m-%d %H:%M} UTC.")
        if self.count > SAYS_KEPT:
            lines.append(f"And {self.count - SAYS_KEPT:,} more: {', '.join(self.names[SAYS_KEPT:])}.")
        return lines

    def as_row(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "key": self.key,
            "kind": self.kind.value,
            "cause": self.cause,
            "severity": self.severity.value,
            "end": self.end,
            "count": self.count,
            "members": [
                {"alert": one.alert, "name": one.name, "says": one.says, "since": one.since.isoformat()}
                for one in self.members
            ],
            "since": self.since.isoformat(),
            "due_since": self.due_since.isoformat(),
            "note": self.note,
            "labels": dict(self.labels),
            "url": self.url,
            "runbook_url": self.runbook_url,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Message:
        moments = {name: datetime.fromisoformat(row[name]) for name in ("since", "due_since")}
        members = tuple(
            MemberTold(one["alert"], one["name"], one["says"], datetime.fromisoformat(one["since"]))
            for one in row["members"]
        )
        words = {"kind": DeliveryKind(row["kind"]), "severity": Severity(row["severity"])}
        return cls(**{**row, **moments, **words, "members": members})


def late_says(due_since: datetime, sent_at: datetime) -> str:
    """That it leaves later than it should have; "" where it does not."""
    late = late_by(due_since, sent_at)
    if late is None:
        return ""
    return f"LATE: this should have left at {due_since:%Y-%m-%d %H:%M} UTC, {span_at_least(late)} ago. Look at what is so now."


def labels_common(of: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The labels that all have alike.

    >>> labels_common([{"team": "a", "tier": "1"}, {"team": "a", "tier": "2"}]), labels_common([])
    ({'team': 'a'}, {})
    """
    first, *others = of or [{}]
    return {name: value for name, value in first.items() if all(one.get(name) == value for one in others)}
