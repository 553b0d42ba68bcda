"""The measures in Prometheus' text: one collector, made for one scrape, that reads the control database then.

There is nothing to add up between processes: every web process answers the same. So no counter is kept in memory, and
prometheus_client's multiprocess mode, which allows no collector of one's own, is not needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from recovery_api.selectors.metrics import measures

PREFIX = "fencepost_"


class ControlDatabase(Collector):
    """Every measure at one moment, by the control database's clock."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def collect(self) -> Iterator[Metric]:
        for measure in measures(self._now):
            family = GaugeMetricFamily(PREFIX + measure.name, measure.says, labels=measure.labels)
            for labels, value in measure.values:
                family.add_metric(labels, value)
            yield family


def exposition(now: datetime, accept: str) -> tuple[bytes, str]:
    """The text of one scrape in the format that is asked for, and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ControlDatabase(now))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
