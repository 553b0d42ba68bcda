"""An outbox table with a bare number as its coordinate."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
from psycopg import sql

from tests.contract.benches import Place
from workers.connectors.protocols.source import Source
from workers.connectors.registry import source_make

TABLE = """CREATE TABLE {} (id bigint PRIMARY KEY, event_id text, op text, "key" text, content jsonb)"""
INSERT = """
INSERT INTO {} VALUES (%(position)s, %(event_id)s, %(op)s, %(key)s, %(content)s)
ON CONFLICT (id) DO UPDATE SET (event_id, op, "key", content) = (excluded.event_id, excluded.op, excluded."key", excluded.content)
"""

CANNOT = {"test_lanes_are_apart": "a table has one lane"}


class OutboxBench:
    def __init__(self, place: Place) -> None:
        self.dsn, self.table = place.database(), f"outbox_{secrets.token_hex(4)}"
        (place.folder / "dsn").write_text(self.dsn)
        self.options = {
            "connection": f"file:{place.folder / 'dsn'}",
            "table": self.table,
            "coordinate": "id",
            "grace_seconds": 0,
            **{name: name for name in ("event_id", "op", "key", "content")},
        }
        with psycopg.connect(self.dsn) as connection:
            connection.execute(sql.SQL(TABLE).format(sql.Identifier(self.table)))

    def connector(self) -> Source:
        return source_make("postgresql_outbox", self.options)

    def commit(self, events: Iterable[Mapping[str, Any]]) -> None:
        with psycopg.connect(self.dsn) as connection:
            for event in events:
                connection.execute(sql.SQL(INSERT).format(sql.Identifier(self.table)), event)

    alter = commit


MAKES = {"": OutboxBench}
