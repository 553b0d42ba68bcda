"""How many tasks an engine works on at once, as it says itself."""

from __future__ import annotations

import re
from typing import Any

import pytest

from workers.spark.on_demand import OnDemand
from workers.spark.slots import UNASKED, slots_of
from workers.spark.tasks import InProcess


@pytest.mark.spark
def test_slots_are_those_of_the_engine(spark: Any) -> None:
    threads = re.match(r"local\[([0-9]+)", spark.conf.get("spark.master"))
    assert threads is not None
    assert slots_of(spark) == slots_of(OnDemand(0, lambda: spark)) == int(threads.group(1))


def test_an_engine_that_is_not_open_is_not_opened_to_be_asked() -> None:
    def opened() -> Any:
        raise AssertionError("nobody needs the engine yet")

    assert slots_of(OnDemand(0, opened), is_opened=False) == UNASKED
    assert slots_of(InProcess()) == 1
