"""Audits of before the status was decided from readings: carried over, and claiming no more than they showed."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from recovery_api.models import Audit
from tests.integration.control.conftest import FRONTIER, make_pipeline

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def before_and_newest(transactional_db: None) -> Any:
    """The migration before this one, wherever it came to stand, and the newest ones, at which it ends again."""
    executor = MigrationExecutor(connection)
    newest = executor.loader.graph.leaf_nodes("recovery_api")
    (after,) = [
        node for node in executor.loader.graph.nodes if node[0] == "recovery_api" and node[1].endswith("_statuses")
    ]
    (before,) = [node for node in executor.loader.graph.node_map[after].parents if node.key[0] == "recovery_api"]
    yield before.key, newest
    MigrationExecutor(connection).migrate(newest)


def test_t5_an_earlier_exactly_once_is_given_and_the_newest_reading_stands(before_and_newest: Any) -> None:
    before, newest = before_and_newest
    pipeline = make_pipeline("mail", BEGAN)
    executor = MigrationExecutor(connection)
    executor.migrate([before])
    old = executor.loader.project_state([before]).apps.get_model("recovery_api", "Audit")
    for minute, (status, code) in enumerate([("owed", 1), ("exactly_once", 0)]):
        at = BEGAN + timedelta(minutes=minute)
        fields = {"status": status, "exit_code": code, "is_full": True, "started_at": at, "finished_at": at}
        old.objects.create(id=uuid.uuid4(), pipeline_id=pipeline.pk, frontier=FRONTIER, **fields)
    MigrationExecutor(connection).migrate(newest)
    audits = list(Audit.objects.order_by("started_at"))
    assert [(one.status, one.exit_code, one.is_standing) for one in audits] == [
        ("owed", 1, False),
        ("exactly_once_given", 4, True),
    ]
    assert audits[1].givens and all(one.record_read_at == one.started_at for one in audits)
