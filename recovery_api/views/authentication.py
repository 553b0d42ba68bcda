"""Who asks: a bearer token, or the session of somebody who signed in to the pages."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from recovery_api.selectors.tokens import token_find
from recovery_api.services.tokens import token_used

SCHEME = "Bearer"


class BearerAuthentication(BaseAuthentication):
    """`Authorization: Bearer <token>`. Another scheme is somebody else's business, an unusable token nobody's."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        given = request.headers.get("Authorization", "")
        scheme, _, text = given.partition(" ")
        if scheme.lower() != SCHEME.lower():
            return None
        now = timezone.now()
        token = token_find(text.strip(), now) if text.isascii() else None
        if token is None:
            raise AuthenticationFailed("The token is unknown, expired or revoked.")
        token_used(token, now)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return SCHEME
