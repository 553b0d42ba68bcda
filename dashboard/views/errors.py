"""From an error of the product to a page that says what happened and what to do next."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme

from dashboard.access import where_it_stood
from recovery_api.domain.errors import BadInput, FencepostError, NotFound
from recovery_api.selectors.registry import retired_get

PREDICATES = frozenset({"is", "are", "was", "has", "holds", "lies", "cannot", "names", "stands"})
"""How the problems of fields begin that say something of the field."""


def error_page(request: HttpRequest, error: FencepostError, back: str = "/") -> HttpResponse:
    """404 where something is not there, 400 for what was given, 409 for what is refused now. Nothing was changed."""
    if isinstance(error, NotFound):
        what, _, nearest = error.args
        context = {"what": f"{what} is not here", "says": f"{what} is not registered.", "remedy": nearest}
        return render(request, "404.html", context, status=404)
    template, status = ("400.html", 400) if isinstance(error, BadInput) else ("409.html", 409)
    return render(request, template, {"says": str(error), "remedy": "", "back": back}, status=status)


def said(error: FencepostError) -> str:
    """The error as it stands beside its field: without the field's name before it, and still a sentence.

    >>> said(BadInput("reason", "is missing", "Say why."))
    'It is missing. Say why.'
    """
    text = str(error).removeprefix(f"{error.args[0]}: ") if isinstance(error, BadInput) else str(error)
    return f"It {text}" if text.partition(" ")[0] in PREDICATES else text[:1].upper() + text[1:]


def refused(error: FencepostError) -> dict[str, Any]:
    """For a page with a form: `errors`, a sentence by field, or `refusal`, where no field is at fault."""
    if isinstance(error, BadInput):
        return {"errors": {str(error.args[0]).rpartition(".")[2]: said(error)}}
    return {"refusal": said(error)}


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form whose token does not stand: it is from before the last sign-in, or the browser sent no cookie."""
    is_sign_in = request.path == resolve_url(settings.LOGIN_URL)
    wanted = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(wanted, {request.get_host()}):
        wanted = resolve_url(settings.LOGIN_REDIRECT_URL)
    context = {
        "is_sign_in": is_sign_in,
        "is_signed_in": request.user.is_authenticated,
        "go_on": wanted if is_sign_in else where_it_stood(request),
    }
    return render(request, "csrf.html", context, status=403)


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
