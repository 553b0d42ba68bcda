"""The signature of an outgoing webhook: HMAC-SHA256 over id, time and body.

Source: Standard Webhooks 1.0.0 (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md): receivers verify
it with the libraries of that name.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from datetime import datetime, timedelta

PREFIX = "whsec_"
TOLERANCE = timedelta(minutes=5)


def key_of(secret: str) -> bytes:
    """The key in a secret: `whsec_` and Base64, or any text as it stands.

    >>> key_of("whsec_c2VjcmV0"), key_of("plain text")
    (b'secret', b'plain text')
    """
    text = secret.strip()
    if text.startswith(PREFIX):
        try:
            return base64.b64decode(text.removeprefix(PREFIX), validate=True)
        except (binascii.Error, ValueError):
            pass
    return text.encode()


def headers_signed(secret: str, id_: str, sent_at: datetime, body: bytes) -> dict[str, str]:
    """The three headers. The time is when this attempt leaves; the id is the same in all of them."""
    stamp = str(int(sent_at.timestamp()))
    return {"webhook-id": id_, "webhook-timestamp": stamp, "webhook-signature": _signature(secret, id_, stamp, body)}


def is_signed(secret: str, id_: str, stamp: str, signatures: str, body: bytes, now: datetime) -> bool:
    """Whether a receiver should believe it: one of the signatures is right, and the time is near."""
    if not stamp.isascii() or not stamp.isdigit() or abs(now.timestamp() - int(stamp)) > TOLERANCE.total_seconds():
        return False
    wanted = _signature(secret, id_, stamp, body)
    return any(hmac.compare_digest(wanted, one) for one in signatures.split(" "))


def _signature(secret: str, id_: str, stamp: str, body: bytes) -> str:
    signed = f"{id_}.{stamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key_of(secret), signed, hashlib.sha256).digest()).decode()
