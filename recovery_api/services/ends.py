"""Sources and sinks: registered with options parsed strictly, tested by a worker, never connected to from here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from django.db import transaction

from recovery_api.domain.abilities import DELIVERIES
from recovery_api.domain.commands import command_line
from recovery_api.domain.errors import AccessDenied, BadInput, Refused
from recovery_api.domain.kinds import abilities_of, kind_get, kind_names, options_parse, points_of
from recovery_api.domain.visible import visible
from recovery_api.models import WAITING_STATES, End, EventKind, Intent, IntentAction, Plan, Sink, Source
from recovery_api.selectors.pairs import pipeline_allows
from recovery_api.selectors.plans import is_id
from recovery_api.selectors.recoveries import plan_strategy
from recovery_api.selectors.registry import pipelines_of
from recovery_api.selectors.versions import version_check
from recovery_api.services.constraints import constraints_mapped
from recovery_api.services.event_reads import sample_contents_keep
from recovery_api.services.events import event_append
from recovery_api.services.grounds import audits_void
from recovery_api.services.intents import intent_create, intent_finish
from recovery_api.services.plans import plan_lapse, plans_lapse
from recovery_api.services.presets import preset_check
from recovery_api.services.retirement import unfinished_refuse

E = TypeVar("E", bound=End)

REPORT_FIELDS = ("is_usable", "facts", "problems", "weaknesses")
CONTENT_START = "content_start"


def options_check(end: str, kind_name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The given options as parsed, without defaults, so that a later default reaches ends registered before.

    Raises: UnknownOption, BadInput (also where the kind or the preset is one of the other end).
    """
    kind = kind_get(kind_name, f"{end}.kind")
    if kind.end != end:
        raise BadInput(
            f"{end}.kind", f"{kind_name} is a kind of {kind.end}", f"Kinds of {end}: {', '.join(kind_names(end))}."
        )
    parsed = options_parse(kind, options)
    preset_check(end, kind_name, parsed)
    return {name: parsed[name] for name in options if parsed[name] is not None}


def source_create(
    name: str,
    kind: str,
    options: Mapping[str, Any],
    *,
    actor: str,
    now: datetime,
    report: Mapping[str, Any] | None = None,
) -> Source:
    """A registered source; `report` is a connection test that ran before it. Raises: BadInput, UnknownOption."""
    return _end_create(Source, name, kind, options, actor=actor, now=now, report=report)


def sink_create(
    name: str,
    kind: str,
    options: Mapping[str, Any],
    *,
    actor: str,
    now: datetime,
    report: Mapping[str, Any] | None = None,
) -> Sink:
    """A registered sink; `report` is a connection test that ran before it. Raises: BadInput, UnknownOption."""
    return _end_create(Sink, name, kind, options, actor=actor, now=now, report=report)


def source_update(
    source: Source, options: Mapping[str, Any], *, actor: str, now: datetime, read: frozenset[str] | None = None
) -> Source:
    """The source with other options; its test report is dropped and waiting plans of its pipelines lapse. Under another
    mapping or filter its audits are void: they judged other rows, and certify none of these.

    `read`: the versions that this is a change of (selectors.versions); None: of any.

    Raises: BadInput, UnknownOption, Outdated; Refused where it is retired, or a recovery that reads it is unfinished.
    """
    return _end_update(source, options, actor=actor, now=now, read=read)


def sink_update(
    sink: Sink, options: Mapping[str, Any], *, actor: str, now: datetime, read: frozenset[str] | None = None
) -> Sink:
    """The sink with other options; its test report is dropped and waiting plans of its pipelines lapse. Under another
    mapping or filter its audits are void.

    What it said before is still remembered: options that lead to another database are found out as a restored sink.
    """
    return _end_update(sink, options, actor=actor, now=now, read=read)


