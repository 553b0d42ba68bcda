"""Whose request it is: the client's address, from the proxies that are trusted and from nobody else.

One law: after this, `REMOTE_ADDR` is the address that limits and throttles count by. A forwarded one is believed only
where the connection itself comes from the trusted proxies, in their order; whoever else sends one is counted by the
address they connect from, and what they say of the scheme is dropped.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from python_ipware import IpWare

FORWARDED = "HTTP_X_FORWARDED_FOR"
SAID_BY_PROXIES = (FORWARDED, "HTTP_X_FORWARDED_PROTO")


class ClientAddressMiddleware:
    """The first of all: everything after it reads `REMOTE_ADDR`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        trusted = list(settings.FENCEPOST_TRUSTED_PROXIES)
        peer = str(request.META.get("REMOTE_ADDR", ""))
        client = _client(str(request.META.get(FORWARDED, "")), peer, trusted) if trusted else None
        if client is not None:
            request.META["REMOTE_ADDR"] = client
        else:
            for name in SAID_BY_PROXIES:
                request.META.pop(name, None)
        return self.get_response(request)


def _client(forwarded: str, peer: str, trusted: list[str]) -> str | None:
    """The address before the trusted proxies. None: the connection does not come through them."""
    chain = ", ".join(filter(None, [forwarded, peer]))
    address, is_trusted = IpWare(precedence=(FORWARDED,), proxy_list=trusted).get_client_ip({FORWARDED: chain})
    return str(address) if address is not None and is_trusted else None
