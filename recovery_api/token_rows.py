"""A token as a JSON object: never the token."""

from __future__ import annotations

from datetime import datetime

from recovery_api.models import Token
from recovery_api.rows import Row, time_as_text
from recovery_api.selectors.tokens import token_state

TOKEN_SHOWN = 8


def token_as_row(token: Token, now: datetime) -> Row:
    return {
        "token_id": str(token.id),
        "name": token.name,
        "person": token.user.get_username(),
        "roles": token.roles,
        "state": token_state(token, now),
        "begins_with": token.token_key[:TOKEN_SHOWN],
        "created_at": time_as_text(token.created),
        "created_by": token.created_by,
        "expires_at": time_as_text(token.expiry),
        "last_used_at": time_as_text(token.last_used_at),
        "revoked_at": time_as_text(token.revoked_at),
        "revoked_by": token.revoked_by or None,
    }
