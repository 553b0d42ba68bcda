"""The outbox: what becomes of a delivery, by what its destination answered.

The law: at least once, and in order. Of one destination and de-duplication key only the newest message counts: an older one that
was not delivered is superseded, for a trigger that is tried again after its resolve would open it for good. What was tried once
may have arrived, whatever the answer was.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from recovery_api.domain.words import row_make


class DeliveryKind(StrEnum):
    """What a message is for."""

    TRIGGER = "trigger"
    """It pages."""
    UPDATE = "update"
    """The same page, brought up to date: it pages nobody."""
    ACKNOWLEDGE = "acknowledge"
    RESOLVE = "resolve"
    TEST = "test"
    """Somebody asked whether the destination works."""


class DeliveryState(StrEnum):
    """A row: the word, what it means."""

    means: str

    def __new__(cls, word: str, means: str = "") -> DeliveryState:
        return row_make(cls, word, means=means)

    WAITING = "waiting", "It leaves as soon as it is due; a crash of the pager changes nothing."
    SENDING = "sending", "A pager sends it. A crash leaves it so; another pager takes it once its time is over."
    SENT = "sent", "The destination took it. Final, but for Alertmanager, which is told again until it is resolved."
    SUPERSEDED = "superseded", "A newer message of the same key took its place before it was delivered. Final."
    REFUSED = "refused", "The destination will not take it, however often it is tried. Final."
    GIVEN_UP = "given_up", "It could not be delivered in a day. Final."


UNSENT = (DeliveryState.WAITING, DeliveryState.SENDING)

LEASE = timedelta(seconds=40)
"""For how long a pager that took a delivery has it: longer than a request may take."""
REQUEST_SECONDS = 10.0
"""How long a destination may take from the first packet to the last."""
GIVES_UP_AFTER = timedelta(days=1)
LATE_AFTER = timedelta(minutes=5)
SPARE_AFTER_ATTEMPTS = 2
"""After so many failed attempts the next route is paged, too; this one is still tried."""
FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=2), timedelta(minutes=5)

RESENT_EVERY = timedelta(minutes=1)
"""How often an Alertmanager is told again what is still so."""
RESENDS_OUTLIVED = 3
"""An alert there ends by itself only after more missed re-sends than that."""
SUMMARY_EVERY = timedelta(minutes=1)
"""A destination for people to read (Slack, e-mail) gets one summary in that time at most."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one attempt. `status` 0: nothing was answered. `problem` "": it was taken."""

    status: int = 0
    problem: str = ""
    excerpt: str = ""
    is_final: bool = False
    """It will never be taken: the next attempt would be answered the same."""
    disables: bool = False
    """The destination is gone: nothing more is sent there until somebody turns it on again."""
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Next:
    """What follows an attempt. `due_at` None: nothing more. `is_spare_due`: the next route is to be paged."""

    state: DeliveryState
    due_at: datetime | None
    is_spare_due: bool = False


def next_after(answer: Answer, attempts: int, created_at: datetime, now: datetime, *, resends: bool = False) -> Next:
    """After the attempt number `attempts`. `resends`: the destination has to be told again until it is resolved."""
    if not answer.problem:
        return Next(DeliveryState.SENT, now + RESENT_EVERY if resends else None)
    if answer.is_final or answer.disables:
        return Next(DeliveryState.REFUSED, None, is_spare_due=True)
    if now - created_at >= GIVES_UP_AFTER:
        return Next(DeliveryState.GIVEN_UP, None, is_spare_due=True)
    wait = max(wait_after(attempts), answer.retry_after or timedelta(0))
    return Next(DeliveryState.WAITING, now + min(wait, LONGEST_WAIT), attempts >= SPARE_AFTER_ATTEMPTS)


def wait_after(attempts: int) -> timedelta:
    """Twice as long each time.

    >>> [int(wait_after(n).total_seconds()) for n in (1, 2, 3, 8, 99)]
    [2, 4, 8, 256, 300]
    """
    return min(FIRST_WAIT * 2 ** min(max(attempts - 1, 0), 20), LONGEST_WAIT)


def answer_of(status: int, excerpt: str, retry_after: str = "") -> Answer:
    """What an HTTP status means. 2xx: taken. 410: the destination is gone. 3xx: a redirect, which is not followed.

    Source: RFC 9110, sections 15.3 to 15.6; Standard Webhooks 1.0.0 (410 Gone ends a subscription).

    >>> answer_of(202, "").problem, answer_of(410, "").disables, answer_of(302, "").is_final, answer_of(503, "").is_final
    ('', True, True, False)
    """
    if 200 <= status < 300:
        return Answer(status, "", excerpt)
    if status == 410:
        says = "answered 410: it is gone. Nothing more is sent there until somebody turns it on again"
        return Answer(status, says, excerpt, is_final=True, disables=True)
    if 300 <= status < 400:
        return Answer(status, f"answered {status}: redirects are not followed", excerpt, is_final=True)
    is_final = 400 <= status < 500 and status not in (401, 403, 404, 408, 425, 429)
    wait = timedelta(seconds=int(retry_after)) if retry_after.isascii() and retry_after.isdigit() else None
    return Answer(status, f"answered {status}", excerpt, is_final=is_final, retry_after=wait)


def late_by(due_since: datetime, now: datetime) -> timedelta | None:
    """How much later than it should have left; None: in time."""
    return now - due_since if now - due_since > LATE_AFTER else None
