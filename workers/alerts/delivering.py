"""One delivery, from its row to its destination's answer. Secrets are read here, used, and never kept."""

from __future__ import annotations

import smtplib
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from recovery_api.domain.alerts.addresses import networks_parse, url_check
from recovery_api.domain.alerts.messages import Message
from recovery_api.domain.alerts.outbox import REQUEST_SECONDS, Answer
from recovery_api.domain.alerts.shapes.base import Shape
from recovery_api.domain.alerts.shapes.mail import mail
from recovery_api.domain.alerts.shapes.requests import REQUESTS
from recovery_api.domain.errors import FencepostError
from recovery_api.models import Delivery
from recovery_api.selectors.clock import now_get
from recovery_api.services.deliveries import deliveries_return, deliveries_take, delivery_record
from workers.alerts.sending import Sender
from workers.connectors.credentials import credential_resolve

AT_ONCE = 64
"""Threads are started as they are needed: sixteen destinations that hang leave room for the others."""
AT_ONCE_EACH = 4
"""Of one destination: a hanging one holds no more of the pager's threads."""
TAKEN_AT_ONCE_EACH = 3 * AT_ONCE_EACH
"""So many are taken: three times as long as a request may take is less than they are ours."""
ASKED_EVERY_SECONDS = 0.2
"""While something is sent, the outbox is asked so often, or once some have come back: asking for each one costs as much as sending it."""
REFERENCES = ("env:", "file:")


class Deliverer:
    """Sends what is due in threads of its own; rows are taken and written by whoever calls it, in one thread."""

    def __init__(self, name: str, sender: Sender | None = None) -> None:
        self.name = name
        self.sender = sender or Sender(networks_parse(settings.FENCEPOST_ALERT_PRIVATE_ADDRESSES))
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="deliver")
        self._running: dict[Future[tuple[Answer, float]], Delivery] = {}
        self._taken: deque[Delivery] = deque()
        self._ahead = timedelta(0)
        self._asked_at = float("-inf")
        self._came = 0

    def turn(self, seconds: float) -> int:
        """Takes what is due, as far as there are threads, and writes down what came back within so many seconds. How many came back."""
        self._take()
        self._start()
        return self._settle(seconds)

    def _take(self) -> None:
        """Some more than are sent at once, so that threads need not wait for the database; of a destination that has enough, none.

        Asked where a thread has nothing to do: what waits for destinations that hang keeps nothing of the others from being taken.
        """
        running = Counter(one.destination_id for one in self._running.values())
        if len(self._running) >= AT_ONCE or any(running[one.destination_id] < AT_ONCE_EACH for one in self._taken):
            return
        is_early = time.monotonic() - self._asked_at < ASKED_EVERY_SECONDS and self._came < TAKEN_AT_ONCE_EACH / 2
        if self.is_busy and is_early:
            return
        self._asked_at, self._came = time.monotonic(), 0
        held = running + Counter(one.destination_id for one in self._taken)
        busy = {key: TAKEN_AT_ONCE_EACH if count > TAKEN_AT_ONCE_EACH / 2 else count for key, count in held.items()}
        now = now_get()
        self._ahead = now - datetime.now(UTC)  # what is signed and what is late is told by the database's clock
        self._taken.extend(deliveries_take(self.name, now, AT_ONCE, TAKEN_AT_ONCE_EACH, busy))

    def _start(self) -> None:
        running = Counter(one.destination_id for one in self._running.values())
        later: deque[Delivery] = deque()
        while self._taken and len(self._running) < AT_ONCE:
            row = self._taken.popleft()
            if running[row.destination_id] >= AT_ONCE_EACH:
                later.append(row)
                continue
            running[row.destination_id] += 1
            self._running[self._threads.submit(deliver, row, self.sender, self._ahead)] = row
        self._taken.extendleft(reversed(later))

    def _settle(self, seconds: float) -> int:
        if not self._running:
            return 0
        done, _ = wait(self._running, timeout=seconds, return_when="FIRST_COMPLETED")
        self._came += len(done)
        for future in done:
            answer, took = future.result()
            delivery_record(self._running.pop(future), answer, took, now_get())
        return len(done)

    @property
    def is_busy(self) -> bool:
        return bool(self._running or self._taken)

    def close(self) -> None:
        """Takes nothing more, and writes down what is under way. What does not come back in time another pager takes."""
        until = time.monotonic() + REQUEST_SECONDS
        try:
            while self._running and time.monotonic() < until:
                self._settle(max(0.0, until - time.monotonic()))
            deliveries_return(self._taken)
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)


def deliver(delivery: Delivery, sender: Sender, ahead: timedelta = timedelta(0)) -> tuple[Answer, float]:
    """The destination's answer, and how many seconds it took. Whatever goes wrong is an answer, and tried again.

    `ahead`: by how much the control database's clock is ahead of this machine's.
    """
    began = time.monotonic()
    try:
        answer = _send(delivery, sender, datetime.now(UTC) + ahead)
    except FencepostError as error:  # of a reference: it is mended in the environment, so it is tried again
        answer = Answer(0, f"was not sent: {error}")
    except Exception as error:  # the outermost edge of a thread: recorded with the delivery
        answer = Answer(0, f"failed: {type(error).__name__}")
    return answer, time.monotonic() - began


def _send(delivery: Delivery, sender: Sender, now: datetime) -> Answer:
    destination = delivery.destination
    shape, message = Shape(destination.shape), Message.from_row(delivery.message)
    address = resolved(destination.address)
    if shape is Shape.EMAIL:
        return _mail(address.split(","), message, now)
    secret = resolved(destination.secret)
    request = REQUESTS[shape](message, secret, now)
    return sender.send(
        url_check(address, "address").rstrip("/" if request.path else "") + request.path, request.body, request.headers
    )


def resolved(text: str) -> str:
    """What a reference holds; any other text as it stands."""
    return credential_resolve(text).strip() if text.startswith(REFERENCES) else text


def _mail(to: Sequence[str], message: Message, now: datetime) -> Answer:
    """Through Django's backend (EMAIL_URL of the pager)."""
    if (
        not settings.FENCEPOST_HAS_MAIL
        and "smtp" not in settings.EMAIL_BACKEND
        and "locmem" not in settings.EMAIL_BACKEND
    ):
        return Answer(0, "was not sent: EMAIL_URL is not set where the pager runs")
    made = mail(message, now)
    recipients = [one.strip() for one in to if one.strip()]
    try:
        with get_connection() as connection:
            sent = EmailMessage(
                made.subject, made.text, None, recipients, headers=made.headers, connection=connection
            ).send()
    except smtplib.SMTPRecipientsRefused:
        return Answer(0, "no recipient was taken", is_final=True)
    except (smtplib.SMTPException, OSError) as error:
        return Answer(0, f"the mail server did not take it: {type(error).__name__}")
    return (
        Answer(250, "", f"{sent} message to {len(recipients)}") if sent else Answer(0, "the mail server took nothing")
    )
