"""Keyset paging: a page begins after the last row of the one before, so the last page costs what the first one does.

A cursor is signed, and belongs to one address with its filters: another's, or an invented one, is refused.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from django.core import signing
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.exceptions import BadRequest
from recovery_api.rows import Row
from recovery_api.serializers.fields import Query, Text, WholeWord
from recovery_api.wide_numbers import wide_as_text

LIMIT, LIMIT_MOST = 50, 200
SALT = "fencepost.cursor"


class PageQuery(Query):
    """Of every list."""

    limit = WholeWord(min_value=1, max_value=LIMIT_MOST, help_text=f"Rows a page; {LIMIT} unless said.")
    cursor = Text(help_text="Where the page begins: from `next` of the page before.")


def page(
    request: Request,
    asked: Mapping[str, Any],
    rows: QuerySet[Any],
    order: Sequence[str],
    as_row: Callable[[Any], Row],
    look_up: Callable[[list[Any]], list[Any]] = list,
    **more: Any,
) -> Response:
    """One page of `rows` in `order`: field names, all with the same direction, unique together.

    `look_up` makes of the page's rows what `as_row` shows, in a number of queries that does not depend on theirs; `more` are
    further members of the page.

    Raises: BadRequest for a cursor that is not this list's.
    """
    limit = asked.get("limit", LIMIT)
    names = [name.removeprefix("-") for name in order]
    is_descending = order[0].startswith("-")
    if "cursor" in asked:
        rows = rows.filter(_after(names, _values(rows, names, cursor_read(request, asked)), is_descending))
    found = list(rows.order_by(*order)[: limit + 1])
    last = [_text(getattr(found[limit - 1], name)) for name in names] if len(found) > limit else None
    return paged(request, asked, [as_row(one) for one in look_up(found[:limit])], last, **more)


def paged(request: Request, asked: Mapping[str, Any], rows: list[Row], last: list[str] | None, **more: Any) -> Response:
    """The page of `rows`; `last` is what its cursor holds. None: there is no next page."""
    following = None if last is None else f"{_address(request)}?{urlencode(_parameters(request, asked, last))}"
    headers = {"Link": f'<{following}>; rel="next"'} if following else {}
    return Response(wide_as_text({**more, "items": rows, "next": following}), headers=headers)


def cursor_read(request: Request, asked: Mapping[str, Any]) -> list[str]:
    """What the cursor holds. Raises: BadRequest."""
    try:
        held = signing.Signer(salt=SALT).unsign_object(asked["cursor"])
        if held["of"] == _of(request, asked):
            return [str(value) for value in held["after"]]
    except (signing.BadSignature, ValueError, KeyError, TypeError):
        pass
    raise BadRequest("cursor", "is not of this list and its filters", "Take it from `next`, or begin without one.")


def _parameters(request: Request, asked: Mapping[str, Any], last: list[str]) -> dict[str, str]:
    kept = {name: value for name, value in request.query_params.items() if name != "cursor"}
    held = {"of": _of(request, asked), "after": last}
    return {**kept, "cursor": signing.Signer(salt=SALT).sign_object(held)}


def _of(request: Request, asked: Mapping[str, Any]) -> str:
    filters = {name: str(value) for name, value in asked.items() if name not in ("cursor", "limit")}
    whole = json.dumps([request.path, filters], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _address(request: Request) -> str:
    return quote(request.path)


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, dt.datetime) else str(value)


def _values(rows: QuerySet[Any], names: Sequence[str], texts: Sequence[str]) -> list[Any]:
    try:
        return [rows.model._meta.get_field(name).to_python(text) for name, text in zip(names, texts, strict=True)]
    except (ValidationError, ValueError) as error:
        raise BadRequest("cursor", "is not of this list", "Take it from `next`.") from error


def _after(names: Sequence[str], values: Sequence[Any], is_descending: bool) -> Q:
    """Rows after `values`. The first column is bounded by itself too, so that its index is used."""
    beyond = "lt" if is_descending else "gt"
    after = Q(**{f"{names[-1]}__{beyond}": values[-1]})
    for name, value in zip(reversed(names[:-1]), reversed(values[:-1]), strict=True):
        after = Q(**{f"{name}__{beyond}": value}) | (Q(**{name: value}) & after)
    return Q(**{f"{names[0]}__{beyond}e": values[0]}) & after
