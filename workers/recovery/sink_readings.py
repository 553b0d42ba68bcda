"""Asking a sink what it holds now, and giving it the kit: short jobs whose result a person reads."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.utils import timezone

from recovery_api.domain.abilities import Ability
from recovery_api.domain.errors import Refused
from recovery_api.domain.kinds import abilities_of, kind_get, kind_installed, options_parse
from recovery_api.models import Intent
from recovery_api.services.sink_jobs import sink_install_record
from recovery_api.services.sinks import memory_of, sink_remember
from workers.connectors.protocols.fence import ClaimReading
from workers.connectors.registry import delivery_make, installer_of, record_make

SHOWN = 20
"""How many of the newest claims and generations a reading shows."""

NUMBERS = ("generation", "arm", "armed_count", "landed_count", "absorbed_count", "altered_count", "superseded_by")


def sink_read(intent: Intent, report: Any) -> dict[str, Any]:
    """The sink's fence, counter, claims and hand-over as it says now, compared with what is remembered of it.

    Writes nothing at the sink. A sink that lies behind its memory was restored, and is marked so.
    """
    sink = intent.sink
    if sink is None:
        raise Refused("reading a sink", "none is named", "Name a registered sink.")
    if Ability.FENCED not in abilities_of(sink.kind, sink.options):
        reason = f"a {sink.kind} has no fence, no counter and no claims"
        raise Refused(f"reading the fence of {sink.name}", reason, "Audit its pipeline instead.")
    report(step="asking the sink")
    connector = delivery_make(sink.kind, sink.options, Ability.FENCED)
    before = memory_of(sink)
    state = connector.state()
    claims, generations = connector.claims(SHOWN), connector.generations(SHOWN)
    handed_over = dict(connector.hand_over())
    now = timezone.now()
    finding = sink_remember(sink, record_make(sink.kind, sink.options).said(), actor=intent.taken_by, now=now)
    return {
        "sink": sink.name,
        "read_at": now.isoformat(),
        "identity": state.identity,
        "counter": str(state.counter),
        "fence": str(state.fence),
        "last_entry": _text(state.last_entry),
        "open_claim": _claim_row(state.open_claim) if state.open_claim else None,
        "claims": [_claim_row(claim) for claim in claims],
        "generations": [
            {**asdict(one), "number": str(one.number), "superseded_by": _text(one.superseded_by)} for one in generations
        ],
        "hand_over": handed_over,
        "standing": finding.standing.value,
        "behind": list(finding.behind),
        "says": finding.says,
        "remembered": before
        and {
            "identity": before.incarnation,
            "counter": str(before.counter),
            "fence": str(before.fence),
            "last_entry": _text(before.last_entry),
        },
    }


def sink_install(intent: Intent, report: Any) -> None:
    """The kit's SQL, shown, or run as whoever may install, or an upgrade; the intent ends with it, and the timeline says so."""
    arguments = intent.arguments
    given = dict(intent.sink.options if intent.sink else arguments["options"])
    if arguments.get("connection"):
        given["connection"] = arguments["connection"]
    named = intent.sink.kind if intent.sink else arguments.get("kind")  # asked for by an earlier version: unnamed
    kind = kind_get(named) if named else kind_installed()
    installer, parsed = installer_of(kind), options_parse(kind, given)
    grants = sorted(arguments.get("grants", {}).items())
    if arguments.get("is_shown_only"):
        report(step="writing the SQL")
        result: dict[str, Any] = {
            "sql": installer.kit_script(parsed, grants, installer.database_of(given["connection"]))
        }
    else:
        is_upgrade = bool(arguments.get("is_upgrade"))
        report(step="upgrading the kit" if is_upgrade else "installing the kit")
        result = installer.kit_put(parsed, grants, is_upgrade)
    sink_install_record(intent, result, timezone.now())


def _claim_row(claim: ClaimReading) -> dict[str, Any]:
    row = asdict(claim)
    return {**row, **{name: _text(row[name]) for name in NUMBERS}}


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
