"""Who may do what: roles, permissions, and one table of every route. Pages and REST ask here and nowhere else.

A route that is not in the table is refused to everybody: forgetting one closes a door, it does not open it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """A group of people. A person may be in several; what they may do is the union."""

    VIEWER = "viewer"
    """Sees everything but credentials; payloads masked."""
    OPERATOR = "operator"
    """Audits, plans, acknowledges omissions, freezes, and reads payloads whole."""
    APPROVER = "approver"
    """Approves and applies plans, steers and settles recoveries, lifts a freeze. What an operator may, too."""
    ADMIN = "admin"
    """Registers and configures sources, sinks, pipelines, and may freeze. Does not approve: that is another trade."""


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
    INCIDENT = "keep incidents"
    FREEZE = "freeze"
    UNFREEZE = "unfreeze"
    CONFIGURE = "configure"


OPERATING = frozenset(
    {
        Permission.READ_CONTENT,
        Permission.AUDIT,
        Permission.PLAN,
        Permission.ACKNOWLEDGE,
        Permission.INCIDENT,
        Permission.FREEZE,
    }
)
APPROVING = frozenset({Permission.APPROVE, Permission.APPLY, Permission.STEER, Permission.SETTLE, Permission.UNFREEZE})
PERMISSIONS_OF: Mapping[Role, frozenset[Permission]] = {
    Role.VIEWER: frozenset({Permission.SEE}),
    Role.OPERATOR: frozenset({Permission.SEE}) | OPERATING,
    Role.APPROVER: frozenset({Permission.SEE}) | OPERATING | APPROVING,
    Role.ADMIN: frozenset({Permission.SEE, Permission.CONFIGURE, Permission.INCIDENT, Permission.FREEZE}),
}


@dataclass(frozen=True, slots=True)
class Act:
    """What a person does, and where: by which pages' routes and which of REST. Each reads "route METHOD"."""

    name: str
    needs: Permission
    pages: tuple[str, ...]
    api: tuple[str, ...]


