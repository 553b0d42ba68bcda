"""An ordinary table that records what was accepted."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
from psycopg import sql

from tests.contract.benches import Place
from workers.connectors.protocols.record import Record
from workers.connectors.registry import record_make

TABLE = """
CREATE TABLE {} (
    entry bigint GENERATED ALWAYS AS IDENTITY, id bigint, event_id text, op text, "key" text, content jsonb, head bigint
)
"""
INSERT = """
INSERT INTO {} (id, event_id, op, "key", content, head)
VALUES (%(position)s, %(event_id)s, %(op)s, %(key)s, %(content)s, %(head)s)
"""

CANNOT = {"test_lanes_are_apart": "a table has one lane"}


class TableBench:
    def __init__(self, place: Place) -> None:
        self.dsn, self.table = place.database(), f"accepted_{secrets.token_hex(4)}"
        (place.folder / "sink_dsn").write_text(self.dsn)
        self.options = {
            "connection": f"file:{place.folder / 'sink_dsn'}",
            "table": self.table,
            "coordinate": "id",
            "head": "head",
            **{name: name for name in ("event_id", "op", "key", "content", "entry")},
        }
        with psycopg.connect(self.dsn) as connection:
            connection.execute(sql.SQL(TABLE).format(sql.Identifier(self.table)))

    def connector(self) -> Record:
        return record_make("postgresql_table", self.options)

    def accept(self, events: Iterable[Mapping[str, Any]], head: int | None = None) -> None:
        with psycopg.connect(self.dsn) as connection:
            for event in events:
                connection.execute(sql.SQL(INSERT).format(sql.Identifier(self.table)), {**event, "head": head})


MAKES = {"": TableBench}
