"""The one place where REST is refused: every view, before it runs, against `recovery_api.domain.access.ROUTES`."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.exceptions import MethodNotAllowed, NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from recovery_api.domain.access import ROUTES, Permission, is_allowed, roles_below, who_may
from recovery_api.exceptions import Problem
from recovery_api.selectors.people import roles_of
from recovery_api.services.refusals import refusal_record


class ByTable(BasePermission):
    """Asks the table with the route's name, the method, and the roles that person and token have together."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if request.method not in view.allowed_methods:
            raise MethodNotAllowed(request.method)
        route = request.resolver_match.url_name or ""
        if is_allowed(route, request.method, roles(request)):
            return True
        needed = ROUTES.get((route, "GET" if request.method == "HEAD" else request.method))
        refuse(request, needed)
        return False


def roles(request: Request) -> frozenset[str] | None:
    """The roles of whoever asks, no more than the token allows. None: nobody is signed in. Read once a request."""
    if not hasattr(request, "_fencepost_roles"):
        held = roles_of(request.user)
        limit = getattr(request.auth, "roles", None)
        request._fencepost_roles = (
            roles_below(held) & frozenset(limit) if held is not None and limit is not None else held
        )
    found: frozenset[str] | None = request._fencepost_roles
    return found


def actor(request: Request) -> str:
    """The name under which the timeline keeps what this person does."""
    return str(request.user.get_username())


def require(request: Request, needed: Permission) -> None:
    """For the few routes whose object decides: refuses as the table would. Raises: Problem."""
    held = roles(request)
    if not any(role.value in (held or ()) for role in who_may(needed)):
        refuse(request, needed)


def refuse(request: Request, needed: Permission | None) -> None:
    """Raises: NotAuthenticated, or Problem naming the roles that may; the refusal is counted."""
    held = roles(request)
    if held is None:
        raise NotAuthenticated()
    may = [role.value for role in who_may(needed)] if needed else []
    are = ", ".join(sorted(held)) or "without any role"
    limited = " with this token" if getattr(request.auth, "roles", None) is not None else ""
    says = f"Needs the role {' or '.join(may)}; you are {are}{limited}." if may else "Nobody may."
    route, who = request.resolver_match.url_name or "", actor(request)
    refusal_record(
        actor=who,
        now=timezone.now(),
        says=f"{who} was refused {request.method} {route}. {says}",
        data={"route": route, "method": request.method, "path": request.path[:500]},
    )
    raise Problem("not_permitted", says, remedy="Ask somebody who may, or for the role.", roles=may)
