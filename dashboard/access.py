"""The one place where pages are refused: every view, before it runs, against `recovery_api.domain.access.ROUTES`.

What is not in the table is refused to everybody. REST views have their own such place (a permission class), and Django's
admin, which only shows, its own rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render, resolve_url
from django.urls import Resolver404, resolve
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from rest_framework.views import APIView

from recovery_api.domain.access import ROUTES, Permission, is_allowed, who_may
from recovery_api.selectors.people import roles_of
from recovery_api.services.refusals import refusal_record

View = Callable[..., HttpResponse]
NEEDS_A_QUERY = frozenset({"finding"})
"""Pages whose address alone names nothing: nobody is sent there."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Whether a person may use a route, and a sentence that says who may where they may not."""

    is_allowed: bool
    says: str = ""

    def __bool__(self) -> bool:
        return self.is_allowed


class AccessMiddleware:
    """Refuses in `process_view`, when the route is known and nothing has been done yet."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        match = request.resolver_match
        if match is None or _has_its_own_rule(view, match.app_names):
            return None
        if any("\x00" in text for given in (request.GET, request.POST) for texts in given.lists() for text in texts[1]):
            says = "The request holds a NUL character, which cannot be looked for or kept."
            return render(request, "400.html", {"says": says, "remedy": "", "back": "/"}, status=400)
        route = match.url_name or ""
        allowed = may(request, route, request.method or "GET")
        if allowed:
            return None
        if roles(request) is None:
            return _sign_in_first(request)
        if any(name == route for name, _ in ROUTES) and (route, _method(request.method)) not in ROUTES:
            return _shows_nothing(request, route)
        return refused(request, route, allowed.says)


def may(request: HttpRequest, route: str, method: str) -> Allowed:
    """Whether the person of this request may call `route`. Asked by the middleware and by templates alike."""
    held = roles(request)
    if is_allowed(route, method, held):
        return Allowed(True)
    needed = ROUTES.get((route, _method(method)))
    if needed is None:
        return Allowed(False, "Nobody may: this route takes no such request.")
    if held is None:
        return Allowed(False, "Sign in first.")
    return Allowed(False, refusal(needed, held))


def refusal(needed: Permission, held: frozenset[str]) -> str:
    """Who may do what `needed` stands for, and what the person is.

    >>> refusal(Permission.APPROVE, frozenset({"viewer"}))
    'Needs the role approver; you are viewer.'
    """
    names = " or ".join(role.value for role in who_may(needed))
    return f"Needs the role {names}; you are {', '.join(sorted(held)) or 'without any role'}."


def roles(request: HttpRequest) -> frozenset[str] | None:
    """The roles of whoever asks, read once a request. None: nobody is signed in."""
    if not hasattr(request, "_fencepost_roles"):
        request._fencepost_roles = roles_of(request.user)
    return request._fencepost_roles


def actor(request: HttpRequest) -> str:
    """The name under which the timeline keeps what this person does."""
    return str(request.user.get_username())


def person(request: HttpRequest) -> dict[str, Any]:
    """For every template: the roles of whoever looks, in order; empty where nobody is signed in."""
    return {"person_roles": sorted(roles(request) or ()) if hasattr(request, "user") else []}


def _has_its_own_rule(view: Any, app_names: list[str]) -> bool:
    shown_by_rest = getattr(view, "cls", None) or getattr(view, "view_class", None)
    return "admin" in app_names or (isinstance(shown_by_rest, type) and issubclass(shown_by_rest, APIView))


def where_it_stood(request: HttpRequest) -> str:
    """The page of this site that a form was sent from, as the browser says; else the page its address belongs to."""
    said = request.headers.get("Referer", "")
    if url_has_allowed_host_and_scheme(said, {request.get_host()}):
        page = urlsplit(said)
        if _shows(page.path):
            return page.path + (f"?{page.query}" if page.query else "")
    return _page_of(request.path)


def _sign_in_first(request: HttpRequest) -> HttpResponse:
    """To the sign-in page and back. A form that was posted cannot be posted again, so back to where it stood."""
    if getattr(request, "htmx", False):
        here = request.htmx.current_url_abs_path or resolve_url(settings.LOGIN_REDIRECT_URL)
        messages.warning(request, "Your session has ended. Sign in, and you are back where you were.")
        location = f"{resolve_url(settings.LOGIN_URL)}?{urlencode({'next': here})}"
        return HttpResponse(status=401, headers={"HX-Redirect": location})
    if request.method in ("GET", "HEAD"):
        back = request.get_full_path() if _shows(request.path) else _page_of(request.path)
        return redirect_to_login(back, settings.LOGIN_URL)
    if (route := request.resolver_match) is not None and route.url_name != "sign-out":
        says = (
            "Your session has ended, and nothing was done. Sign in, and you are back where you were: then do it again."
        )
        messages.warning(request, says)
    return redirect_to_login(where_it_stood(request), settings.LOGIN_URL)


def _shows_nothing(request: HttpRequest, route: str) -> HttpResponse:
    """For an address that takes actions only, asked for like a page: where its page is. No right is refused here."""
    allowed = sorted(method for name, method in ROUTES if name == route)
    page = render(request, "405.html", {"page": _page_of(request.path)}, status=405)
    page["Allow"] = ", ".join(allowed)
    return page


def _page_of(path: str) -> str:
    """The nearest page above an address: `/plans/…/` of `/plans/…/approve/`."""
    parts = path.strip("/").split("/")
    above = (f"/{'/'.join(parts[:end])}/" for end in range(len(parts) - 1, 0, -1))
    return next((one for one in above if _shows(one)), resolve_url(settings.LOGIN_REDIRECT_URL))


def _shows(path: str) -> bool:
    """Whether an address of this site shows a page to whoever may see it."""
    try:
        route = resolve(path).url_name or ""
    except Resolver404:
        return False
    return (route, "GET") in ROUTES and route not in NEEDS_A_QUERY | {"sign-in"}


def _method(method: str | None) -> str:
    return "GET" if method in ("HEAD", "OPTIONS", None) else method


def refused(request: HttpRequest, route: str, says: str) -> HttpResponse:
    """The page of a refusal, which is counted (recovery_api.services.refusals)."""
    refusal_record(
        actor=actor(request),
        now=timezone.now(),
        says=f"{actor(request)} was refused {request.method} {route or request.path}. {says}",
        data={"route": route, "method": request.method, "path": request.path[:500]},
    )
    return render(request, "403.html", {"says": says, "route": route}, status=403)
