"""Which addresses an outgoing request may reach: public ones, and private ones that an administrator named.

The law: what counts is the address that a connection is opened to, not the name that somebody typed: a name may resolve to
another address each time.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from recovery_api.domain.errors import BadInput

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def networks_parse(given: Iterable[str]) -> list[Network]:
    """Raises: BadInput for a text that is no address and no network.

    >>> networks_parse(["10.1.0.0/16", "127.0.0.1"])
    [IPv4Network('10.1.0.0/16'), IPv4Network('127.0.0.1/32')]
    """
    found = []
    for text in filter(None, map(str.strip, given)):
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError as error:
            raise BadInput(
                "FENCEPOST_ALERT_PRIVATE_ADDRESSES", f"{text!r} is no network", "Write 10.1.0.0/16."
            ) from error
    return found


def address_refusal(text: str, allowed: Iterable[Network]) -> str:
    """Why nothing is sent to this address; "" where it may be.

    >>> address_refusal("8.8.8.8", []), address_refusal("10.1.2.3", networks_parse(["10.1.0.0/16"]))
    ('', '')
    >>> address_refusal("::ffff:127.0.0.1", [])
    '127.0.0.1 is a private address, and no administrator named it'
    """
    address = plain(text)
    if address.is_global and not address.is_multicast:
        return ""
    if any(address in network for network in allowed if network.version == address.version):
        return ""
    return f"{address} is a private address, and no administrator named it"


def plain(text: str) -> Address:
    """The address that is really meant, out of those that carry an IPv4 address inside."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inside is None and address in NAT64:
            inside = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return inside or address
    return address


def url_check(text: str, field: str) -> str:
    """An address of a webhook, as it may be registered. Raises: BadInput.

    Credentials belong into a secret, not into an address that pages show.
    """
    remedy = (
        "Write https://host/path, or a reference (env:FENCEPOST_END_NAME, file:/path) where the address is a secret."
    )
    if any(character.isspace() or not character.isprintable() for character in text):
        raise BadInput(field, "holds a space or a character that cannot be read", remedy)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise BadInput(field, "is no address", remedy) from error
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
        raise BadInput(field, "is no https address", remedy)
    if parts.username is not None or parts.password is not None:
        raise BadInput(field, "holds a name or a password", remedy)
    return text
