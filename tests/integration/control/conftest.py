"""A registered pipeline and a clock that tests move by hand."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from recovery_api.domain.kinds import base as kinds
from recovery_api.models import Pipeline, Plan
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.plans import plan_approve, plan_record, plan_request

NOW = dt.datetime(2026, 3, 1, 3, 0, tzinfo=dt.UTC)
FRONTIER = {"0": {"position": "42", "ordinal": "0"}}


@pytest.fixture(autouse=True)
def _no_broker(settings: Any) -> None:
    settings.REDIS_URL = ""


@pytest.fixture
def now() -> dt.datetime:
    return NOW


@pytest.fixture
def pipeline(db: None, now: dt.datetime) -> Pipeline:
    return make_pipeline("mail", now)


def make_pipeline(name: str, now: dt.datetime, **more: Any) -> Pipeline:
    source = source_create(f"{name}-orders", "paper_source", {"path": "orders"}, actor="owner", now=now)
    sink = sink_create(f"{name}-sink", "paper_sink", {"path": "mail"}, actor="owner", now=now)
    return pipeline_create(name, source, sink, actor="owner", now=now, **more)


@pytest.fixture(autouse=True, scope="session")
def _paper_kinds() -> Any:
    """Two kinds that exist on paper only: options to parse, nothing to connect to."""
    before = dict(kinds.KINDS)
    for end in ("source", "sink"):
        kinds.KINDS[f"paper_{end}"] = f"tests.integration.control.paper_{end}"
    yield
    kinds.KINDS.clear()
    kinds.KINDS.update(before)


@pytest.fixture
def ready_plan(pipeline: Pipeline, now: dt.datetime) -> Plan:
    return make_ready(pipeline, now)


@pytest.fixture
def approved_plan(ready_plan: Plan, now: dt.datetime) -> Plan:
    return plan_approve(ready_plan.id, ready_plan.digest, "approver", now)


def make_ready(pipeline: Pipeline, now: dt.datetime, digest: str = "d1", batch_count: int = 3) -> Plan:
    plan, _ = plan_request(pipeline, actor="author", now=now)
    return plan_record(
        plan,
        digest=digest,
        frontier=FRONTIER,
        conditions=[{"name": "P3", "holds": True, "says": "At the safe frontier.", "remedy": ""}],
        batch={"provably missing": str(batch_count)},
        batch_count=batch_count,
        says=f"{batch_count} events are owed.",
        now=now,
    )


@pytest.fixture
def later(now: dt.datetime) -> Callable[..., dt.datetime]:
    return lambda **by: now + dt.timedelta(**by)
