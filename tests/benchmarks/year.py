"""A year of audits of many pipelines by an injected clock: what stays of it in the tables and in the evidence folder.

Rows come in as workers leave them, copied in bulk from one that the product's own service wrote; what goes, goes by the
sweep's own chores, at the end of each simulated day. Nothing is audited: it is about what is kept, not about time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connection, models
from django.utils import timezone

from recovery_api.models import (
    ArchivePart,
    Audit,
    Drill,
    DrillState,
    Event,
    EvidencePlace,
    ImageAudit,
    Intent,
    LedgerItem,
    LedgerLane,
    Observation,
    Pipeline,
    Plan,
    PlanState,
    SettledItems,
    Sink,
    Source,
)
from recovery_api.services.audits import audit_record, audit_request
from recovery_api.services.intents import intent_take
from tests.benchmarks.latency import use_database
from tests.benchmarks.measure import databases, say
from workers.recovery.retention import evidence_sweep, retention_sweep

AGES = {"FENCEPOST_EVIDENCE_DAYS": 30, "FENCEPOST_RECORDS_DAYS": 90, "FENCEPOST_HISTORY_DAYS": 120}
"""Shorter than by default, so that the year passes each of them several times."""
WITH_EVIDENCE = 50
"""So many of the pipelines write their evidence to a folder; the files of all would measure the disk."""
OWED_EVERY, ASKED_EVERY, PLANNED_EVERY = 7, 7, 30
"""Days between two times at which a pipeline is owed something; between two audits, and comparisons, by hand; between two
plans. A sink is drilled each day."""
OWED = 3
"""Events, which arrive by the next day."""
ARCHIVED_DAYS = 3
"""Of those that write evidence: a file of the archive a day."""
COPIED = (
    Observation,
    Audit,
    Intent,
    Event,
    Plan,
    EvidencePlace,
    ImageAudit,
    Drill,
    LedgerItem,
    LedgerLane,
    ArchivePart,
)
COUNTED = (*COPIED, SettledItems)


@dataclass(frozen=True, slots=True)
class Size:
    """What there is at one moment. `bytes_`: of each table with its indexes."""

    day: int
    rows: Mapping[str, int]
    bytes_: Mapping[str, int]
    folders: int


def run(pipelines: int, days: int = 365, audits_a_day: int = 4) -> None:
    """Prints a line every thirty days, and what the last one comes to."""
    with databases("control") as control, tempfile.TemporaryDirectory() as folder:
        use_database(control["control"])
        call_command("migrate", verbosity=0)
        settings.FENCEPOST_EVIDENCE_DIR = Path(folder)
        for name, value in AGES.items():
            setattr(settings, name, value)
        begin = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days + 1)
        say(
            f"{pipelines:,} pipelines, {audits_a_day} audits a day of each, {days} days, ages {list(AGES.values())} days"
        )
        sizes = []
        for size in year(pipelines, days, audits_a_day, begin, Path(folder)):
            sizes.append(size)
            say(size_says(size))
        for name in sizes[-1].rows:
            most = max(size.rows[name] for size in sizes)
            late = max(size.rows[name] for size in sizes[len(sizes) // 2 :])
            say(f"{name}: at most {most:,} rows, {late:,} in the second half of the year")


def year(
    pipelines: int,
    days: int,
    audits_a_day: int,
    begin: datetime,
    folder: Path,
    every: int = 30,
) -> Iterator[Size]:
    """Lives through `days` from `begin`, which must end in the past: the timeline lets no young event go. Sizes every
    `every` days, and at the end."""
    made = _pipelines_make(pipelines, begin)
    _templates_make(made[0], begin)
    for day in range(days):
        morning = begin + timedelta(days=day)
        _live(morning, day, audits_a_day, folder)
        retention_sweep(morning + timedelta(days=1))
        evidence_sweep(morning + timedelta(days=1))
        if day % every == every - 1:
            _vacuum()
            yield _size(day + 1, folder)
    yield _size(days, folder)


def size_says(size: Size) -> str:
    parts = [f"{name} {count:,} ({size.bytes_[name] / 2**20:,.0f} MiB)" for name, count in size.rows.items()]
    return f"day {size.day}: {', '.join(parts)}; {size.folders:,} folders of evidence"


def _pipelines_make(count: int, at: datetime) -> list[Pipeline]:
    given = {"created_at": at, "created_by": "bench"}
    outbox = {"connection": "env:SOURCE", "table": "outbox", "coordinate": ["id"]}
    named = [f"year-{number}" for number in range(count)]
    sources = Source.objects.bulk_create(
        Source(name=one, kind="postgresql_outbox", options=outbox, **given) for one in named
    )
    sinks = Sink.objects.bulk_create(
        Sink(name=one, kind="postgresql_kit", options={"connection": "env:SINK"}, **given) for one in named
    )
    return Pipeline.objects.bulk_create(
        Pipeline(name=name, source=source, sink=sink, **given)
        for name, source, sink in zip(named, sources, sinks, strict=True)
    )


def _templates_make(pipeline: Pipeline, at: datetime) -> None:
    """The rows that all others are copies of, set aside: of one audit by the product's own services, and of one plan."""
    intent = intent_take(audit_request(pipeline, actor="bench", now=at, wake=False).id, "bench", at)
    lane = {"status": "exactly_once", "head_says": "42", "above_frontier_owed": "0", "counts": {"acknowledged": "0"}}
    audit_record(
        pipeline,
        status="exactly_once",
        exit_code=0,
        now=at,
        started_at=at,
        record_read_at=at,
        is_full=False,
        says="Exactly once at 42: all 1,000 events reached the sink, none of them twice.",
        frontier={"0": {"position": "42", "ordinal": "0"}},
        lanes={"0": {**lane, "history": {str(n): "9" * 30 for n in range(10)}}},
        obligation_count=1000,
        accepted_count=1000,
        evidence_digest="d" * 64,
        intent=intent,
    )
    Plan.objects.create(pipeline=pipeline, state=PlanState.LAPSED, author="bench", created_at=at)
    audit = Audit.objects.get()
    image = {"status": "mismatch_free", "exit_code": 0, "says": "Mismatch-free at 42.", "keys_count": 400}
    ImageAudit.objects.create(pipeline=pipeline, intent=intent, started_at=at, finished_at=at, **image)
    drill = {"state": DrillState.PASSED, "requested_by": "bench", "requested_at": at, "finished_at": at}
    Drill.objects.create(sink=pipeline.sink, intent=intent, **drill)
    same: dict[str, Any] = {"pipeline": pipeline, "lane": "0", "epoch": "e"}
    LedgerLane.objects.create(audit=audit, read_at=at, admitted_below=700, **same)
    seen = {"first_audit": audit, "first_seen_at": at, "last_audit": audit, "last_seen_at": at}
    LedgerItem.objects.create(position=0, word="lost", digest=b"d" * 32, **seen, **same)
    file = {"rows": 1000, "bytes": 9000, "digest": "0:0:0:0", "file": "f", "file_digest": "f" * 64, "incarnation": "i"}
    kept = {"mapping": "m", "audit": audit, "written_at": at, "expires_at": at}
    ArchivePart.objects.create(pipeline=pipeline, lane="0", high_position=0, high_ordinal=0, **file, **kept)
    with connection.cursor() as cursor:
        for model in COPIED:
            table = model._meta.db_table
            told = "WHERE kind = 'audit recorded'" if model is Event else ""
            cursor.execute(f"CREATE TEMPORARY TABLE year_{table} AS SELECT * FROM {table} {told}")
    for made in (ArchivePart, LedgerItem, ImageAudit, Drill):
        made._default_manager.all().delete()
    LedgerLane.objects.all().delete()


