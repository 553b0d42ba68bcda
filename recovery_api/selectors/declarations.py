"""What the owners of a pipeline and its ends declared of how long they remember, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from recovery_api.domain.headroom.declared import keeps_for_good
from recovery_api.domain.headroom.terms import Clock
from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.base import Retention
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.models import Pipeline

Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Declarations:
    """Options with their defaults. `into`: of the end that is fired into; the record's own where both are one.

    `keeps`: whether record and delivery are said to delete nothing. `clock` None: nobody said how far clocks may differ.
    """

    options: Options
    source: Options
    record: Options
    into: Options
    retention: Retention
    keeps: tuple[bool, bool]
    clock: Clock | None

    @property
    def is_record(self) -> bool:
        """Whether the record is fired into as well."""
        return self.into is self.record

    @property
    def most(self) -> int:
        """How many events one part of a recovery sends at most."""
        own: int = self.options["batch_limit"]
        return min(own, self.into.get("batch_limit") or own)


def declarations_of(pipeline: Pipeline) -> Declarations:
    """`pipeline` with its ends."""
    options = pipeline_options_parse(pipeline.options)
    source_kind, record_kind = kind_get(pipeline.source.kind), kind_get(pipeline.sink.kind)
    source, record = (
        options_parse(source_kind, pipeline.source.options),
        options_parse(record_kind, pipeline.sink.options),
    )
    fired = pipeline.fired_into
    fired_kind = kind_get(fired.kind)
    into = record if fired.pk == pipeline.sink_id else options_parse(fired_kind, fired.options)
    error = options["clock_error_seconds"]
    return Declarations(
        options=options,
        source=source,
        record=record,
        into=into,
        retention=source_kind.retention(source),
        keeps=(keeps_for_good(record_kind.declares(record)), keeps_for_good(fired_kind.declares(into))),
        clock=None if error is None else Clock(error=timedelta(seconds=error)),
    )
