"""API tokens: made with an end and a limit, shown once, revoked by hand. Each change stands in the timeline."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from knox.models import get_digest_token
from knox.settings import CONSTANTS

from recovery_api.domain.access import Role, roles_below
from recovery_api.domain.actors import subject
from recovery_api.domain.errors import BadInput
from recovery_api.models import EventKind, Token
from recovery_api.selectors.tokens import token_gives
from recovery_api.services.events import event_append

DAYS, DAYS_MOST = 30, 365
USE_SEEN_EVERY = timedelta(minutes=1)


def token_create(
    user: Any, name: str, roles: Sequence[str], *, held: Collection[str], actor: str, now: datetime, days: int = DAYS
) -> tuple[Token, str]:
    """The token's row and the token itself, which is kept nowhere: show it once.

    `held` are the roles of whoever asks: a token gives one of them, or one below. Raises: BadInput.
    """
    if not name.strip() or len(name) > 200:
        raise BadInput("name", "cannot be a name", "Say what the token is for, in 1 to 200 characters.")
    if not 1 <= days <= DAYS_MOST:
        raise BadInput("days", f"{days} lies outside 1 to {DAYS_MOST}", "How many days the token stands.")
    held = roles_below(held)
    if not roles:
        raise BadInput("roles", "is empty", f"Name at least one of: {', '.join(sorted(held)) or 'none'}.")
    for role in roles:
        if role not in list(Role):
            raise BadInput("roles", f"{role!r} is no role", f"One of: {', '.join(Role)}.")
        if role not in held:
            raise BadInput("roles", f"{role} is more than you are", f"At most: {', '.join(sorted(held)) or 'none'}.")
    digest, token = get_digest_token()
    kept = sorted(set(roles))
    with transaction.atomic():
        row = Token(
            digest=digest,
            token_key=token[: CONSTANTS.TOKEN_KEY_LENGTH],
            user=user,
            expiry=now + timedelta(days=days),
            name=name.strip(),
            roles=kept,
            created_by=actor,
        )
        row.save(force_insert=True)
        says = f"{subject(actor)} made token {row.name} for {user.get_username()}: {', '.join(kept)}, {days} days."
        _tell(row, says, actor, now)
    return row, token


def token_revoke(token: Token, *, actor: str, now: datetime) -> Token:
    """The token, which stands no more. Revoking it twice is once."""
    with transaction.atomic():
        if Token.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=now, revoked_by=actor):
            _tell(token, f"{subject(actor)} revoked token {token.name} of {token.user.get_username()}.", actor, now)
    token.refresh_from_db()
    return token


def tokens_end(user: Any, *, actor: str, now: datetime, within: Collection[str] | None = None) -> int:
    """Revokes every token of `user` that stands; how many. `within`: only those that give no more than these roles."""
    standing = Token.objects.filter(user=user, revoked_at__isnull=True, expiry__gt=now)
    with transaction.atomic():
        ended = [
            token_revoke(token, actor=actor, now=now)
            for token in standing.select_related("user")
            if within is None or token_gives(token) <= set(within)
        ]
    return len(ended)


def token_used(token: Token, now: datetime) -> None:
    """Keeps when it was used, to a minute: most requests write nothing."""
    long_ago = now - USE_SEEN_EVERY
    if token.last_used_at is None or token.last_used_at < long_ago:
        unseen = Q(last_used_at__isnull=True) | Q(last_used_at__lt=long_ago)
        Token.objects.filter(unseen, pk=token.pk).update(last_used_at=now)


def _tell(token: Token, says: str, actor: str, now: datetime) -> None:
    data = {"token": str(token.id), "name": token.name, "person": token.user.get_username(), "roles": token.roles}
    event_append(EventKind.TOKEN_CHANGED, actor=actor, now=now, says=says, data=data)
