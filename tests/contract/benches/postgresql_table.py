"""An ordinary table that records what was accepted."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.abilities import Ability
from recovery_api.domain.kinds import kind_get
from tests.contract.benches import Place, record_held
from workers.connectors.protocols.appended import AppendedDelivery
from workers.connectors.protocols.record import IdRecord, Record
from workers.connectors.registry import delivery_make, record_make

TABLE = """
CREATE TABLE {} (
    entry bigint GENERATED ALWAYS AS IDENTITY, id bigint, event_id text, op text, "key" text, content jsonb, head bigint
)
"""
EFFECT = """CREATE TABLE {} (id bigint PRIMARY KEY, event_id text, op text, "key" text, content jsonb)"""
PROCESSED = "CREATE TABLE {} (id text PRIMARY KEY)"
OF_IDS = {"identity": "event_id", "event_id": "id", "is_append_only": True}
INSERT = """
INSERT INTO {} (id, event_id, op, "key", content, head)
VALUES (%(position)s, %(event_id)s, %(op)s, %(key)s, %(content)s, %(head)s)
"""

EXAMPLES = [
    kind_get("postgresql_table").example,
    {**kind_get("postgresql_table").example, "is_effect": True},
    {
        **kind_get("postgresql_table").example,
        "state_table": "orders",
        "state_key": "number",
        "state_content": "content",
    },
    {**OF_IDS, "connection": "env:FENCEPOST_END_MAIL", "table": "processed"},
]

CANNOT = {"test_lanes_are_apart": "a table has one lane"}


class TableBench:
    kind = "postgresql_table"

    def __init__(self, place: Place) -> None:
        self.effect, self.processed = "", ""
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

    def delivery(self) -> AppendedDelivery:
        """Of another table, whose rows are the effect and whose coordinate is unique; `connector` is its record then."""
        if not self.effect:
            self.effect = f"effect_{secrets.token_hex(4)}"
            with psycopg.connect(self.dsn) as connection:
                connection.execute(sql.SQL(EFFECT).format(sql.Identifier(self.effect)))
            del self.options["head"], self.options["entry"]
            self.options |= {"table": self.effect, "is_effect": True}
        return delivery_make("postgresql_table", self.options, Ability.APPENDED)

    def held(self) -> dict[int, bytes]:
        return record_held(self.connector())

    def scanned(self, ids: Iterable[str] = ()) -> IdRecord:
        """Of a table of its own: what was processed."""
        with psycopg.connect(self.dsn) as connection:
            if not self.processed:
                self.processed = f"processed_{secrets.token_hex(4)}"
                connection.execute(sql.SQL(PROCESSED).format(sql.Identifier(self.processed)))
            for one in ids:
                connection.execute(sql.SQL("INSERT INTO {} VALUES (%s)").format(sql.Identifier(self.processed)), [one])
        options = {**OF_IDS, "connection": self.options["connection"], "table": self.processed}
        made = record_make("postgresql_table", options)
        assert isinstance(made, IdRecord)
        return made

    def accept(self, events: Iterable[Mapping[str, Any]], head: int | None = None) -> None:
        with psycopg.connect(self.dsn) as connection:
            for event in events:
                connection.execute(sql.SQL(INSERT).format(sql.Identifier(self.table)), {**event, "head": head})


MAKES = {"": TableBench}