ACTS: tuple[Act, ...] = (
    Act("make a token", Permission.SIGNED_IN, ("token-list POST",), ("api-tokens POST",)),
    Act("revoke a token", Permission.SIGNED_IN, ("token-revoke POST",), ("api-token DELETE",)),
    Act("end all tokens", Permission.SIGNED_IN, ("token-end-all POST",), ("api-tokens DELETE",)),
    Act("see the fleet", Permission.SEE, ("overview GET",), ("api-statuses GET",)),
    Act("save a filter", Permission.SEE, ("filter-save POST",), ("api-saved-filters POST",)),
    Act("delete a filter", Permission.SEE, ("filter-delete POST",), ("api-saved-filter DELETE",)),
    Act("see alerts", Permission.SEE, ("alert-list GET", "alert GET"), ("api-alerts GET", "api-alert GET")),
    Act("read a runbook", Permission.SEE, ("runbook GET", "pipeline-runbook GET"), ("api-runbook GET",)),
    Act(
        "acknowledge an alert",
        Permission.ACKNOWLEDGE,
        ("alert-acknowledge POST", "alert-give-back POST"),
        ("api-alert-acknowledge POST", "api-alert-give-back POST"),
    ),
    Act(
        "mute alerts",
        Permission.ACKNOWLEDGE,
        ("mute-add POST", "mute-end POST"),
        ("api-mutes POST", "api-mute-end POST"),
    ),
    Act(
        "see destinations",
        Permission.SEE,
        ("destination-list GET", "destination GET"),
        ("api-destinations GET", "api-destination GET"),
    ),
    Act(
        "configure destinations",
        Permission.CONFIGURE,
        (
            "destination-list POST",
            "destination-edit POST",
            "destination-turn-on POST",
            "destination-turn-off POST",
            "destination-retire POST",
            "destination-test POST",
        ),
        (
            "api-destinations POST",
            "api-destination PATCH",
            "api-destination-turn-on POST",
            "api-destination-turn-off POST",
            "api-destination-retire POST",
            "api-destination-test POST",
        ),
    ),
    Act(
        "configure routes",
        Permission.CONFIGURE,
        ("route-add POST", "route-remove POST"),
        ("api-routes POST", "api-route DELETE"),
    ),
    Act("send a message again", Permission.ACKNOWLEDGE, ("delivery-again POST",), ("api-delivery-again POST",)),
    Act(
        "see the timeline",
        Permission.SEE,
        ("timeline GET", "pipeline-timeline GET"),
        ("api-events GET", "api-timeline GET"),
    ),
    Act("see the sources", Permission.SEE, ("source-list GET", "source GET"), ("api-sources GET", "api-source GET")),
    Act("see the sinks", Permission.SEE, ("sink-list GET", "sink GET"), ("api-sinks GET", "api-sink GET")),
    Act(
        "test what is not registered",
        Permission.CONFIGURE,
        ("source-add POST", "sink-add POST"),
        ("api-connection-tests POST",),
    ),
    Act("register a source", Permission.CONFIGURE, ("source-found POST",), ("api-sources POST",)),
    Act("register a sink", Permission.CONFIGURE, ("sink-found POST",), ("api-sinks POST",)),
    Act("test a source", Permission.CONFIGURE, ("source-test POST",), ("api-source-test POST",)),
    Act("test a sink", Permission.CONFIGURE, ("sink-test POST",), ("api-sink-test POST",)),
    Act("change a source", Permission.CONFIGURE, ("source-edit POST",), ("api-source PATCH",)),
    Act("change a sink", Permission.CONFIGURE, ("sink-edit POST",), ("api-sink PATCH",)),
    Act("retire a source", Permission.CONFIGURE, ("source-retire POST",), ("api-source-retire POST",)),
    Act("retire a sink", Permission.CONFIGURE, ("sink-retire POST",), ("api-sink-retire POST",)),
    Act(
        "install the kit",
        Permission.CONFIGURE,
        ("sink-install POST", "sink-install-first POST"),
        ("api-sink-install POST",),
    ),
    Act("read a sink", Permission.AUDIT, ("sink-read POST",), ("api-sink-read POST",)),
    Act("drill a sink", Permission.AUDIT, ("sink-drill POST",), ("api-sink-drills POST",)),
    Act("see drills", Permission.SEE, ("sink-drills GET",), ("api-sink-drills GET",)),
    Act("settle a sink", Permission.SETTLE, ("sink-settle POST",), ("api-sink-settle POST",)),
    Act("register a pipeline", Permission.CONFIGURE, ("pipeline-add POST",), ("api-pipelines POST",)),
    Act("see a pipeline", Permission.SEE, ("pipeline GET",), ("api-pipeline GET", "api-pipeline-status GET")),
    Act("change a pipeline", Permission.CONFIGURE, ("pipeline-edit POST",), ("api-pipeline PATCH",)),
    Act("retire a pipeline", Permission.CONFIGURE, ("pipeline-retire POST",), ("api-pipeline-retire POST",)),
    Act(
        "see incidents",
        Permission.SEE,
        ("incident-list GET", "incident GET", "incident-post-mortem GET"),
        ("api-incidents GET", "api-incident GET", "api-incident-timeline GET", "api-incident-post-mortem GET"),
    ),
    Act("open an incident", Permission.INCIDENT, ("incident-list POST",), ("api-incidents POST",)),
    Act("change an incident", Permission.INCIDENT, ("incident POST",), ("api-incident PATCH",)),
    Act("note in an incident", Permission.INCIDENT, ("incident-note POST",), ("api-incident-notes POST",)),
    Act("see freezes", Permission.SEE, ("freeze GET", "pipeline-freeze GET"), ("api-freezes GET",)),
    Act("freeze", Permission.FREEZE, ("freeze POST", "pipeline-freeze POST"), ("api-freezes POST",)),
    Act("lift a freeze", Permission.UNFREEZE, ("unfreeze POST", "pipeline-unfreeze POST"), ("api-freeze-lift POST",)),
    Act("ask for a verdict", Permission.AUDIT, ("pipeline-audit POST",), ("api-audits POST",)),
    Act("compare the target", Permission.AUDIT, ("pipeline-image POST",), ("api-images POST",)),
    Act("read a key", Permission.READ_CONTENT, ("image-value POST",), ("api-image-values POST",)),
    Act("ask for a plan", Permission.PLAN, ("pipeline-plan POST",), ("api-plans POST",)),
    Act("see an audit", Permission.SEE, ("audit GET", "findings GET"), ("api-audit GET", "api-audit-findings GET")),
    Act("see omissions", Permission.SEE, ("omissions GET",), ("api-pipeline-omissions GET",)),
    Act(
        "acknowledge an omission",
        Permission.ACKNOWLEDGE,
        ("omission-acknowledge POST",),
        ("api-pipeline-omissions POST",),
    ),
    Act(
        "withdraw omissions",
        Permission.ACKNOWLEDGE,
        ("omission-withdraw POST",),
        ("api-pipeline-omission-withdraw POST",),
    ),
    Act(
        "preview omissions",
        Permission.ACKNOWLEDGE,
        ("omission-preview-make POST",),
        ("api-pipeline-omission-previews POST",),
    ),
    Act("import omissions", Permission.ACKNOWLEDGE, ("omission-import POST",), ("api-pipeline-omission-imports POST",)),
    Act("see a preview", Permission.SEE, ("omission-preview GET",), ("api-pipeline-omission-preview GET",)),
    Act(
        "confirm omissions",
        Permission.ACKNOWLEDGE,
        ("omission-confirm POST",),
        ("api-pipeline-omission-confirm POST",),
    ),
    Act("read an event", Permission.READ_CONTENT, ("event-read POST",), ("api-pipeline-event-reads POST",)),
    Act(
        "take a content",
        Permission.READ_CONTENT,
        ("event-content GET", "event-look POST"),
        ("api-intent-content GET", "api-intent-sink-content GET"),
    ),
    Act("leave a finding", Permission.ACKNOWLEDGE, ("finding-leave POST",), ("api-pipeline-findings-leave POST",)),
    Act("see a plan", Permission.SEE, ("plan GET", "plan-events GET"), ("api-plan GET", "api-plan-findings GET")),
    Act("approve a plan", Permission.APPROVE, ("plan-approve POST",), ("api-plan-approval POST",)),
    Act("apply a plan", Permission.APPLY, ("plan-apply POST",), ("api-recoveries POST",)),
    Act("see a recovery", Permission.SEE, ("recovery GET",), ("api-recovery GET",)),
    Act(
        "steer a recovery",
        Permission.STEER,
        ("recovery-want POST",),
        ("api-recovery-pause POST", "api-recovery-resume POST", "api-recovery-stop POST"),
    ),
    Act("settle a recovery", Permission.SETTLE, ("recovery-settle POST",), ("api-recovery-settle POST",)),
    Act(
        "see a certificate",
        Permission.SEE,
        ("recovery-certificate GET", "recovery-certificate-json GET"),
        ("api-recovery-certificate GET",),
    ),
    Act("see work", Permission.SEE, ("work-list GET", "work GET"), ("api-intents GET", "api-intent GET")),
    Act("withdraw work", Permission.SEE, ("work-cancel POST",), ("api-intent-cancel POST",)),
)
"""Everything that can be done both on a page and by REST, with the one right that it needs on either."""


