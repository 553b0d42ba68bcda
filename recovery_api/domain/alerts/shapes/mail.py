"""An e-mail: subject, text, and the headers by which a reader keeps one group in one thread."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from recovery_api.domain.alerts.messages import Message
from recovery_api.domain.alerts.shapes.base import cut


@dataclass(frozen=True, slots=True)
class Mail:
    subject: str
    text: str
    headers: dict[str, str]


def mail(message: Message, sent_at: datetime) -> Mail:
    """The subject is one line, whatever somebody called a pipeline."""
    subject = cut(" ".join(f"[{message.severity.value}] {message.title}".split()), 200)
    links = [f"{name}: {url}" for name, url in (("Alert", message.url), ("Runbook", message.runbook_url)) if url]
    thread = f"<{message.key}@fencepost.invalid>"
    return Mail(
        subject,
        "\n".join([*message.body(sent_at), "", *links]).strip() + "\n",
        {"Message-ID": f"<{message.id}@fencepost.invalid>", "References": thread, "In-Reply-To": thread},
    )
