"""A moment as a person writes it: with its time zone, so that everybody reads the same one."""

from __future__ import annotations

from datetime import UTC, datetime

from recovery_api.domain.errors import BadInput


def moment_read(text: str | None, field: str) -> datetime | None:
    """The moment that `text` says, in UTC; None where it says nothing.

    >>> moment_read("2026-11-28T23:30:00+01:00", "until").isoformat()
    '2026-11-28T22:30:00+00:00'
    >>> moment_read(" ", "until") is None
    True

    Raises: BadInput for what is no moment, and for one without a time zone.
    """
    if text is None or not text.strip():
        return None
    remedy = "Write it as 2026-11-28T22:30:00Z."
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise BadInput(field, f"{text[:80]!r} is no moment", remedy) from error
    if moment.tzinfo is None:
        raise BadInput(field, f"{text[:80]!r} has no time zone", remedy)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise BadInput(field, f"{text[:80]!r} lies outside every calendar", remedy) from error
