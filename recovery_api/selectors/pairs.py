"""What the two ends of a pipeline, its record and its delivery, come to together, as they were last tested."""

from __future__ import annotations

from dataclasses import dataclass

from recovery_api.domain.capabilities import APART_REMEDY, Capability, capability_from_row, capability_joined
from recovery_api.domain.strategies import strategy_of
from recovery_api.domain.strategies.base import Strategy
from recovery_api.models import Pipeline, Sink


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a recovery of a pipeline is and may say. `because`: where the two ends do not allow it, why, and what to do."""

    strategy: Strategy
    because: str = ""

    @property
    def says(self) -> str:
        return " ".join(part for part in (self.strategy.sentence(), self.because) if part)


def pipeline_capability(pipeline: Pipeline) -> Capability | None:
    """What its ends can do together. None: one of them was not tested since its options changed, or cannot serve."""
    record = capability_from_row(pipeline.sink.capability)
    if record is None or pipeline.delivery is None:
        return record
    delivery = capability_from_row(pipeline.delivery.capability)
    return None if delivery is None else capability_joined(record, delivery)


def pipeline_allows(pipeline: Pipeline) -> Allowed | None:
    """Which recovery its ends allow. None: not known, because one of them was not tested."""
    capability = pipeline_capability(pipeline)
    if capability is None:
        return None
    because = f"{capability.apart_because} {APART_REMEDY}" if capability.apart_because else ""
    return Allowed(strategy_of(capability), because)


def restored_of(pipeline: Pipeline) -> Sink | None:
    """The end of it that was found restored and waits to be settled, the record first."""
    return next((end for end in (pipeline.sink, pipeline.delivery) if end is not None and end.restored_at), None)
