"""The order that events and what happened to alerts share in a timeline, and the words for the latter.

The law: a timeline is in the order in which things were written, as the control database numbered them. Clocks of web servers and
workers may be wrong; what each said stands beside its line and decides no order.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from recovery_api.domain.alerts.evaluation import Change, Silence
from recovery_api.domain.errors import BadInput
from recovery_api.domain.words import row_make

NUMBER_MOST = 2**63 - 1


class AlertKind(StrEnum):
    """What is shown in a timeline of what happened to an alert. A row: the word, the change of the alert's history, what happened.

    An acknowledgement is an event already. The first observation that does not show a cause is in the alert's own history alone.
    """

    means: str
    change: str

    def __new__(cls, word: str, change: str = "", means: str = "") -> AlertKind:
        return row_make(cls, word, change=change, means=means)

    OPENED = "alert opened", Change.OPENED, "An alert began."
    REOPENED = "alert reopened", Change.REOPENED, "It had resolved less than half an hour before."
    WORSENED = "alert worsened", Change.WORSENED, "Its severity rose, or its number grew."
    RESOLVED = "alert resolved", Change.RESOLVED, "Newer observations do not show its cause any more."
    BROKE_THROUGH = "alert broke through", Silence.BROKE_THROUGH, "A worse state ended its acknowledgement."
    CAME_BACK = "alert came back", Silence.CAME_BACK, "Its acknowledgement ended."
    MUTED = "alert muted", Silence.MUTED, "A mute keeps it from being told."
    UNMUTED = "alert unmuted", Silence.UNMUTED, "No mute keeps it from being told any more."


BY_CHANGE = {kind.change: kind for kind in AlertKind}


class Place(NamedTuple):
    """Where a line stands. `event`: its own number, or the newest event's when a line of an alert was written; `line`: that
    line's number, 0 for the event itself. Places compare as the timeline is ordered, and no two lines share one."""

    event: int
    line: int = 0

    def __str__(self) -> str:
        return f"{self.event}.{self.line}" if self.line else str(self.event)


def place_parse(text: str, field: str) -> Place:
    """Raises: BadInput.

    >>> place_parse("12.7", "before"), str(Place(12, 7)), str(Place(12))
    (Place(event=12, line=7), '12.7', '12')
    """
    parts = text.split(".")
    if len(parts) <= 2 and all(part.isascii() and part.isdigit() and int(part) <= NUMBER_MOST for part in parts):
        return Place(*map(int, parts))
    raise BadInput(field, f"{text!r} is no place in the timeline", "Leave it out to see the newest.")
