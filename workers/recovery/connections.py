"""A connection test: open one end, say what is there. Changes nothing but the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.utils import timezone

from recovery_api.domain.errors import FencepostError
from recovery_api.domain.kinds import kind_get
from recovery_api.domain.strategies import strategy_of
from recovery_api.models import Intent
from recovery_api.presets import preset_get
from recovery_api.services.ends import connection_test_record
from workers.connectors.registry import sink_make, source_make
from workers.connectors.tested import capability_tested


def end_test(intent: Intent, report: Any) -> None:
    """Test the intent's end and end the intent with what was found. An end that cannot be reached is a finding too."""
    end = intent.source or intent.sink
    is_sink = intent.sink is not None or intent.arguments.get("end") == "sink"
    kind = end.kind if end else intent.arguments["kind"]
    options = end.options if end else intent.arguments["options"]
    report(step="connecting")
    capability = None
    try:
        if is_sink:
            found = asdict(sink_make(kind, options).test())
            if found["is_usable"]:
                capability = capability_row(kind, options)
        else:
            found = asdict(source_make(kind, options).test())
    except FencepostError as error:
        found = {"is_usable": False, "facts": {"code": error.code}, "problems": [str(error)], "weaknesses": []}
    if options.get("preset"):
        found["problems"] = [*found["problems"], *table_compared(options, found)]
    connection_test_record(intent, found, timezone.now(), capability)


def capability_row(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What was tested, beside what the kind declares, and what a recovery of it is and may say: the weaker counts."""
    tested = capability_tested(kind, options)
    strategy = strategy_of(tested)
    return {
        **asdict(tested),
        "declared": kind_get(kind).archetype,
        "strategy": strategy.name,
        "recovery": strategy.sentence(),
    }


def table_compared(options: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """What the preset's table has and this one has not, where the table cannot serve as it is.

    A table that serves is nobody's business: a preset is no more than options.
    """
    columns = found["facts"].get("columns")
    if found["is_usable"] or columns is None:
        return []
    preset = preset_get(str(options["preset"]))
    said = []
    if lacking := preset.lacking(columns):
        place = f"{options['schema']}.{options['table']}" if options.get("schema") else options["table"]
        none = len(lacking) == len(preset.columns)
        said.append(
            f"{place} is not the table of {preset.library}: it has none of its columns."
            if none
            else f"{place} is not the table of {preset.library} as the preset has it: it lacks {', '.join(lacking)}."
        )
    return said
