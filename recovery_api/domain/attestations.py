"""What people attest before a plan is applied: facts that neither end can show, recorded with who said so and when.

The law: a plan names the attestations it needs, a person gives each of them in words, and whatever rests on one names
it. Nothing is attested by default.

An attestation is stored as text: its name, and after it the details where it has any:
`relay-drained since 2026-11-28T17:40:00+00:00 by ada`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from recovery_api.domain.errors import BadInput

LATER_EVENTS_CONFIRMED = "later-events-confirmed"
"""Needed to apply a plan whose condition `order` does not hold."""
RELAY_DRAINED = "relay-drained"
"""The relay is stopped, and nothing it sent is on its way any more. Since when, and by whom it was stopped."""
ONLY_RECOVERER = "only-recoverer"
"""Nothing else brings missing events to this sink meanwhile: no second recovery, no script, no person."""


@dataclass(frozen=True, slots=True)
class AttestationKind:
    """One thing that can be attested. `asks`: what a person confirms; `form`: how to write it; `given`: what follows the
    word *given* in a verdict that rests on it, with `{details}` (since when, by whom) where it `has_details`."""

    name: str
    asks: str
    form: str
    given: str
    has_details: bool = False


KINDS: Mapping[str, AttestationKind] = {
    one.name: one
    for one in (
        AttestationKind(
            LATER_EVENTS_CONFIRMED,
            "The keys with a later accepted event were looked at, and their earlier effects may come after it.",
            LATER_EVENTS_CONFIRMED,
            "that the later events of its keys may come first",
        ),
        AttestationKind(
            RELAY_DRAINED,
            "The relay is stopped, and nothing that it sent is still on its way to the sink.",
            f"{RELAY_DRAINED} since TIME by NAME",
            "that the relay was stopped{details} and nothing of it was on its way any more",
            has_details=True,
        ),
        AttestationKind(
            ONLY_RECOVERER,
            "Nothing else sends missing events to this sink until this recovery has ended.",
            ONLY_RECOVERER,
            "that this was the only recoverer",
        ),
    )
}
_DETAILS = re.compile(r"(?P<name>\S+) since (?P<since>\S+) by (?P<by>\S.{0,199})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Attestation:
    """One attestation, as a person gave it. `since` and `by` are set only where its kind has details."""

    name: str
    since: datetime | None = None
    by: str = ""

    def text(self) -> str:
        """The attestation as it is written and stored."""
        return f"{self.name} since {self.since.isoformat()} by {self.by}" if self.since else self.name

    def given(self) -> str:
        """What follows the word *given* in a verdict that rests on it."""
        details = f" at {self.since:%Y-%m-%d %H:%M:%S %Z} by {self.by}" if self.since else ""
        return KINDS[self.name].given.format(details=details)


def attestation_parse(text: str, now: datetime | None = None) -> Attestation:
    """The attestation that a text means. `now` None: the text was stored, so its time is not checked again.

    Raises: BadInput for one that is not known, or whose details are missing or cannot be true.

    >>> from datetime import UTC
    >>> attestation_parse("relay-drained since 2026-11-28T17:40+00:00 by ada", datetime(2026, 11, 28, 18, tzinfo=UTC)).by
    'ada'
    """
    name = text.strip().partition(" ")[0]
    kind = KINDS.get(name)
    if kind is None:
        raise BadInput(
            "attestations",
            f"{name!r} is not an attestation",
            f"Give one of: {', '.join(one.form for one in KINDS.values())}.",
        )
    if not kind.has_details:
        if text.strip() != name:
            raise BadInput("attestations", f"{name} takes no details", f"Write: {kind.form}.")
        return Attestation(name)
    found = _DETAILS.fullmatch(text.strip())
    write = f"Write: {kind.form}, the time as 2026-11-28T17:40:00+00:00."
    if found is None:
        raise BadInput("attestations", f"{name} says neither since when nor by whom", write)
    try:
        since = datetime.fromisoformat(found["since"])
    except ValueError as error:
        raise BadInput("attestations", f"{found['since']!r} is not a time", write) from error
    if since.tzinfo is None:
        raise BadInput("attestations", f"{found['since']!r} does not say in which time zone", write)
    if now is not None and since > now:
        raise BadInput(
            "attestations", f"{found['since']} has not come yet", "Stop the relay, let it drain, then attest."
        )
    return Attestation(name, since, found["by"].strip())


def attestations_missing(asked: Sequence[str], given: Sequence[str]) -> list[AttestationKind]:
    """The attestations in `asked` (names, in order) that no text in `given` gives."""
    names = {text.strip().partition(" ")[0] for text in given}
    return [KINDS[name] for name in asked if name not in names]


def attestations_stored(texts: Sequence[str]) -> list[Attestation]:
    """Stored attestations. A text from before they were checked may not be one; it is left out."""
    found = []
    for text in texts:
        try:
            found.append(attestation_parse(text))
        except BadInput:
            continue
    return found


def attested_says(names: Sequence[str]) -> list[str]:
    """What follows the word *given* in a promise, before anybody has attested anything."""
    return [KINDS[name].given.format(details="") for name in names]