def _routes(of: Iterable[tuple[str, Permission]]) -> dict[tuple[str, str], Permission]:
    return {(route, method): needs for text, needs in of for route, _, method in [text.partition(" ")]}


PAGES: Mapping[tuple[str, str], Permission] = {
    **_routes((text, act.needs) for act in ACTS for text in act.pages),
    # For machines: whether the process lives, whether it can serve.
    ("healthz", "GET"): Permission.ANYONE,
    ("readyz", "GET"): Permission.ANYONE,
    ("metrics", "GET"): Permission.ANYONE,  # no person: the view asks for its own token or address
    # (name of the route, method) -> what it needs
    ("sign-in", "GET"): Permission.ANYONE,
    ("sign-in", "POST"): Permission.ANYONE,
    ("admin-sign-in", "GET"): Permission.ANYONE,
    ("admin-sign-in", "POST"): Permission.ANYONE,
    ("sign-out", "POST"): Permission.SIGNED_IN,
    # One's own account. A session only: a token changes no password.
    ("token-list", "GET"): Permission.SIGNED_IN,
    ("token-everybody", "GET"): Permission.CONFIGURE,
    ("password", "GET"): Permission.SIGNED_IN,
    ("admin-password", "GET"): Permission.SIGNED_IN,
    ("password", "POST"): Permission.SIGNED_IN,
    ("token-revoke", "GET"): Permission.SIGNED_IN,
    # The fleet and what is registered.
    ("source-add", "GET"): Permission.CONFIGURE,
    ("source-found", "GET"): Permission.CONFIGURE,
    ("source-test", "GET"): Permission.SEE,
    ("source-edit", "GET"): Permission.CONFIGURE,
    ("source-retire", "GET"): Permission.CONFIGURE,
    ("sink-add", "GET"): Permission.CONFIGURE,
    ("sink-found", "GET"): Permission.CONFIGURE,
    ("sink-test", "GET"): Permission.SEE,
    ("sink-edit", "GET"): Permission.CONFIGURE,
    ("sink-retire", "GET"): Permission.CONFIGURE,
    ("sink-install", "GET"): Permission.CONFIGURE,
    ("sink-install-first", "GET"): Permission.CONFIGURE,
    ("sink-reading", "GET"): Permission.SEE,
    ("sample-contents", "POST"): Permission.READ_CONTENT,
    # A pipeline.
    ("pipeline-add", "GET"): Permission.CONFIGURE,
    ("pipeline-work", "GET"): Permission.SEE,
    ("runbook-list", "GET"): Permission.SEE,
    ("pipeline-edit", "GET"): Permission.CONFIGURE,
    ("pipeline-retire", "GET"): Permission.CONFIGURE,
    # An incident: from the verdict to the certificate.
    ("finding", "GET"): Permission.SEE,
}
"""The pages' routes: those of acts, and those that only pages have. Forms show what a person may do by asking `is_allowed` for the route they would post to."""

