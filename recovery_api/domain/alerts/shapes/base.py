"""What every shape has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from recovery_api.domain.words import row_make


class Shape(StrEnum):
    """A sort of destination. A row: the word; what it is; what its address is; what its secret is ("": it has none).

    `is_read_by_people`: it gets a summary a minute at most. `resends`: it forgets what it is not told again. `default_address`: used
    where none is given. `address_may_be_secret`: it may be a reference.
    """

    label: str
    address_says: str
    secret_says: str
    needs_secret: bool
    is_read_by_people: bool
    resends: bool
    default_address: str

    def __new__(  # nosec B107 # how a form asks for a secret
        cls,
        word: str,
        label: str = "",
        address_says: str = "",
        secret_says: str = "",
        needs_secret: bool = False,
        is_read_by_people: bool = False,
        resends: bool = False,
        default_address: str = "",
    ) -> Shape:
        said = {"label": label, "address_says": address_says, "secret_says": secret_says, "needs_secret": needs_secret}
        more = {"is_read_by_people": is_read_by_people, "resends": resends, "default_address": default_address}
        return row_make(cls, word, **said, **more)

    PAGERDUTY = (
        "pagerduty",
        "PagerDuty",
        "The address of Events API v2; left out: https://events.pagerduty.com/v2/enqueue.",
        "The integration key of a service (its routing key).",
        True,
        False,
        False,
        "https://events.pagerduty.com/v2/enqueue",
    )
    ALERTMANAGER = (
        "alertmanager",
        "Alertmanager",
        "The address of an Alertmanager, without /api/v2/alerts.",
        "A bearer token, where a proxy asks for one.",
        False,
        False,
        True,
    )
    SLACK = (
        "slack",
        "Slack",
        "The address of an incoming webhook. It is a secret: give a reference.",
        "",
        False,
        True,
    )
    JSON = (
        "json",
        "JSON webhook",
        "Where the request is sent to.",
        "What requests are signed with; whsec_ and Base64, or any text.",
        True,
    )
    EMAIL = (
        "email",
        "E-mail",
        "Who gets it: addresses with commas between them.",
        "",
        False,
        True,
    )


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request. `path`: appended to the destination's address."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    path: str = ""


def body_of(value: Any) -> bytes:
    """JSON as it is sent, and signed."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def cut(text: str, most: int) -> str:
    """At most so many characters; what is cut off is marked.

    >>> cut("a long line", 6), cut("short", 6)
    ('a lon…', 'short')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"
