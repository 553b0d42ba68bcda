"""Reads of tokens."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from knox.crypto import hash_token

from recovery_api.domain.access import Permission, permissions_of, roles_below
from recovery_api.domain.errors import NotFound
from recovery_api.models import Token
from recovery_api.selectors.people import roles_of


def token_list(user: Any = None) -> QuerySet[Token]:
    """Newest first; everybody's where nobody is named."""
    found = Token.objects.select_related("user").order_by("-created", "-id")
    return found.filter(user=user) if user is not None else found


def token_get(token_id: UUID | str) -> Token:
    """Raises: NotFound."""
    try:
        found = Token.objects.select_related("user").filter(id=token_id).first()
    except ValidationError:
        found = None
    if found is None:
        raise NotFound(f"Token {token_id}", "the control database", "")
    return found


def token_visible(token_id: UUID | str, user: Any, held: Collection[str]) -> Token:
    """One's own; anybody's for whoever configures. Raises: NotFound, for what is not theirs to know of, too."""
    token = token_get(token_id)
    if token.user_id != user.pk and Permission.CONFIGURE not in permissions_of(held):
        raise NotFound(f"Token {token_id}", "the control database", "")
    return token


def token_gives(token: Token) -> frozenset[str]:
    """The roles it gives now: its own, as far as its person still has them or more."""
    return frozenset(token.roles) & roles_below(roles_of(token.user) or ())


def tokens_in_state(found: QuerySet[Token], state: str, now: datetime) -> QuerySet[Token]:
    """Those that `token_state` says are standing, expired or revoked."""
    if state == "revoked":
        return found.filter(revoked_at__isnull=False)
    ends = {"expiry__gt": now} if state == "standing" else {"expiry__lte": now}
    return found.filter(revoked_at__isnull=True, **ends)


def token_find(text: str, now: datetime) -> Token | None:
    """The token that `text` is, if it stands now and its person may sign in. It is looked up by its hash."""
    token = Token.objects.select_related("user").filter(digest=hash_token(text)).first()
    return token if token is not None and token_state(token, now) == "standing" and token.user.is_active else None


def token_state(token: Token, now: datetime) -> str:
    """standing | expired | revoked."""
    if token.revoked_at is not None:
        return "revoked"
    return "standing" if token.expiry > now else "expired"
