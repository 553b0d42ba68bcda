"""Tokens: made, listed, revoked. Whoever configures sees and revokes everybody's; a token never gives more than it has."""

from __future__ import annotations

import json
from typing import Any

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.access import Permission, Role
from recovery_api.models import Token
from recovery_api.rows import Row
from recovery_api.schema import operation
from recovery_api.selectors.tokens import token_gives, token_list, token_visible
from recovery_api.serializers.about import EndedShape, NewTokenShape, TokenShape
from recovery_api.serializers.fields import Body, Choice, FlagWord, Name, Text, Whole
from recovery_api.serializers.shapes import page_of
from recovery_api.services.tokens import DAYS, DAYS_MOST, token_create, token_revoke, tokens_end
from recovery_api.token_rows import token_as_row
from recovery_api.views.base import ApiView, answer
from recovery_api.views.idempotent import idempotent
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor, require, roles


class TokensQuery(PageQuery):
    person = Text(help_text="Only this person's; needs the role admin where it is not you.")
    is_everybody = FlagWord(help_text="true: everybody's; needs the role admin. Left out: yours.")


class TokenBody(Body):
    name = Name(help_text="What it is for.")
    days = Whole(required=False, min_value=1, max_value=DAYS_MOST, help_text=f"How long it stands; {DAYS}.")

    def get_fields(self) -> dict[str, Any]:
        from rest_framework import serializers

        one = Choice([role.value for role in Role])
        return {**super().get_fields(), "roles": serializers.ListField(child=one, help_text="Its limit.")}


class Tokens(ApiView):
    query_class = TokensQuery

    @operation("list_tokens", "Tokens, newest first.", answer=page_of(TokenShape), query=TokensQuery, tag="tokens")
    def get(self, request: Request) -> Response:
        person, now = self.asked.get("person"), timezone.now()
        found = token_list(request.user)
        if self.asked.get("is_everybody") or person not in (None, actor(request)):
            require(request, Permission.CONFIGURE)
            found = token_list()
        if person is not None:
            found = found.filter(user__username=person)
        return page(request, self.asked, found, ("-created", "-id"), lambda token: token_as_row(token, now))

    @operation(
        "create_token",
        "Make a token for yourself.\n\nIt is shown once. Its roles are at most yours, and at most those of the token that "
        "asks.",
        answer=NewTokenShape,
        status=201,
        body=TokenBody,
        request_example={"name": "runbook", "roles": ["operator"], "days": 30},
        tag="tokens",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = TokenBody.read(request.data)
        now = timezone.now()
        row, text = token_create(
            request.user,
            given["name"],
            given["roles"],
            held=roles(request) or (),
            actor=actor(request),
            now=now,
            days=given.get("days", DAYS),
        )
        return answer({**token_as_row(row, now), "token": text}, 201, location=f"/api/v1/tokens/{row.id}")

    @operation(
        "revoke_tokens",
        "End every token of yours that stands, this request's too.\n\nA new password does not end tokens: this does. A token ends "
        "none that may more than it.",
        answer=EndedShape,
        tag="tokens",
    )
    def delete(self, request: Request) -> Response:
        ended = tokens_end(request.user, actor=actor(request), now=timezone.now(), within=roles(request))
        return answer({"ended": ended})

    def remembered(self, body: str) -> str:
        """The answer without the token: only its hash is kept anywhere."""
        row = json.loads(body)
        return json.dumps(row | {"token": None}) if "token" in row else body  # nosec B105 # a name, no secret


class TokenOne(ApiView):
    @operation("show_token", "One token.", answer=TokenShape, errors=[404], tag="tokens")
    def get(self, request: Request, token_id: str) -> Response:
        return answer(_row(_token(request, token_id)))

    @operation(
        "revoke_token",
        "Revoke a token: it stands no more, from the next request on.\n\nOne that may more than you do is not yours to "
        "revoke.",
        answer=TokenShape,
        errors=[404],
        tag="tokens",
    )
    def delete(self, request: Request, token_id: str) -> Response:
        token = _token(request, token_id)
        if not token_gives(token) <= (roles(request) or frozenset()):
            require(request, Permission.CONFIGURE)
        return answer(_row(token_revoke(token, actor=actor(request), now=timezone.now())))


def _token(request: Request, token_id: str) -> Token:
    return token_visible(token_id, request.user, roles(request) or ())


def _row(token: Token) -> Row:
    return token_as_row(token, timezone.now())
