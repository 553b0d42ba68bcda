"""What an owner may declare: units, and nothing that is no time."""

from __future__ import annotations

from typing import Any

import pytest

from recovery_api.domain.errors import BadInput
from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.pipelines import pipeline_options_parse

SOURCE = {"connection": "env:FENCEPOST_END_A", "table": "outbox", "coordinate": ["id"]}
SINK = {"connection": "env:FENCEPOST_END_B", "table": "accepted", "coordinate": ["id"]}


def source(**more: Any) -> dict[str, Any]:
    return options_parse(kind_get("postgresql_outbox"), {**SOURCE, **more})


def sink(**more: Any) -> dict[str, Any]:
    return options_parse(kind_get("postgresql_table"), {**SINK, **more})


@pytest.mark.parametrize("value", [0, -1, "for ever", "1h", 1.5, True, 10**12])
def test_horizon_of_nothing_or_for_ever_is_refused(value: Any) -> None:
    for refused in (
        lambda: source(retention="purges", purges_after_seconds=value),
        lambda: sink(memory_seconds=value),
        lambda: sink(record_keeps_seconds=value, is_append_only=False),
        lambda: pipeline_options_parse({"margin_seconds": value}),
        lambda: pipeline_options_parse({"operator_delay_seconds": value}),
    ):
        with pytest.raises(BadInput):
            refused()


def test_entries_without_a_rate_are_no_time() -> None:
    with pytest.raises(BadInput, match="memory_peak_per_second: is missing"):
        sink(memory_entries=1_000_000)
    with pytest.raises(BadInput, match="memory_entries: is missing"):
        sink(memory_peak_per_second=50)
    assert sink(memory_entries=1_000_000, memory_peak_per_second=50)["memory_entries"] == 1_000_000


@pytest.mark.parametrize("made", [source, sink])
def test_disk_without_its_growth_is_no_time(made: Any) -> None:
    with pytest.raises(BadInput, match="disk_growth_bytes_per_hour: is missing"):
        made(disk_free_bytes=2**40)


def test_disk_of_a_kit_and_of_an_archive_is_declared_alike() -> None:
    for kind, given in (
        ("postgresql_kit", {"connection": "env:FENCEPOST_END_B"}),
        ("archive_files", {"folder": "/var/archive"}),
    ):
        with pytest.raises(BadInput, match="disk_growth_bytes_per_hour: is missing"):
            options_parse(kind_get(kind), {**given, "disk_free_bytes": 1})


def test_age_of_a_purge_needs_a_source_that_purges() -> None:
    with pytest.raises(BadInput, match="retention is keeps"):
        source(purges_after_seconds=3600)


def test_record_whose_rows_go_must_be_said_to_be_so() -> None:
    with pytest.raises(BadInput, match="is_append_only"):
        sink(record_keeps_seconds=3600)
    assert sink(record_keeps_seconds=3600, is_append_only=False)["record_keeps_seconds"] == 3600
