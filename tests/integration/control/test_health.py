"""What the bar says of worker, Spark and broker: what was seen and when, and never more than that."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from recovery_api.domain.alerts.causes import Cause
from recovery_api.domain.alerts.ends import Reached
from recovery_api.models import Upkeep
from recovery_api.selectors.alerts import EVALUATED
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.health import parts_seen, reached_name
from recovery_api.services.health import parts_reached
from recovery_api.services.workers import worker_say_present

pytestmark = pytest.mark.django_db

BOTH = {Cause.NO_ENGINE: Reached(True), Cause.NO_BROKER: Reached(True)}


@pytest.fixture
def now() -> datetime:
    return now_get()


def there() -> dict[str, bool | None]:
    return {part.name: part.is_there for part in parts_seen()}


def says(name: str) -> str:
    return next(part.says for part in parts_seen() if part.name == name)


def test_nothing_is_well_before_it_was_seen() -> None:
    assert there() == {"worker": False, "Spark": None, "broker": None}
    assert says("worker") == "Not seen in the last day."
    assert says("Spark") == "Never seen: nobody looks, because no pager runs."


def test_a_worker_that_fell_silent_or_takes_too_little_is_away(now: datetime) -> None:
    worker_say_present("host/1", ["spark", "default"], now - timedelta(minutes=5))
    assert there()["worker"] is False
    assert says("worker") == f"Not seen since {now - timedelta(minutes=5):%Y-%m-%d %H:%M:%S} UTC."
    worker_say_present("host/2", ["default"], now)
    assert there()["worker"] is False and says("worker") == "No worker that is running takes the queue spark."
    worker_say_present("host/3", ["spark"], now)
    assert there()["worker"] is True and says("worker").startswith("2 workers, last heard of")


def test_engine_and_broker_are_there_while_the_pager_reaches_them_and_unwatched_without_it(now: datetime) -> None:
    Upkeep.objects.create(name=EVALUATED, done_at=now)
    parts_reached(BOTH)
    assert (there()["Spark"], there()["broker"]) == (True, True)
    long_ago = now - timedelta(minutes=3)
    Upkeep.objects.filter(name=reached_name(Cause.NO_ENGINE)).update(done_at=long_ago)
    parts_reached({Cause.NO_ENGINE: Reached(False, "refused"), Cause.NO_BROKER: Reached(True)})
    assert (there()["Spark"], there()["broker"]) == (False, True)
    assert says("Spark") == f"Not seen since {long_ago:%Y-%m-%d %H:%M:%S} UTC, by the pager."
    Upkeep.objects.update(done_at=long_ago)
    assert (there()["Spark"], there()["broker"]) == (None, None)
    assert "nobody looks, because no pager runs" in says("broker")
