"""What is asked of one registered thing in the same way, whatever it is: a worker's look at it, its retirement."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.models import Intent
from recovery_api.rows import Row
from recovery_api.schema import operation
from recovery_api.serializers.fields import Body, Name
from recovery_api.serializers.work import IntentShape
from recovery_api.views.base import ApiView, accepted, answer
from recovery_api.views.idempotent import idempotent


class NothingBody(Body):
    """No member at all."""


class RetireBody(Body):
    confirm = Name(help_text="Its name, typed.")


def work_asked(operation_id: str, says: str, *, tag: str) -> Callable[[Callable[..., Intent]], Any]:
    """Makes `ask(view, request, name) -> intent` a POST with nothing in its body, answered 202 with that intent."""

    def decorate(ask: Callable[..., Intent]) -> Any:
        @operation(
            operation_id, says, answer=IntentShape, status=202, body=NothingBody, is_named=True, errors=[404], tag=tag
        )
        @idempotent
        @functools.wraps(ask)
        def post(view: ApiView, request: Request, name: str) -> Response:
            NothingBody.read(request.data)
            return accepted(ask(view, request, name))

        return post

    return decorate


def retired(operation_id: str, what: str, *, shape: Any, tag: str) -> Callable[[Callable[..., Row]], Any]:
    """Makes `retire(view, request, name, confirm) -> row` the POST that takes `what` out of use."""
    says = f"{what} is taken out of use: its history stays, its name is free.\n\nWhile something uses it: 409."

    def decorate(retire: Callable[..., Row]) -> Any:
        @operation(operation_id, says, answer=shape, body=RetireBody, is_named=True, errors=[404], tag=tag)
        @idempotent
        @functools.wraps(retire)
        def post(view: ApiView, request: Request, name: str) -> Response:
            return answer(retire(view, request, name, RetireBody.read(request.data)["confirm"]))

        return post

    return decorate
