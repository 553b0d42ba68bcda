"""The fleet a page at a time: sorted by trouble, filtered and counted over a few columns of every pipeline.

The word of each pipeline is that of `fleet.status_of`; a test holds the two together. Whole rows, with their evidence,
are read for one page only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from recovery_api.domain.labels import label_parse
from recovery_api.domain.outcomes import CLEAN, WORST_FIRST, Outcome, Status
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.domain.statuses import RecordReading, RecoveryRun
from recovery_api.models import Audit, Observation, Pipeline, Plan, PlanState, Recovery
from recovery_api.selectors.ends import pipeline_list
from recovery_api.selectors.fleet import PipelineStatus, audits_by_pipeline, decide, status_of
from recovery_api.selectors.schedules import overdue_of

TROUBLE = tuple(status.value for status in WORST_FIRST)
"""What is wrong for certain, what nobody knows, what goes on, what is acknowledged, what was given, what is well."""

AUDIT_COLUMNS_LEFT_OUT = ("findings", "groups", "lanes", "weaknesses", "verified")
SAID_ALONE = frozenset({"owner", "labels"})
"""Options that decide no word: pipelines that differ in them alone stand alike."""
RUN_COLUMNS = ("state", "outcome", "problem", "finished_at", "certificate_void_since")
RECOVERY_COLUMNS_LEFT_OUT = ("certificate", "attestations", "progress")


@dataclass(frozen=True, slots=True)
class FleetEntry:
    """One pipeline in use. `names`: its own and its ends', folded, to be searched. `owner` empty: nobody is named."""

    pk: int
    name: str
    word: str
    names: str
    is_awaiting_approval: bool
    owner: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


def fleet_entries(now: datetime) -> list[FleetEntry]:
    """Every pipeline in use, worst first, then by name. Two queries, a few columns a pipeline."""
    recovery = Recovery.objects.filter(pipeline=OuterRef("pk")).order_by("-created_at")
    of_recovery = {f"recovery_{name}": Subquery(recovery.values(name)[:1]) for name in RUN_COLUMNS}
    waiting = Exists(Plan.objects.filter(pipeline=OuterRef("pk"), state=PlanState.READY))
    ends = ("source__name", "sink__name", "delivery__name")
    own = ("pk", "name", "options", *ends, "sink__restored_at", "is_waiting")
    columns: tuple[str, ...] = (*own, "schedule__next_due_at", "schedule__due_at", *of_recovery)
    rows = list(pipeline_list().order_by("name").annotate(is_waiting=waiting, **of_recovery).values(*columns))
    readings: dict[int, list[RecordReading]] = {}
    standing = Audit.objects.filter(is_standing=True, void_since__isnull=True, pipeline__retired_at__isnull=True)
    columns_read = ("pipeline_id", "record_read_at", "status", "frontier", "evidence_until")
    for key, read_at, status, frontier, until in standing.values_list(*columns_read):
        reading = RecordReading(read_at, Status(status), frontier, evidence_until=until)
        readings.setdefault(key, []).append(reading)
    parsed: dict[str, dict[str, Any]] = {}

    def options_of(row: dict[str, Any]) -> dict[str, Any]:
        """Parsed once for all that are configured alike."""
        deciding = {name: value for name, value in row["options"].items() if name not in SAID_ALONE}
        key = json.dumps(deciding, sort_keys=True)
        if key not in parsed:
            parsed[key] = pipeline_options_parse(deciding)
        return parsed[key]

    entries = [
        FleetEntry(
            row["pk"],
            row["name"],
            _word(row, options_of(row), readings.get(row["pk"], []), now),
            "\n".join(row[name] or "" for name in ("name", *ends)).casefold(),
            row["is_waiting"],
            str(row["options"].get("owner") or ""),
            row["options"].get("labels") or {},
        )
        for row in rows
    ]
    return sorted(entries, key=lambda entry: TROUBLE.index(entry.word))


def fleet_select(
    entries: Sequence[FleetEntry],
    *,
    status: str | None = None,
    text: str = "",
    is_awaiting_approval: bool = False,
    owner: str | None = None,
    label: str | None = None,
) -> list[FleetEntry]:
    """Those with this status word, with `text` in their name or an end's, with a plan to approve where asked, of this owner and
    with this label (name=value). Raises: BadInput for a label that is none."""
    wanted = text.casefold()
    labelled = label_parse(label, "label") if label else None
    return [
        entry
        for entry in entries
        if (status is None or entry.word == status)
        and wanted in entry.names
        and (entry.is_awaiting_approval or not is_awaiting_approval)
        and (owner is None or entry.owner == owner)
        and (labelled is None or entry.labels.get(labelled[0]) == labelled[1])
    ]


def clean_until(pipelines: Sequence[Pipeline]) -> dict[int, datetime]:
    """Until when each of these was last seen clean, by primary key; one that never was is not in it. One query, each by index."""
    clean = Observation.objects.filter(pipeline=OuterRef("pk"), status__in=CLEAN).order_by("-at").values("until")[:1]
    rows = Pipeline.objects.filter(pk__in=[one.pk for one in pipelines]).annotate(clean_until=Subquery(clean))
    return {key: until for key, until in rows.values_list("pk", "clean_until") if until is not None}


def statuses_of(entries: Sequence[FleetEntry], now: datetime) -> list[PipelineStatus]:
    """The whole status of these few, in their order. Three queries, without the columns no list shows."""
    keys = [entry.pk for entry in entries]
    pipelines = {one.pk: one for one in pipeline_list().filter(pk__in=keys)}
    audits = audits_by_pipeline(keys, *AUDIT_COLUMNS_LEFT_OUT)
    recoveries = _newest(Recovery.objects.defer(*RECOVERY_COLUMNS_LEFT_OUT), "created_at")
    recovery_of = {one.pipeline_id: one for one in recoveries.filter(pipeline_id__in=keys)}
    return [
        status_of(pipelines[key], audits.get(key, []), recovery_of.get(key), now) for key in keys if key in pipelines
    ]


def ready_plans_of(entries: Sequence[FleetEntry]) -> dict[int, Plan]:
    """The plan of each pipeline that waits for an approval or for being applied. One query."""
    keys = [entry.pk for entry in entries]
    waiting = Plan.objects.filter(pipeline_id__in=keys, state__in=[PlanState.READY, PlanState.APPROVED])
    return {plan.pipeline_id: plan for plan in waiting.only("id", "pipeline_id", "state", "batch_count")}


def _newest(found: QuerySet[Any], moment: str) -> QuerySet[Any]:
    """The newest row of each pipeline asked for: the rows that follow stay few, as the pipelines are."""
    return found.order_by("pipeline_id", f"-{moment}").distinct("pipeline_id")


def _word(row: dict[str, Any], options: Mapping[str, Any], readings: Sequence[RecordReading], now: datetime) -> str:
    """The word alone, from a few columns: the sentences are read for one page only."""
    run = None
    if row["recovery_state"] is not None:
        run = RecoveryRun(
            name="",
            step="",
            finished_at=row["recovery_finished_at"],
            outcome=Outcome(row["recovery_outcome"]) if row["recovery_outcome"] else None,
            problem="yes" if row["recovery_problem"] else "",
            is_void=row["recovery_certificate_void_since"] is not None,
        )
    restored = "" if row["sink__restored_at"] is not None else None
    due = (row["schedule__next_due_at"], row["schedule__due_at"])
    overdue = overdue_of(str(row["pk"]), *due, options, readings, now)
    return str(decide(row["name"], readings, run, options, restored, now, overdue).status)
