"""From an error of the product to a page that says what happened and what to do next."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from recovery_api.domain.errors import BadInput, FencepostError, NotFound
from recovery_api.selectors.registry import retired_get


def error_page(request: HttpRequest, error: FencepostError, back: str = "/") -> HttpResponse:
    """404 where something is not there, 400 for what was given, 409 for what is refused now. Nothing was changed."""
    if isinstance(error, NotFound):
        what, _, nearest = error.args
        context = {"what": f"{what} is not here", "says": f"{what} is not registered.", "remedy": nearest}
        return render(request, "404.html", context, status=404)
    template, status = ("400.html", 400) if isinstance(error, BadInput) else ("409.html", 409)
    return render(request, template, {"says": str(error), "remedy": "", "back": back}, status=status)


def gone_page(request: HttpRequest, model: type[Any], name: str, error: NotFound) -> HttpResponse:
    """410 for what was retired, with what stays of it; else `error_page`."""
    retired = retired_get(model, name)
    if retired is None:
        return error_page(request, error)
    word = model._meta.model_name
    return render(request, "410.html", {"word": word, "retired": retired}, status=410)


def errors_shown(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The view, whose errors of the product end as a page that says what happened and what to do next."""

    @wraps(view)
    def shown(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except FencepostError as error:
            return error_page(request, error)

    return shown