def _live(morning: datetime, day: int, audits: int, folder: Path) -> None:
    """One day of all pipelines: scheduled audits, some that find something owed, some by hand, some plans."""
    step = timedelta(days=1) / audits
    at = _at("n")
    given = {"morning": morning, "step": step, "day": day, "folder": str(folder), "audits": audits}
    every = "generate_series(0, %(audits)s - 1) n"
    owed = f"(n = 0 AND (p.id + %(day)s) %% {OWED_EVERY} = 0)"
    by_hand = f"(n = 1 AND (p.id + %(day)s) %% {ASKED_EVERY} = 0)"
    told = f"({owed} OR {by_hand})"
    intent, audit = f"md5('i' || p.id || ({at}))::uuid", f"md5('a' || p.id || ({at}))::uuid"
    parts = f"CASE WHEN p.id % {max(Pipeline.objects.count() // WITH_EVIDENCE, 1)} = 0".replace("%", "%%")
    moments = dict.fromkeys(("created_at", "taken_at", "heartbeat_at", "finished_at"), at)
    arguments = f"jsonb_build_object('is_scheduled', NOT {by_hand})"
    _copied(Intent, every, given, id=intent, pipeline_id="p.id", arguments=arguments, **moments)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE recovery_api_audit SET is_standing = false WHERE is_standing")
    _copied(
        Audit,
        every,
        given,
        id=audit,
        intent_id=intent,
        pipeline_id="p.id",
        is_scheduled=f"NOT {by_hand}",
        is_standing="n = %(audits)s - 1",
        status=f"CASE WHEN {owed} THEN 'owed' ELSE 'exactly_once' END",
        exit_code=f"CASE WHEN {owed} THEN 1 ELSE 0 END",
        lost_count=f"CASE WHEN {owed} THEN 3 ELSE 0 END",
        evidence_uri=f"{parts} THEN %(folder)s || '/audits/' || {audit} ELSE '' END",
        **dict.fromkeys(("started_at", "record_read_at", "finished_at"), at),
    )
    _copied(
        Observation,
        every,
        given,
        id=None,
        pipeline_id="p.id",
        at=at,
        until=f"{at} + %(step)s::interval",
        grain="'audit'",
        audits="1",
        observed_seconds="NULL",
        status=f"CASE WHEN {owed} THEN 'owed' ELSE 'exactly_once' END",
        owed=f"CASE WHEN {owed} THEN 3 ELSE 0 END",
    )
    _copied(Event, every, given, told, id=None, pipeline_id="p.id", audit_id=audit, at=at)
    _copied(
        Plan,
        "(SELECT 0 AS n) one",
        given,
        f"(p.id + %(day)s) %% {PLANNED_EVERY} = 0",
        id=f"md5('p' || p.id || ({at}))::uuid",
        pipeline_id="p.id",
        created_at=at,
        evidence_uri=f"{parts} THEN %(folder)s || '/plans/' || md5('p' || p.id || ({at})) ELSE '' END",
    )
    _live_beside(day, parts, given)
    uris = [
        uri
        for rows in (
            Audit.objects.filter(finished_at__gte=morning),
            Plan.objects.filter(created_at__gte=morning),
            ImageAudit.objects.filter(finished_at__gte=morning),
        )
        for (uri,) in rows.exclude(evidence_uri="").values_list("evidence_uri")
    ]
    EvidencePlace.objects.bulk_create(EvidencePlace(uri=uri, begun_at=morning, kept_at=morning) for uri in uris)
    for uri in uris:
        Path(uri).mkdir(parents=True)
        Path(uri, "part-00000.parquet").write_bytes(b"")


