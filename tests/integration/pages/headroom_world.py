"""Pipelines as workers leave them, by an injected clock, and how their headroom is told everywhere."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from recovery_api.models import (
    Audit,
    HeadroomFigure,
    LedgerItem,
    Pipeline,
    Plan,
    PlanState,
    Recovery,
    RecoveryOutcome,
    RecoveryState,
)
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from tests.integration.pages.fleet import SOURCE, audit_make

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROOM = {"disk_free_bytes": 2**50, "disk_growth_bytes_per_hour": 2**20}
"""Of a disk that lasts longer than anything else here."""
DESIGN = {
    "margin_seconds": 600,
    "operator_delay_seconds": 1800,
    "clock_error_seconds": 0,
    "stale_after_seconds": 7200,
    "max_outage_seconds": 14_400,
    "batch_limit": 10_000_000,
}
DAY = 86_400
GIB = 2**30


@pytest.fixture
def noon() -> None:
    """The control database's clock stands at noon: its function is found before the server's own."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA noon")
        cursor.execute(
            "CREATE FUNCTION noon.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS"
            " $$ SELECT pg_catalog.current_setting('noon.now')::timestamptz $$"
        )
        cursor.execute("SET LOCAL search_path = noon, pg_catalog, public")
    clock_stand(NOW)


def clock_stand(at: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('noon.now', %s, true)", [at.isoformat()])


def make(sink: dict[str, Any] | None = None, source: dict[str, Any] | None = None, **options: Any) -> Pipeline:
    given = {"connection": "env:SINK", "table": "accepted", "coordinate": ["id"], **ROOM, **(sink or {})}
    return pipeline_create(
        "mail",
        source_create("orders", "postgresql_outbox", {**SOURCE, **ROOM, **(source or {})}, actor="root", now=NOW),
        sink_create("letters", "postgresql_table", given, actor="root", now=NOW),
        actor="root",
        now=NOW,
        options={**DESIGN, **options},
    )


def audited(
    pipeline: Pipeline,
    at: datetime,
    obligations: int,
    accepted: int,
    lost: int,
    fields: Mapping[str, Any] = MappingProxyType({}),
    **more: Any,
) -> Audit:
    """An audit that saw every event at or below its frontier, its head, and none above. `fields`: more columns; `more`: of its lane."""
    lane = {"status": "owed", "head_says": "42", "above_frontier_owed": "0", **more}
    return audit_make(
        pipeline,
        "owed" if lost else "exactly_once",
        at,
        frontier={"0": {"position": "42", "ordinal": "0"}},
        obligation_count=obligations,
        accepted_count=accepted,
        lost_count=lost,
        findings=[],
        lanes={"0": lane},
        started_at=at,
        **fields,
    )


def owed(
    pipeline: Pipeline,
    audit: Audit,
    count: int,
    oldest: datetime | None,
    is_content_gone: bool = False,
    position: int = 0,
    apart: float = 1.0,
) -> None:
    """So many open items, `apart` seconds apart; of one row made the way the ledger makes it the others are copies."""
    LedgerItem.objects.create(
        pipeline=pipeline,
        lane="0",
        position=position,
        word="lost",
        digest=b"\x01" * 32,
        committed_at=oldest,
        epoch="e",
        is_content_gone=is_content_gone,
        first_audit=audit,
        first_seen_at=audit.finished_at,
        last_audit=audit,
        last_seen_at=audit.finished_at,
    )
    copied = [one.column for one in LedgerItem._meta.fields if one.column not in ("id", "position", "committed_at")]
    names = ", ".join(f'"{name}"' for name in copied)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO recovery_api_ledgeritem ({names}, position, committed_at)"
            f" SELECT {names}, position + n, committed_at + n * %s * interval '1 second'"
            " FROM recovery_api_ledgeritem, generate_series(1, %s) n WHERE position = %s",
            [apart, count - 1, position],
        )
    HeadroomFigure.objects.filter(pipeline=pipeline).delete()  # no audit remembered them, so none worked it out anew


def redriven(pipeline: Pipeline, count: int = 100_000) -> None:
    """A recovery of so many events in 1,000 seconds that took five minutes besides."""
    began = NOW - timedelta(days=3)
    plan = Plan.objects.create(pipeline=pipeline, state=PlanState.LAPSED, author="ada", created_at=began)
    claimed = began + timedelta(seconds=100)
    fired = claimed + timedelta(seconds=1000)
    Recovery.objects.create(
        id=uuid4(),
        plan=plan,
        pipeline=pipeline,
        frontier={},
        state=RecoveryState.FINISHED,
        outcome=RecoveryOutcome.EXACTLY_ONCE,
        reason="crash",
        requested_by="ada",
        landed_count=count,
        created_at=began,
        claimed_at=claimed,
        fired_at=fired,
        finished_at=fired + timedelta(seconds=200),
    )
    HeadroomFigure.objects.filter(pipeline=pipeline).delete()


def told(client: Client) -> tuple[dict[str, Any], dict[str, Any], str, int]:
    """By REST, by command with its exit code, and on the page; the first two must be equal."""
    by_rest = client.get("/api/v1/pipelines/mail/headroom").json()
    out, code = io.StringIO(), 0
    try:
        call_command("headroom", "mail", "--json", stdout=out)
    except SystemExit as ended:
        code = int(ended.code or 0)
    by_command = json.loads(out.getvalue())
    page = client.get("/pipelines/mail/").content.decode()
    return by_rest, by_command, page, code


def moments(row: dict[str, Any]) -> tuple[str, int | None, str | None, str | None]:
    left = row["left_seconds"]
    return row["headroom"], None if left is None else int(left), row["last_start"], row["decide_by"]


def at(hour: int, minute: int, day: int = 1) -> str:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC).isoformat()
