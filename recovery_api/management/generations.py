"""Generations and claims side by side: what the control database remembers, and what the sink said last."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from recovery_api.domain.claims import claims_apart
from recovery_api.domain.commands import command_line
from recovery_api.models import Intent, IntentState, Pipeline
from recovery_api.rows import Row, claim_as_row, generation_as_row
from recovery_api.selectors.generations import claim_list, generation_list

SHOWN = 20


def generations_body(pipeline: Pipeline, reading: Intent | None, now: datetime) -> Row:
    """The newest generations with their claims; the sink's own word, its age in seconds; and where the two part.

    `is_divergent`: the sink was found behind its memory, or it counts generations that nobody here recorded as recovered.
    """
    claims = {row["generation"]: row for row in map(claim_as_row, claim_list(pipeline)[:SHOWN])}
    rows = [
        {**generation_as_row(one), "claim": claims.get(str(one.number))} for one in generation_list(pipeline)[:SHOWN]
    ]
    sink = pipeline.fired_into
    said = None
    if sink.said_at is not None and sink.said_counter is not None:
        age = max(0.0, (now - sink.said_at).total_seconds())
        said = {"counter": str(sink.said_counter), "fence": str(sink.said_fence), "age_seconds": round(age)}
    result: dict[str, Any] = (reading.result or {}) if reading and reading.state == IntentState.DONE else {}
    apart = _apart(rows, result)
    is_restored = sink.restored_at is not None
    return {
        "pipeline": pipeline.name,
        "sink": sink.name,
        "newest": rows[0]["generation"] if rows else None,
        "generations": rows,
        "said": said,
        "reading": {
            name: result.get(name) for name in ("read_at", "fence", "counter", "open_claim", "generations", "claims")
        }
        if result
        else None,
        "is_divergent": is_restored or bool(apart),
        "apart": [sink.restored_says, *apart] if is_restored else apart,
    }


def generations_lines(body: Row) -> list[str]:
    said = body["said"]
    lines = [f"generations of {body['pipeline']}, newest first (sink {body['sink']})"]
    if said is None:
        lines.append(f"  The sink was never asked: {command_line('generations', body['pipeline'], '--wait')}")
    else:
        lines.append(
            f"  The fence stands at {said['fence']}, the counter at {said['counter']}, as said {said['age_seconds']} s ago."
        )
    lines += [line for row in body["generations"] for line in _generation_lines(row)]
    known = {row["generation"] for row in body["generations"]}
    for one in (body["reading"] or {}).get("generations") or []:
        if one["number"] not in known:
            end = f", superseded by {one['superseded_by']}" if one.get("superseded_by") else ""
            taken = one.get("asked_by") or "nobody by name"
            lines.append(f"  {one['number']:>6}  {one['purpose']} {one.get('given_name', '')}, taken by {taken}{end}")
    lines += [f"  Apart: {says}" for says in body["apart"]]
    if body["is_divergent"]:
        lines.append(f"Next: {command_line('sinks', 'settle', body['sink'], '--wait')}")
    return lines


def _generation_lines(row: Row) -> list[str]:
    lines = [
        f"  {row['generation']:>6}  {row['purpose']}, taken by {row['asked_by']} at {row['taken_at'][:19]}Z: {row['fate']}"
    ]
    if claim := row["claim"]:
        what = f"claim {claim['state']}"
        if claim["landed"] is not None:
            what += f", {claim['landed']} delivered, {claim['absorbed']} already present"
        if claim["superseded_by"]:
            who = f" ({claim['superseded_who']})" if claim["superseded_who"] else ""
            when = f" at {claim['superseded_at'][:19]}Z" if claim["superseded_at"] else ""
            what += f" by generation {claim['superseded_by']}{who}{when}"
        lines.append(f"          {what}; recovery {claim['recovery']}")
    return lines


def _apart(rows: list[Row], reading: dict[str, Any]) -> list[str]:
    """Where the sink's own word, read last, contradicts what is remembered of a claim that was final."""
    remembered = {int(row["generation"]): row["claim"]["state"] for row in rows if row["claim"]}
    said = {int(claim["generation"]): claim["state"] for claim in reading.get("claims") or []}
    return [
        f"the claim at generation {one.generation} is remembered {one.remembered}, and the sink says {one.said}."
        for one in claims_apart(remembered, said)
        if one.is_contradiction
    ]