def _at(n: str) -> str:
    """When a pipeline does what it does for the n-th time of the day."""
    return f"%(morning)s::timestamptz + {n} * %(step)s::interval + (p.id %% 60) * interval '1 second'"


def _live_beside(day: int, parts: str, given: Mapping[str, Any]) -> None:
    """What is not an audit: comparisons and drills with their work, owed events that arrive by the next day, the archive."""
    one, at = "(SELECT 0 AS n) one", _at("0")
    first, last = (f"md5('a' || p.id || ({_at(n)}))::uuid" for n in ("0", "(%(audits)s - 1)"))
    moments = dict.fromkeys(("created_at", "taken_at", "heartbeat_at", "finished_at"), at)
    by_hand = f"(p.id + %(day)s) %% {ASKED_EVERY} = 0"
    image, drill = (f"md5('{word}' || p.id || ({at}))::uuid" for word in ("image", "drill"))
    _copied(Intent, one, given, by_hand, id=image, action="'image'", pipeline_id="p.id", **moments)
    _copied(
        ImageAudit,
        one,
        given,
        by_hand,
        id=image,
        intent_id=image,
        pipeline_id="p.id",
        evidence_uri=f"{parts} THEN %(folder)s || '/images/' || {image} ELSE '' END",
        **dict.fromkeys(("started_at", "finished_at"), at),
    )
    _copied(Intent, one, given, id=drill, action="'drill'", sink_id="p.sink_id", pipeline_id="p.id", **moments)
    times = dict.fromkeys(("requested_at", "finished_at"), at)
    _copied(Drill, one, given, id=drill, intent_id=drill, sink_id="p.sink_id", **times)
    if day == 0:
        _copied(LedgerLane, one, given, id=None, pipeline_id="p.id", audit_id=last, read_at=at)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE recovery_api_ledgeritem i SET settled_by = 'accepted', settled_at = {at}, last_audit_id = {first}"
            " FROM recovery_api_pipeline p WHERE p.id = i.pipeline_id AND i.settled_at IS NULL",
            given,
        )
        cursor.execute(
            f"UPDATE recovery_api_ledgerlane l SET read_at = {_at('(%(audits)s - 1)')}, audit_id = {last}"
            " FROM recovery_api_pipeline p WHERE p.id = l.pipeline_id",
            given,
        )
    _copied(
        LedgerItem,
        f"generate_series(1, {OWED}) n",
        given,
        f"(p.id + %(day)s) %% {OWED_EVERY} = 0",
        id=None,
        pipeline_id="p.id",
        position="%(day)s * 10 + n",
        **dict.fromkeys(("first_audit_id", "last_audit_id"), first),
        **dict.fromkeys(("first_seen_at", "last_seen_at"), at),
    )
    _copied(
        ArchivePart,
        one,
        given,
        f"{parts} THEN true ELSE false END",
        id=None,
        pipeline_id="p.id",
        low_position="%(day)s",
        low_ordinal="0",
        high_position="%(day)s + 1",
        file="'f' || %(day)s",
        audit_id=last,
        written_at=at,
        expires_at=f"{at} + interval '{ARCHIVED_DAYS} days'",
    )
    over = ArchivePart.objects.filter(gone_at__isnull=True, expires_at__lt=given["morning"])
    over.update(gone_at=given["morning"], gone_because="its time was over")


def _copied(
    model: type[models.Model],
    every: str,
    given: Mapping[str, Any],
    only: str = "true",
    /,
    **others: str | None,
) -> None:
    """Copies of one row for each pipeline and each `n` of `every`; `others` by column, None: the database's own default."""
    table = model._meta.db_table
    columns = [one.column for one in model._meta.concrete_fields if others.get(one.column, "") is not None]
    chosen = [others.get(column) or f't."{column}"' for column in columns]
    names = ", ".join(f'"{column}"' for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({names}) SELECT {', '.join(chosen)}"
            f" FROM year_{table} t, recovery_api_pipeline p, {every} WHERE {only}",
            given,
        )


def _vacuum() -> None:
    """As autovacuum does in time; the clock here is faster than it is."""
    if not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def _size(day: int, folder: Path) -> Size:
    rows, sizes = {}, {}
    with connection.cursor() as cursor:
        for model in COUNTED:
            name = model._meta.model_name or ""
            rows[name] = model._default_manager.count()
            cursor.execute("SELECT pg_total_relation_size(%s)", [model._meta.db_table])
            sizes[name] = int(cursor.fetchone()[0])
    return Size(day, rows, sizes, sum(1 for _ in folder.glob("*/*")))
