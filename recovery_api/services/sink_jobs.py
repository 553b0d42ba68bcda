"""Short jobs at a sink: read what it holds now, show or install its kit. Asked for here, done by a worker."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from recovery_api.domain.abilities import Ability
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.kinds import Kind, abilities_of, kind_get, kind_installed, options_parse
from recovery_api.models import EventKind, Intent, IntentAction, Sink
from recovery_api.selectors.registry import pipeline_of
from recovery_api.services.ends import options_check
from recovery_api.services.events import event_append
from recovery_api.services.intents import intent_create, intent_finish


def sink_read_request(sink: Sink, *, actor: str, now: datetime, wake: bool = True) -> Intent:
    """An intent to ask the sink for its fence, counter and claims now. Raises: Refused where it has none."""
    if Ability.FENCED not in abilities_of(sink.kind, sink.options):
        reason = f"a {sink.kind} has no fence, no counter and no claims"
        raise Refused(f"reading the fence of {sink.name}", reason, "Audit its pipeline instead.")
    return intent_create(IntentAction.SINK_READ, actor=actor, now=now, sink=sink, pipeline=pipeline_of(sink), wake=wake)


def sink_install_request(
    *,
    actor: str,
    now: datetime,
    is_shown_only: bool,
    sink: Sink | None = None,
    kind: str | None = None,
    options: Mapping[str, Any] | None = None,
    connection: str | None = None,
    grants: Mapping[str, str] | None = None,
    is_upgrade: bool = False,
    wake: bool = True,
) -> Intent:
    """An intent to show, install or upgrade the kit: for a registered sink, or for `options` before there is one.

    `kind`: of those options; not needed while one kind alone has a kit.
    `is_upgrade`: a kit of an earlier version is brought to this one in place. `connection`: a reference to whoever may install, in place of the sink's own; `grants`: trade -> login.
    Raises: BadInput, UnknownOption; Refused where the sink's kind has no kit.
    """
    if (sink is None) == (options is None):
        raise BadInput("sink install", "needs exactly one sink", "Name a registered sink, or give its options.")
    of = kind_get(sink.kind) if sink is not None else kind_get(kind) if kind else kind_installed()
    if of.installer is None:
        installable = kind_installed().name
        about = sink.name if sink is not None else f"a {of.name}"
        raise Refused(f"installing the kit for {about}", f"a {of.name} has none", f"Only {installable} has a kit.")
    if is_upgrade and is_shown_only:
        raise BadInput(
            "is_upgrade", "is not shown as SQL: its steps depend on what is found", "Leave one of the two out."
        )
    arguments: dict[str, Any] = {"is_shown_only": is_shown_only, "grants": _grants_check(of, grants or {})}
    if is_upgrade:
        arguments["is_upgrade"] = True
    if options is not None:
        arguments |= {"kind": of.name, "options": options_check("sink", of.name, options)}
    if connection:
        arguments["connection"] = options_parse(of, {"connection": connection})["connection"]
    return intent_create(
        IntentAction.SINK_INSTALL,
        actor=actor,
        now=now,
        sink=sink,
        pipeline=pipeline_of(sink) if sink else None,
        arguments=arguments,
        wake=wake,
    )


def sink_install_record(intent: Intent, result: Mapping[str, Any], now: datetime) -> None:
    """Ends the intent with what was shown, installed or upgraded; a change is an event. Raises: Refused where lost."""
    with transaction.atomic():
        intent_finish(intent, result, now)
        if not (result.get("installed") or result.get("upgraded")):
            return
        name = intent.sink.name if intent.sink else "a sink that is not registered yet"
        says = f"Sink kit {result['kit_version']} was installed in schema {result['schema']} for {name}."
        if result.get("upgraded"):
            says = (
                f"The sink kit in schema {result['schema']} for {name} was upgraded from version "
                f"{result['from_version']} to {result['kit_version']}."
            )
        data = {"schema": result["schema"], "granted": result["granted"], "intent": str(intent.id)}
        if intent.sink is not None:
            data |= {"end": "sink", "end_id": str(intent.sink.pk), "name": intent.sink.name}
        event_append(
            EventKind.SINK_INSTALLED, actor=intent.created_by, now=now, says=says, pipeline=intent.pipeline, data=data
        )


def _grants_check(kind: Kind, grants: Mapping[str, str]) -> dict[str, str]:
    trades = kind.installer.trades if kind.installer else ()
    for trade, login in grants.items():
        if trade not in trades or not isinstance(login, str) or not login or "\x00" in login or len(login) > 63:
            raise BadInput("grants", f"{trade!r} to {login!r} cannot be granted", f"Trades: {', '.join(trades)}.")
    return dict(grants)
