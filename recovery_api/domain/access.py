"""Who may do what: roles, permissions, and one table of every route. Pages and REST ask here and nowhere else.

A route that is not in the table is refused to everybody: forgetting one closes a door, it does not open it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum


class Role(StrEnum):
    """A group of people. A person may be in several; what they may do is the union."""

    VIEWER = "viewer"
    """Sees everything but credentials; payloads masked."""
    OPERATOR = "operator"
    """Audits, plans, acknowledges omissions, and reads payloads whole."""
    APPROVER = "approver"
    """Approves and applies plans, and steers and settles recoveries. What an operator may, too."""
    ADMIN = "admin"
    """Registers and configures sources, sinks, pipelines. Does not approve: that is another trade."""


class Permission(StrEnum):
    """What a route needs. `ANYONE` needs no sign-in; `SIGNED_IN` needs no role."""

    ANYONE = "anyone"
    SIGNED_IN = "signed in"
    SEE = "see"
    READ_CONTENT = "read content"
    AUDIT = "audit"
    PLAN = "plan"
    ACKNOWLEDGE = "acknowledge"
    APPROVE = "approve"
    APPLY = "apply"
    STEER = "steer"
    SETTLE = "settle"
    CONFIGURE = "configure"


OPERATING = frozenset({Permission.READ_CONTENT, Permission.AUDIT, Permission.PLAN, Permission.ACKNOWLEDGE})
APPROVING = frozenset({Permission.APPROVE, Permission.APPLY, Permission.STEER, Permission.SETTLE})
PERMISSIONS_OF: Mapping[Role, frozenset[Permission]] = {
    Role.VIEWER: frozenset({Permission.SEE}),
    Role.OPERATOR: frozenset({Permission.SEE}) | OPERATING,
    Role.APPROVER: frozenset({Permission.SEE}) | OPERATING | APPROVING,
    Role.ADMIN: frozenset({Permission.SEE, Permission.CONFIGURE}),
}

PAGES: Mapping[tuple[str, str], Permission] = {
    # (name of the route, method) -> what it needs
    ("sign-in", "GET"): Permission.ANYONE,
    ("sign-in", "POST"): Permission.ANYONE,
    ("sign-out", "POST"): Permission.SIGNED_IN,
}
"""The pages' routes. Forms show what a person may do by asking `is_allowed` for the route they would post to."""

API: Mapping[tuple[str, str], Permission] = {
    ("api-index", "GET"): Permission.SIGNED_IN,
    ("api-me", "GET"): Permission.SIGNED_IN,
    ("api-problems", "GET"): Permission.ANYONE,
    ("api-schema", "GET"): Permission.ANYONE,
    ("api-docs", "GET"): Permission.ANYONE,
    ("api-kinds", "GET"): Permission.SEE,
    ("api-connection-tests", "POST"): Permission.CONFIGURE,
    ("api-sources", "GET"): Permission.SEE,
    ("api-sources", "POST"): Permission.CONFIGURE,
    ("api-source", "GET"): Permission.SEE,
    ("api-source-test", "POST"): Permission.CONFIGURE,
    ("api-sinks", "GET"): Permission.SEE,
    ("api-sinks", "POST"): Permission.CONFIGURE,
    ("api-sink", "GET"): Permission.SEE,
    ("api-sink-test", "POST"): Permission.CONFIGURE,
    ("api-sink-settle", "POST"): Permission.SETTLE,
    ("api-statuses", "GET"): Permission.SEE,
    ("api-pipelines", "GET"): Permission.SEE,
    ("api-pipelines", "POST"): Permission.CONFIGURE,
    ("api-pipeline", "GET"): Permission.SEE,
    ("api-pipeline-test", "POST"): Permission.CONFIGURE,
    ("api-pipeline-status", "GET"): Permission.SEE,
    ("api-pipeline-frontiers", "GET"): Permission.SEE,
    ("api-pipeline-generations", "GET"): Permission.SEE,
    ("api-pipeline-claims", "GET"): Permission.SEE,
    ("api-pipeline-omissions", "GET"): Permission.SEE,
    ("api-pipeline-omissions", "POST"): Permission.ACKNOWLEDGE,
    ("api-pipeline-omission-withdraw", "POST"): Permission.ACKNOWLEDGE,
    ("api-audits", "GET"): Permission.SEE,
    ("api-audits", "POST"): Permission.AUDIT,
    ("api-audit", "GET"): Permission.SEE,
    ("api-audit-findings", "GET"): Permission.SEE,
    ("api-plans", "GET"): Permission.SEE,
    ("api-plans", "POST"): Permission.PLAN,
    ("api-plan", "GET"): Permission.SEE,
    ("api-plan-approval", "POST"): Permission.APPROVE,
    ("api-recoveries", "GET"): Permission.SEE,
    ("api-recoveries", "POST"): Permission.APPLY,
    ("api-recovery", "GET"): Permission.SEE,
    ("api-recovery-pause", "POST"): Permission.STEER,
    ("api-recovery-resume", "POST"): Permission.STEER,
    ("api-recovery-stop", "POST"): Permission.STEER,
    ("api-recovery-settle", "POST"): Permission.SETTLE,
    ("api-recovery-certificate", "GET"): Permission.SEE,
    ("api-events", "GET"): Permission.SEE,
    ("api-intents", "GET"): Permission.SEE,
    ("api-intent", "GET"): Permission.SEE,
    ("api-intent-cancel", "POST"): Permission.SEE,
    ("api-tokens", "GET"): Permission.SIGNED_IN,
    ("api-tokens", "POST"): Permission.SIGNED_IN,
    ("api-token", "GET"): Permission.SIGNED_IN,
    ("api-token", "DELETE"): Permission.SIGNED_IN,
    **{("api-unknown", method): Permission.ANYONE for method in ("GET", "POST", "PUT", "PATCH", "DELETE")},
}
"""The REST routes. `api-unknown` is every other address under `/api/v1/`: it answers that there is nothing."""

WITHDRAWING: Mapping[str, Permission] = {
    "connection_test": Permission.CONFIGURE,
    "audit": Permission.AUDIT,
    "plan": Permission.PLAN,
    "recover": Permission.STEER,
    "settle": Permission.SETTLE,
    "sink_read": Permission.AUDIT,
    "sink_install": Permission.CONFIGURE,
    "event_read": Permission.READ_CONTENT,
    "drill": Permission.AUDIT,
}
"""What withdrawing queued work of an action needs, beyond its route: as much as asking for it did."""

ROUTES: Mapping[tuple[str, str], Permission] = {**PAGES, **API}
"""The authority, tested whole: every route of the project is here, and every role is tried on every one."""


def permissions_of(roles: Iterable[str]) -> frozenset[Permission]:
    """What these roles may do together. A name that is no role adds nothing."""
    named = set(roles)
    return frozenset().union(*(granted for role, granted in PERMISSIONS_OF.items() if role.value in named))


def is_allowed(route: str, method: str, roles: Iterable[str] | None) -> bool:
    """Whether somebody with `roles` may call `route`. `roles` None: nobody is signed in. HEAD and OPTIONS are GET."""
    needed = ROUTES.get((route, "GET" if method in ("HEAD", "OPTIONS") else method))
    if needed is None:
        return False
    if needed == Permission.ANYONE:
        return True
    if roles is None:
        return False
    return needed == Permission.SIGNED_IN or needed in permissions_of(roles)


def who_may(permission: Permission) -> tuple[Role, ...]:
    """The roles that have `permission`, for a refusal that says whom to ask."""
    return tuple(role for role, granted in PERMISSIONS_OF.items() if permission in granted)
