"""A kind of delivery that keeps no record (tests/contract/delivery_alone.py), beside a record of another end.

Nothing of the product knows it: it is tested, audited by the record, planned for, and never fired into.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from recovery_api.domain.capabilities import APART
from recovery_api.domain.kinds.base import KINDS
from recovery_api.models import Pipeline, PlanState
from recovery_api.selectors.ends import pipeline_get, sink_get
from recovery_api.selectors.pairs import pipeline_allows
from recovery_api.services.audits import audit_request
from recovery_api.services.ends import connection_test_request, sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.plans import plan_request
from tests.contract.delivery_alone import OFFICES
from tests.integration.recovery.table_at_hand import memory_history_kind
from tests.integration.recovery.world import run
from tests.stateful.memory_source import commit

pytestmark = pytest.mark.django_db(transaction=True)

BY = {"actor": "ada"}


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipeline]:
    """Three events are committed; the record shows none of them."""
    monkeypatch.setitem(KINDS, "delivery_alone", "tests.contract.delivery_alone")
    name, now = f"alone-{secrets.token_hex(4)}", timezone.now()
    with memory_history_kind():
        source = source_create(name, "memory_history", {"name": name}, now=now, **BY)
        record = sink_create(f"{name}-record", "memory", {"name": f"{name} record"}, now=now, **BY)
        office = sink_create(f"{name}-office", "delivery_alone", {"name": name}, now=now, **BY)
        for _ in range(3):
            commit(name)
        yield pipeline_create(name, source, record, delivery=office, now=now, **BY)


def sinks_test(pipeline: Pipeline) -> dict[str, Any]:
    """Both of its sinks through a worker; what is kept of the delivery."""
    for sink in (pipeline.sink, pipeline.fired_into):
        run(connection_test_request(sink=sink, now=timezone.now(), wake=False, **BY))
    report: dict[str, Any] = sink_get(pipeline.fired_into.name).report
    return report


def test_its_connection_test_tells_what_it_can_do_point_by_point(pipeline: Pipeline) -> None:
    report = sinks_test(pipeline)
    assert report["is_usable"] and report["capability"]["strategy"] == "blind"
    points = {row["point"]: (row["declared"], row["tested"]) for row in report["points"]}
    assert points["reads record"] == ("no", "no") and points["append under a lock"] == ("yes", "yes")
    allows = pipeline_allows(pipeline_get(pipeline.name))
    assert allows is not None and allows.strategy.name == "read_only" and allows.because.startswith(APART)


def test_its_pipeline_is_audited_and_planned_and_nothing_is_handed_in(pipeline: Pipeline) -> None:
    sinks_test(pipeline)
    run(audit_request(pipeline, now=timezone.now(), wake=False, **BY))
    assert pipeline.audits.get().lost_count == 3
    plan, intent = plan_request(pipeline, now=timezone.now(), wake=False, **BY)
    run(intent)
    plan.refresh_from_db()
    assert plan.state == PlanState.REFUSED and plan.says.startswith(APART) and plan.pins["strategy"] == "read_only"
    assert plan.batch["provably missing"] == "3"
    assert OFFICES[pipeline.name].held == {}
