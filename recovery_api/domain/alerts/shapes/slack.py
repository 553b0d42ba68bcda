"""Slack incoming webhooks.

Source: docs.slack.dev/messaging/sending-messages-using-incoming-webhooks (text and blocks); docs.slack.dev/reference/block-kit/blocks
(a header has 150 characters at most, a section's text 3000, a message 50 blocks); docs.slack.dev/messaging/formatting-message-text
(`&`, `<` and `>` are escaped; everything else would be markup).
"""

from __future__ import annotations

from datetime import datetime

from recovery_api.domain.alerts.messages import Message
from recovery_api.domain.alerts.shapes.base import Request, body_of, cut

HEADER_MOST, SECTION_MOST, SECTIONS = 150, 2_900, 3
"""Three sections: Slack refuses messages whose blocks have some 13,000 characters together."""


def request(message: Message, secret: str, sent_at: datetime) -> Request:
    lines = [escaped(line) for line in message.body(sent_at)]
    blocks: list[dict[str, object]] = [
        {"type": "header", "text": {"type": "plain_text", "text": cut(message.title, HEADER_MOST), "emoji": False}}
    ]
    blocks += [_section(text) for text in _sections(lines)]
    links = [f"<{url}|{name}>" for name, url in (("Alert", message.url), ("Runbook", message.runbook_url)) if url]
    if links:
        blocks.append(_section(" · ".join(links)))
    return Request(
        body_of({"text": cut(escaped(message.title), SECTION_MOST), "blocks": blocks}),
        {"Content-Type": "application/json"},
    )


def escaped(text: str) -> str:
    """Text that Slack shows as it stands: neither a mention nor a link can hide in it.

    >>> escaped("<!channel> & co")
    '&lt;!channel&gt; &amp; co'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _section(text: str) -> dict[str, object]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _sections(lines: list[str]) -> list[str]:
    """The lines, in as many sections as there may be; the last says how many lines had no room."""
    found = [""]
    for number, line in enumerate(lines):
        short = cut(line, SECTION_MOST // 2)
        if len(found[-1]) + len(short) + 1 > SECTION_MOST:
            if len(found) == SECTIONS:
                found[-1] = f"{found[-1][: SECTION_MOST - 60]}\nand {len(lines) - number:,} lines more."
                break
            found.append("")
        found[-1] = f"{found[-1]}\n{short}".strip()
    return [one for one in found if one]
