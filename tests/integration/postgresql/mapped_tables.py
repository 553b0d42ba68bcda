"""Connectors on throw-away databases, as the integration tests of the PostgreSQL kinds make them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate, coordinate_format
from workers.connectors.readings import CoordinateRange, Reading, Width
from workers.connectors.registry import record_make, source_make

WHOLE = CoordinateRange("0", None, None)


class Bench:
    """One database and the references to it. `run` is the administrator, autocommit."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.dsn, self.folder = dsn, folder
        self.run = psycopg.connect(dsn, autocommit=True)
        self._others: list[psycopg.Connection[Any]] = []

    def reference(self, dsn: str | None = None, name: str = "dsn") -> str:
        path = self.folder / name
        path.write_text(dsn or self.dsn, encoding="utf-8")
        return f"file:{os.fspath(path)}"

    def source(self, table: str = "outbox", coordinate: Any = "id", dsn: str | None = None, **options: Any) -> Any:
        given = {"connection": self.reference(dsn), "table": table, "coordinate": coordinate, "grace_seconds": 0}
        return source_make("postgresql_outbox", {**given, **options})

    def sink(self, table: str = "accepted", coordinate: Any = "id", dsn: str | None = None, **options: Any) -> Any:
        given = {"connection": self.reference(dsn, "sink_dsn"), "table": table, "coordinate": coordinate}
        return record_make("postgresql_table", {**given, **options})

    def session(self, **settings: Any) -> psycopg.Connection[Any]:
        """Another client's connection, not autocommit; closed with the bench."""
        other = psycopg.connect(self.dsn, **settings)
        self._others.append(other)
        return other

    def close(self) -> None:
        for other in self._others:
            other.close()
        self.run.close()


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def history(source: Any, width: Width = Width.COORDINATE, **options: Any) -> list[dict[str, Any]]:
    """Everything the source holds, in one reading."""
    with source.hold_snapshot() as reading:
        return rows_of(source.read_history(reading, WHOLE, width, **options))


def accepted(sink: Any, width: Width = Width.COORDINATE, **options: Any) -> list[dict[str, Any]]:
    with sink.hold_snapshot() as reading:
        return rows_of(sink.read_accepted(reading, WHOLE, width, **options))


def spelled(connector: Any, rows: Iterable[dict[str, Any]]) -> list[str]:
    """The rows' coordinates in the source's own spelling, ascending."""
    coordinates = sorted(Coordinate(row["position"], row["ordinal"]) for row in rows)
    return [coordinate_format(coordinate, connector.spelling) for coordinate in coordinates]


def digests(rows: Iterable[dict[str, Any]]) -> dict[int, bytes]:
    return {row["position"]: row["payload_digest"] for row in rows}


def lane(reading: Reading) -> Any:
    return reading.lanes["0"]