API: Mapping[tuple[str, str], Permission] = {
    **_routes((text, act.needs) for act in ACTS for text in act.api),
    ("api-index", "GET"): Permission.SIGNED_IN,
    ("api-me", "GET"): Permission.SIGNED_IN,
    ("api-saved-filters", "GET"): Permission.SEE,
    ("api-changes", "GET"): Permission.SEE,
    ("api-problems", "GET"): Permission.ANYONE,
    ("api-schema", "GET"): Permission.ANYONE,
    ("api-docs", "GET"): Permission.ANYONE,
    ("api-kinds", "GET"): Permission.SEE,
    ("api-presets", "GET"): Permission.SEE,
    ("api-sink-drill-schedule", "POST"): Permission.CONFIGURE,
    ("api-source-purge-check", "GET"): Permission.SEE,
    ("api-pipelines", "GET"): Permission.SEE,
    ("api-pipeline-test", "POST"): Permission.CONFIGURE,
    ("api-pipeline-frontiers", "GET"): Permission.SEE,
    ("api-pipeline-headroom", "GET"): Permission.SEE,
    ("api-pipeline-history", "GET"): Permission.SEE,
    ("api-pipeline-retention", "GET"): Permission.SEE,
    ("api-pipeline-generations", "GET"): Permission.SEE,
    ("api-pipeline-claims", "GET"): Permission.SEE,
    ("api-pipeline-items", "GET"): Permission.SEE,
    ("api-pipeline-archive", "GET"): Permission.SEE,
    ("api-pipeline-ledger", "GET"): Permission.SEE,
    ("api-pipeline-ledger", "POST"): Permission.ACKNOWLEDGE,
    ("api-audits", "GET"): Permission.SEE,
    ("api-images", "GET"): Permission.SEE,
    ("api-image", "GET"): Permission.SEE,
    ("api-plans", "GET"): Permission.SEE,
    ("api-recoveries", "GET"): Permission.SEE,
    ("api-mutes", "GET"): Permission.SEE,
    ("api-routes", "GET"): Permission.SEE,
    ("api-route", "GET"): Permission.SEE,
    ("api-deliveries", "GET"): Permission.SEE,
    ("api-delivery", "GET"): Permission.SEE,
    ("api-tokens", "GET"): Permission.SIGNED_IN,
    ("api-token", "GET"): Permission.SIGNED_IN,
    **{("api-unknown", method): Permission.ANYONE for method in ("GET", "POST", "PUT", "PATCH", "DELETE")},
}
"""The REST routes: those of acts, and those that only REST has. `api-unknown` is every other address under `/api/v1/`: it answers that there is nothing."""

WITHDRAWING: Mapping[str, Permission] = {
    "connection_test": Permission.CONFIGURE,
    "audit": Permission.AUDIT,
    "image": Permission.AUDIT,
    "image_value": Permission.READ_CONTENT,
    "plan": Permission.PLAN,
    "recover": Permission.STEER,
    "settle": Permission.SETTLE,
    "sink_read": Permission.AUDIT,
    "sink_install": Permission.CONFIGURE,
    "event_read": Permission.READ_CONTENT,
    "omission_look_up": Permission.ACKNOWLEDGE,
    "archive_import": Permission.CONFIGURE,
    "drill": Permission.AUDIT,
}
"""What withdrawing queued work of an action needs, beyond its route, on pages and by REST: as much as asking for it did."""

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


def roles_below(roles: Iterable[str]) -> frozenset[str]:
    """The roles that give nothing that `roles` together do not give: what a token of theirs may have.

    >>> sorted(roles_below(["approver"])), sorted(roles_below(["admin"])), sorted(roles_below([]))
    (['approver', 'operator', 'viewer'], ['admin', 'viewer'], [])
    """
    held = permissions_of(roles)
    return frozenset(role.value for role, granted in PERMISSIONS_OF.items() if granted <= held)


def withdrawing_needs(action: str) -> Permission:
    """What withdrawing queued work of `action` needs; of an action that is not listed what nobody has by accident."""
    return WITHDRAWING.get(action, Permission.CONFIGURE)


def who_may(permission: Permission) -> tuple[Role, ...]:
    """The roles that have `permission`, for a refusal that says whom to ask."""
    return tuple(role for role, granted in PERMISSIONS_OF.items() if permission in granted)