def connection_test_request(
    *,
    actor: str,
    now: datetime,
    source: Source | None = None,
    sink: Sink | None = None,
    end: str | None = None,
    kind: str | None = None,
    options: Mapping[str, Any] | None = None,
    wake: bool = True,
) -> Intent:
    """An intent to test one end: a registered one, or what `end`, `kind` and `options` describe, before it is one.

    Raises: BadInput, UnknownOption.
    """
    if (source is not None) + (sink is not None) + (end is not None) != 1:
        raise BadInput("connection test", "needs exactly one end", "Name a source, a sink, or a kind with options.")
    arguments: dict[str, Any] = {}
    if end is not None:
        checked = options_check(end, kind or "", options or {})
        arguments = {"end": end, "kind": kind, "options": checked}
    return intent_create(
        IntentAction.CONNECTION_TEST,
        actor=actor,
        now=now,
        source=source,
        sink=sink,
        arguments=arguments,
        wake=wake,
    )


def connection_test_record(
    intent: Intent, report: Mapping[str, Any], now: datetime, capability: Mapping[str, Any] | None = None
) -> None:
    """Ends the intent with what the test found, and keeps it with the end it was about, in one transaction.

    `report` has the fields of a ConnectionReport. How its sample's contents begin is kept apart, where roles are asked
    first, and for a short while only. Raises: Refused where the intent is no longer ours.
    """
    whole = {**{name: report[name] for name in REPORT_FIELDS}, "capability": dict(capability) if capability else None}
    whole["points"] = _points(intent, whole["capability"], now)
    sample = report.get("sample")
    starts = [{name: row.get(name) for name in ("coordinate", CONTENT_START)} for row in (sample or {}).get("rows", [])]
    if sample is not None:
        rows = [{name: value for name, value in row.items() if name != CONTENT_START} for row in sample["rows"]]
        sample = {**sample, "rows": rows, "intent": str(intent.pk), "asked_by": intent.created_by}
    whole["sample"] = sample
    with transaction.atomic():
        if any(row[CONTENT_START] is not None for row in starts):
            sample_contents_keep(intent, starts, now)
        intent_finish(intent, whole, now)
        if intent.source_id:
            Source.objects.filter(id=intent.source_id).update(report=whole, tested_at=now)
        if intent.sink_id:
            Sink.objects.filter(id=intent.sink_id).update(report=whole, tested_at=now, capability=whole["capability"])
            _plans_void(Sink.objects.get(id=intent.sink_id), whole, now)


def _points(intent: Intent, capability: Mapping[str, Any] | None, now: datetime) -> list[dict[str, Any]]:
    """Of a sink, what is declared and what was tested, point by point; of a source nothing."""
    end = intent.sink
    kind, options = (end.kind, end.options) if end else (intent.arguments.get("kind"), intent.arguments.get("options"))
    if kind is None or (end is None and intent.arguments.get("end") != "sink"):
        return []
    return [one.as_row(now.isoformat()) for one in points_of(kind, options or {}, capability)]


def _plans_void(sink: Sink, report: Mapping[str, Any], now: datetime) -> None:
    """Plans made for another strategy than their pipeline's ends allow now lapse: none is weakened to what is left."""
    facts, found = report["facts"], report["capability"]
    is_denied = AccessDenied.code in (facts.get("code"), (facts.get("error") or {}).get("code"))
    if not is_denied and (found is None or "strategy" not in found):
        return  # not reached, perhaps: nothing is known of what it can do
    says = (
        "The sink's record may not be read any more." if found is None else "The sink's tested capability is another."
    )
    for pipeline in pipelines_of(sink).select_related("sink", "delivery"):
        allows = "" if found is None else found["strategy"]
        if found is not None and pipeline.delivery is not None:
            if (joined := pipeline_allows(pipeline)) is None:
                continue  # the other end was not tested: nothing is known of what the two can do
            allows = joined.strategy.name
        for plan in Plan.objects.filter(pipeline=pipeline, state__in=WAITING_STATES):
            if plan_strategy(plan).name != allows:
                plan_lapse(plan, because=says, actor="connection test", now=now)


