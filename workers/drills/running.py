"""The drill intent: each drill in a fresh namespace of the sink, which is gone when it ends, however it ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.utils import timezone

from recovery_api.domain.abilities import Ability
from recovery_api.domain.capabilities import Capability
from recovery_api.domain.drills import TITLES, DrillName, DrillResult, drill_names, not_applicable
from recovery_api.domain.errors import Refused
from recovery_api.domain.kinds import abilities_of
from recovery_api.domain.strategies import strategy_of
from recovery_api.domain.strategies.fenced import FENCED
from recovery_api.models import Intent, Pipeline, Sink
from recovery_api.selectors.freezes import freeze_of, freeze_says
from recovery_api.services.drills import drill_record
from workers.connectors.protocols.appended import AppendedNamespace
from workers.connectors.protocols.fence import DrillNamespace
from workers.connectors.registry import delivery_make
from workers.connectors.tested import capability_tested
from workers.drills.appended import drill_append
from workers.drills.script import drill_play
from workers.faults import Point, crash_point
from workers.recovery.ends import capability_of


def drill_run(intent: Intent, report: Any) -> None:
    """Play the intent's drills at its sink and record them; the intent ends with them.

    A worker that died in a drill left its namespace: the next one at this sink takes it away first.
    Raises: AccessDenied where the login may make no namespace (the remedy says what to grant); transient errors.
    """
    if intent.sink is None:
        raise Refused("drilling", "no sink is named", "Name one.")
    _frozen_check(intent)
    kind, options = intent.sink.kind, intent.sink.options
    report(step="asking the sink what it can do")
    capability = _capability(intent.sink, intent.pipeline)
    strategy = strategy_of(capability)
    has_namespace = Ability.DRILLED in abilities_of(kind, options)
    preference = intent.pipeline.options.get("failure_preference") if intent.pipeline else None
    names = drill_names(intent.arguments.get("names") or [])
    results: list[DrillResult] = []
    for done, name in enumerate(names):
        report(step=TITLES[name].lower(), done=done, total=len(names), unit="drills")
        proves = strategy.drills.get(name) or FENCED.drills[name]
        refusal = not_applicable(name, strategy, capability, has_namespace=has_namespace, preference=preference)
        if refusal is not None:
            results.append(replace(refusal, proves=proves))
            continue
        _frozen_check(intent)
        with delivery_make(kind, options, Ability.DRILLED).drill_namespace() as namespace:
            crash_point(Point.DURING_DRILL)
            results.append(replace(_play(name, namespace), proves=proves))
        report.check()
    drill_record(intent.drill, results, intent=intent, now=timezone.now())


def _frozen_check(intent: Intent) -> None:
    """A drill claims and fires, if only in a namespace of its own. Raises: Refused where nothing may be sent."""
    if (freeze := freeze_of(intent.pipeline_id)) is not None:
        problem, remedy = freeze_says(freeze), "Drill it once that is lifted."
        raise Refused(f"drilling sink {intent.sink.name if intent.sink else ''}", problem, remedy)


def _capability(sink: Sink, pipeline: Pipeline | None) -> Capability:
    """What a recovery by way of this sink rests on: the sink, or the pair where it is one end of two."""
    if pipeline is not None and pipeline.delivery_id is not None:
        return capability_of(pipeline)
    return capability_tested(sink.kind, sink.options)


def _play(name: DrillName, namespace: DrillNamespace | AppendedNamespace) -> DrillResult:
    if isinstance(namespace, AppendedNamespace):
        return drill_append(name, namespace)
    return drill_play(name, namespace.sink, namespace.notes)
