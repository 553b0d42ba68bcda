"""How often one person, or one address without a sign-in, may call. Counted by each web process for itself."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.throttling import AnonRateThrottle, UserRateThrottle


class PersonThrottle(UserRateThrottle):
    """Of a signed-in person, whatever the token."""

    def get_rate(self) -> str | None:
        rate: str | None = settings.FENCEPOST_API_RATES["person"]
        return rate

    def get_cache_key(self, request: Any, view: Any) -> str | None:
        return super().get_cache_key(request, view) if request.user.is_authenticated else None


class AnonymousThrottle(AnonRateThrottle):
    """Of an address from which nobody is signed in."""

    def get_rate(self) -> str | None:
        rate: str | None = settings.FENCEPOST_API_RATES["anonymous"]
        return rate
