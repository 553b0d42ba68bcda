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
    ("admin-sign-in", "GET"): Permission.ANYONE,
    ("admin-sign-in", "POST"): Permission.ANYONE,
    ("sign-out", "POST"): Permission.SIGNED_IN,
    # One's own account: a token never gives more than its person has.
    ("token-list", "GET"): Permission.SIGNED_IN,
    ("token-list", "POST"): Permission.SIGNED_IN,
    ("token-everybody", "GET"): Permission.CONFIGURE,
    ("token-revoke", "GET"): Permission.SIGNED_IN,
    ("token-revoke", "POST"): Permission.SIGNED_IN,
    # The fleet and what is registered.
    ("overview", "GET"): Permission.SEE,
    ("timeline", "GET"): Permission.SEE,
    ("source-list", "GET"): Permission.SEE,
    ("source-add", "GET"): Permission.CONFIGURE,
    ("source-add", "POST"): Permission.CONFIGURE,
    ("source-found", "GET"): Permission.CONFIGURE,
    ("source-found", "POST"): Permission.CONFIGURE,
    ("source", "GET"): Permission.SEE,
    ("source-test", "GET"): Permission.SEE,
    ("source-test", "POST"): Permission.CONFIGURE,
    ("source-edit", "GET"): Permission.CONFIGURE,
    ("source-edit", "POST"): Permission.CONFIGURE,
    ("source-retire", "GET"): Permission.CONFIGURE,
    ("source-retire", "POST"): Permission.CONFIGURE,
    ("sink-list", "GET"): Permission.SEE,
    ("sink-add", "GET"): Permission.CONFIGURE,
    ("sink-add", "POST"): Permission.CONFIGURE,
    ("sink-found", "GET"): Permission.CONFIGURE,
    ("sink-found", "POST"): Permission.CONFIGURE,
    ("sink", "GET"): Permission.SEE,
    ("sink-test", "GET"): Permission.SEE,
    ("sink-test", "POST"): Permission.CONFIGURE,
    ("sink-edit", "GET"): Permission.CONFIGURE,
    ("sink-edit", "POST"): Permission.CONFIGURE,
    ("sink-retire", "GET"): Permission.CONFIGURE,
    ("sink-retire", "POST"): Permission.CONFIGURE,
    ("sink-install", "GET"): Permission.CONFIGURE,
    ("sink-install", "POST"): Permission.CONFIGURE,
    ("sink-install-first", "GET"): Permission.CONFIGURE,
    ("sink-install-first", "POST"): Permission.CONFIGURE,
    ("sink-read", "POST"): Permission.AUDIT,
    ("sink-reading", "GET"): Permission.SEE,
    ("sink-drill", "POST"): Permission.AUDIT,
    ("sink-drills", "GET"): Permission.SEE,
    ("sink-settle", "POST"): Permission.SETTLE,
    ("sample-contents", "POST"): Permission.READ_CONTENT,
    # A pipeline.
    ("pipeline-add", "GET"): Permission.CONFIGURE,
    ("pipeline-add", "POST"): Permission.CONFIGURE,
    ("pipeline", "GET"): Permission.SEE,
    ("pipeline-work", "GET"): Permission.SEE,
    ("pipeline-timeline", "GET"): Permission.SEE,
    ("pipeline-edit", "GET"): Permission.CONFIGURE,
    ("pipeline-edit", "POST"): Permission.CONFIGURE,
    ("pipeline-retire", "GET"): Permission.CONFIGURE,
    ("pipeline-retire", "POST"): Permission.CONFIGURE,
    ("pipeline-audit", "POST"): Permission.AUDIT,
    ("pipeline-plan", "POST"): Permission.PLAN,
    # An incident: from the verdict to the certificate.
    ("audit", "GET"): Permission.SEE,
    ("findings", "GET"): Permission.SEE,
    ("finding", "GET"): Permission.SEE,
    ("event-read", "POST"): Permission.READ_CONTENT,
    ("event-content", "GET"): Permission.READ_CONTENT,
    ("plan", "GET"): Permission.SEE,
    ("plan-events", "GET"): Permission.SEE,
    ("plan-approve", "POST"): Permission.APPROVE,
    ("plan-apply", "POST"): Permission.APPLY,
    ("recovery", "GET"): Permission.SEE,
    ("recovery-want", "POST"): Permission.STEER,
    ("recovery-settle", "POST"): Permission.SETTLE,
    ("recovery-certificate", "GET"): Permission.SEE,
    ("recovery-certificate-json", "GET"): Permission.SEE,
    ("work-list", "GET"): Permission.SEE,
    ("work", "GET"): Permission.SEE,
    ("work-cancel", "POST"): Permission.AUDIT,
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
    ("api-source", "PATCH"): Permission.CONFIGURE,
    ("api-source-retire", "POST"): Permission.CONFIGURE,
    ("api-source-test", "POST"): Permission.CONFIGURE,
    ("api-sinks", "GET"): Permission.SEE,
    ("api-sinks", "POST"): Permission.CONFIGURE,
    ("api-sink", "GET"): Permission.SEE,
    ("api-sink", "PATCH"): Permission.CONFIGURE,
    ("api-sink-retire", "POST"): Permission.CONFIGURE,
    ("api-sink-read", "POST"): Permission.AUDIT,
    ("api-sink-drills", "GET"): Permission.SEE,
    ("api-sink-drills", "POST"): Permission.AUDIT,
    ("api-sink-drill-schedule", "POST"): Permission.CONFIGURE,
    ("api-sink-install", "POST"): Permission.CONFIGURE,
    ("api-sink-test", "POST"): Permission.CONFIGURE,
    ("api-sink-settle", "POST"): Permission.SETTLE,
    ("api-statuses", "GET"): Permission.SEE,
    ("api-pipelines", "GET"): Permission.SEE,
    ("api-pipelines", "POST"): Permission.CONFIGURE,
    ("api-pipeline", "GET"): Permission.SEE,
    ("api-pipeline", "PATCH"): Permission.CONFIGURE,
    ("api-pipeline-retire", "POST"): Permission.CONFIGURE,
    ("api-pipeline-event-reads", "POST"): Permission.READ_CONTENT,
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
    ("api-plan-findings", "GET"): Permission.SEE,
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
    ("api-intent-content", "GET"): Permission.READ_CONTENT,
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
