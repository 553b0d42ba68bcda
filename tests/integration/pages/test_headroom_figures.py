"""The overview's filter by headroom reads what was worked out before, and never tells anything else than the live figure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from recovery_api.models import HeadroomFigure, Pipeline
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.headroom import pipeline_headroom
from recovery_api.selectors.headroom_figures import figures_standing, fleet_figures
from recovery_api.services.headroom import headroom_sweep
from recovery_api.services.pipelines import pipeline_update
from tests.integration.pages.headroom_world import DAY, NOW, audited, clock_stand, make, noon, owed, redriven

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]
__all__ = ["noon"]


@pytest.fixture
def stopped() -> Pipeline:
    """A hundredth of case 1: low from 19:06 on, gone from 19:36 on, stale from 14:00 on."""
    pipeline = make({"memory_seconds": DAY})
    redriven(pipeline, 1_000)
    audited(pipeline, NOW - timedelta(hours=1), 9_100, 10_000, 0)
    owed(pipeline, audited(pipeline, NOW, 10_000, 10_000, 900), 900, NOW - timedelta(hours=14))
    return pipeline


def test_figure_is_the_live_one_at_every_moment_and_the_sweep_keeps_it_so(stopped: Pipeline) -> None:
    moments = [(12, 0), (12, 59), (13, 0), (13, 59), (14, 0), (14, 1), (19, 6), (19, 7), (19, 36), (19, 37), (22, 0)]
    words = []
    for hour, minute in moments:
        now = datetime(2026, 3, 1, hour, minute, tzinfo=UTC)
        clock_stand(now)
        live = pipeline_headroom(stopped, now).found
        (figure,) = fleet_figures([stopped.pk], now).values()
        assert figure.standing == live.standing, now
        headroom_sweep(now)
        kept = figures_standing([stopped.pk], now)
        assert kept in ({stopped.pk: figure}, {}), "at the very moment of a change nothing is kept"
        assert headroom_sweep(now) == 1 - len(kept), "what counts is not worked out again"
        words.append(figure.standing.value)
    assert list(dict.fromkeys(words)) == ["ok", "low", "gone"]


def test_what_happens_to_a_pipeline_ends_its_figure(stopped: Pipeline) -> None:
    headroom_sweep(NOW)
    pipeline_update(
        stopped,
        actor="root",
        now=NOW,
        delivery=None,
        scope=None,
        requires_other_approver=True,
        options={**stopped.options, "margin_seconds": 10 * 3600},
    )
    assert figures_standing([stopped.pk], NOW) == {}
    assert fleet_figures([stopped.pk], NOW)[stopped.pk].standing == "gone"


def test_audit_leaves_a_figure_and_the_filter_asks_for_nothing_else(
    stopped: Pipeline, sign_in: Callable[..., Client]
) -> None:
    audited(stopped, NOW, 10_000, 10_000, 900)
    assert HeadroomFigure.objects.get(pk=stopped.pk).worked_out_at == NOW
    with CaptureQueriesContext(connection) as queries:
        found = fleet_figures([stopped.pk], now_get())
    assert (found[stopped.pk].standing, len(queries)) == ("ok", 2), "the clock and the figures"
    client = sign_in("viewer")
    assert "decide by 19:06 UTC" in client.get("/?headroom=ok").content.decode()
    assert "No pipeline is like this." in client.get("/?headroom=low").content.decode()