def _end_create(
    model: type[E],
    name: str,
    kind: str,
    options: Mapping[str, Any],
    *,
    actor: str,
    now: datetime,
    report: Mapping[str, Any] | None,
) -> E:
    word = model._meta.model_name or ""
    checked = options_check(word, kind, options)
    name_check(word, name)
    more = {"capability": report.get("capability")} if report and model is Sink else {}
    special = {f"a_{word}_name_is_registered_once": partial(_taken, word, name)}
    with constraints_mapped(f"registering {word} {name}", special), transaction.atomic():
        end = model._default_manager.create(
            name=name,
            kind=kind,
            options=checked,
            report=dict(report) if report else None,
            tested_at=now if report else None,
            created_at=now,
            created_by=actor,
            **more,
        )
        says = f"{word.capitalize()} {name}, kind {kind}, was registered{'' if report else ' untested'}."
        data = {**_about(end), "options": checked}
        event_append(EventKind.END_REGISTERED, actor=actor, now=now, says=says, data=data)
    return end


def _end_update(
    end: E, options: Mapping[str, Any], *, actor: str, now: datetime, read: frozenset[str] | None = None
) -> E:
    word = end._meta.model_name or ""
    checked = options_check(word, end.kind, options)
    action = f"changing {word} {end.name}"
    with transaction.atomic():
        locked = type(end)._default_manager.select_for_update(no_key=True).get(pk=end.pk)
        if locked.retired_at is not None:
            raise Refused(action, "it was retired", f"Register a new {word}.")
        version_check(locked, read)
        pipelines = list(pipelines_of(locked).order_by("pk"))
        unfinished_refuse(action, pipelines)
        before = locked.options
        changed = sorted(n for n in {*before, *checked} if before.get(n) != checked.get(n))
        if not changed:
            return locked
        fed = [one for one in pipelines if isinstance(locked, Sink) and one.delivery_id == locked.pk]
        if fed and not abilities_of(locked.kind, checked) & DELIVERIES:
            reason = f"pipeline {fed[0].name} is delivered through it, and under these options it is a record alone"
            raise Refused(action, reason, "Leave it a sink that can be sent to, or retire the pipeline first.")
        locked.options, locked.report, locked.tested_at, locked.updated_at = checked, None, None, now
        fields = ["options", "report", "tested_at", "updated_at"]
        if isinstance(locked, Sink):
            locked.capability = None
            fields.append("capability")
        locked.save(update_fields=fields)
        says = f"Options of {word} {locked.name} changed: {', '.join(changed)}."
        data = {
            **_about(locked),
            "before": {name: before.get(name) for name in changed},
            "after": {name: checked.get(name) for name in changed},
        }
        for pipeline in pipelines or [None]:
            event_append(EventKind.END_CHANGED, actor=actor, now=now, says=says, pipeline=pipeline, data=data)
            if pipeline is not None:
                plans_lapse(pipeline, because=says, actor=actor, now=now)
        unfinished_refuse(action, pipelines)  # again: one may have begun from a plan that waited until now
        if set(changed) & {option.name for option in kind_get(locked.kind).options if option.decides}:
            audits_void([one for one in pipelines if one not in fed], says, now)
    return locked


def _about(end: End) -> dict[str, str]:
    """By what an end's events are found: its id, for a name may belong to another one later."""
    return {"end": end._meta.model_name or "", "end_id": str(end.pk), "name": end.name}


def _taken(word: str, name: str) -> BadInput:
    remedy = f"Choose another, or see it: {command_line(f'{word}s', 'show', name)}."
    return BadInput(f"{word}.name", f"{name!r} is taken", remedy)


def name_check(what: str, name: str) -> None:
    """Raises: BadInput for a name nobody could type, link, or tell from an id or a lane."""
    if any(0xD800 <= ord(c) < 0xE000 for c in name):
        raise BadInput(f"{what}.name", f"{name!a} is no text", "Write it in whole characters.")
    if visible(name) != name:
        raise BadInput(f"{what}.name", f"{visible(name)!r} holds a character that is not to be read", "Leave it out.")
    if name in (".", ".."):
        raise BadInput(f"{what}.name", f"{name!r} cannot be an address", "Choose a name a person would say.")
    if is_id(name):
        raise BadInput(f"{what}.name", f"{name!r} is spelled like an id", "Choose a name a person would say.")
    if not name.strip() or name != name.strip() or len(name) > 200 or any(ord(c) < 32 or c in "/=," for c in name):
        raise BadInput(f"{what}.name", f"{name!r} cannot be a name", "1 to 200 characters, no slash, comma or equals.")
