"""The two doors by which the reference relay comes into a sink: the kit's functions, and a plain INSERT into a table.

The kit's door has a fence and a word for every event. The table's has what a table has: where its key refuses a second
row, an event that is there already is absorbed, whoever sent it and however late it comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

INSERT = """
INSERT INTO {table} (position, event_id, op, key, content)
SELECT (e ->> 'position')::bigint, (e ->> 'event_id')::uuid, e ->> 'op', e ->> 'key', e -> 'content'
FROM jsonb_array_elements(%s::jsonb) AS e
ON CONFLICT DO NOTHING RETURNING position
"""
POSITIONS = (
    "SELECT (e ->> 'position')::bigint FROM jsonb_array_elements(%s::jsonb) WITH ORDINALITY AS t (e, n) ORDER BY n"
)


@dataclass(frozen=True, slots=True)
class Door:
    """`table` None: the kit in `kit_schema`; else the schema and name of a table with the columns of INSERT."""

    kit_schema: str = "fencepost"
    table: tuple[str, str] | None = None

    def start(self, sink: psycopg.Connection, name: str) -> tuple[str, int | None, dict[str, Any]]:
        """The sink's answer, a generation, and each lane's start. A table gives neither, and never says `wait`."""
        if self.table is not None:
            return "started", 0, {}
        query = sql.SQL("SELECT answer, generation, start FROM {}.relay_start(%s)")
        row = sink.execute(query.format(sql.Identifier(self.kit_schema)), (name,)).fetchone()
        assert row is not None
        return str(row[0]), row[1], row[2]

    def deliver(self, sink: psycopg.Connection, generation: int, events: list[str]) -> list[str]:
        """The sink's word for each event, in order; all of them in one transaction."""
        array = f"[{','.join(events)}]"
        if self.table is None:
            query = sql.SQL("SELECT {}.deliver_many(%s, %s::jsonb)").format(sql.Identifier(self.kit_schema))
            row = sink.execute(query, (generation, array)).fetchone()
            assert row is not None
            return list(row[0])
        insert = sql.SQL(INSERT).format(table=sql.Identifier(*self.table))
        accepted = {position for (position,) in sink.execute(insert, (array,)).fetchall()}
        asked = [position for (position,) in sink.execute(POSITIONS, (array,)).fetchall()]
        return ["accepted" if position in accepted else "absorbed" for position in asked]

    def arguments(self) -> list[str]:
        """As a process of ours takes it on its command line."""
        return ["--kit-schema", self.kit_schema] if self.table is None else ["--table", ".".join(self.table)]


def door_of(kit_schema: str, table: str | None) -> Door:
    """From what `Door.arguments` gave."""
    if table is None:
        return Door(kit_schema)
    schema, _, name = table.rpartition(".")
    return Door(table=(schema or "public", name))
