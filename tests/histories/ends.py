"""Both ends of a random history: an outbox with transaction ids, and the kit's record written past its identity key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_kit import kit_options
from workers.connectors.rows import payload_of
from workers.connectors.sinks.kit.install import kit_install
from workers.evidence.ranges import EndSpec

HELD = 2**63
OUTBOX = """
    CREATE TABLE outbox (
        tx xid8 NOT NULL DEFAULT pg_current_xact_id(), id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
        event_id text NOT NULL DEFAULT gen_random_uuid()::text, op text NOT NULL DEFAULT 'insert', "key" text NOT NULL,
        content jsonb, created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (tx, id))"""
EMPTY = """
    ALTER TABLE fencepost.accepted DISABLE TRIGGER USER;
    TRUNCATE fencepost.accepted RESTART IDENTITY"""
ACCEPT = """
    INSERT INTO fencepost.accepted (lane, position, ordinal, generation, head_position, head_ordinal, accepted_at,
        admitted_in, payload_digest, op)
    VALUES ('0', %s, %s, 0, %s, %s, clock_timestamp(), pg_current_xact_id(), %s, 'insert')"""


@dataclass(frozen=True)
class Event:
    """A committed row, or an accepted entry with the head it was sent under."""

    at: Coordinate
    digest: bytes
    head: Coordinate | None = None


class Ends:
    """`record` is what is accepted, whatever the fence would say: duplicates and altered entries have to be possible."""

    def __init__(self, source_dsn: str, sink_dsn: str, directory: Path) -> None:
        self.source_dsn, self.sink_dsn = source_dsn, sink_dsn
        for name, dsn in (("source", source_dsn), ("sink", sink_dsn)):
            (directory / name).write_text(dsn)
        with psycopg.connect(source_dsn, autocommit=True) as source:
            source.execute(OUTBOX)
        sink_options = options_parse(kind_get("postgresql_kit"), {"connection": f"file:{directory / 'sink'}"})
        with psycopg.connect(sink_dsn, autocommit=True) as sink:
            kit_install(sink, kit_options(sink_options))
            sink.execute("ALTER TABLE fencepost.accepted DROP CONSTRAINT coordinate_is_accepted_once")
            sink.execute("CREATE INDEX ON fencepost.accepted (lane, position, ordinal)")
        self.source_spec = EndSpec(
            "postgresql_outbox",
            options_parse(
                kind_get("postgresql_outbox"),
                {
                    "connection": f"file:{directory / 'source'}",
                    "table": "outbox",
                    "coordinate": ["tx", "id"],
                    "coordinate_spelling": "xid8_bigint",
                    "event_id": "event_id",
                    "key": "key",
                    "op": "op",
                    "content": "content",
                    "committed_at": "created_at",
                },
            ),
        )
        self.sink_spec = EndSpec("postgresql_kit", sink_options)

    @contextmanager
    def opened(self) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
        """Connections to both ends, emptied."""
        with (
            psycopg.connect(self.source_dsn, autocommit=True) as source,
            psycopg.connect(self.sink_dsn, autocommit=True) as sink,
        ):
            source.execute("TRUNCATE outbox RESTART IDENTITY")
            sink.execute(EMPTY)
            yield source, sink


def commit(connection: psycopg.Connection[Any], keys: Sequence[int]) -> None:
    """An event a key, in the connection's transaction."""
    for key in keys:
        connection.execute('INSERT INTO outbox ("key", content) VALUES (%s, %s)', [f"key {key}", f'{{"n": {key}}}'])


def committed(connection: psycopg.Connection[Any]) -> list[Event]:
    """What the source shows, in order, digested apart from the product's SQL."""
    rows = connection.execute('SELECT tx::text, id, "key", content::text FROM outbox ORDER BY tx, id')
    return [
        Event(
            Coordinate(int(tx) - HELD, number),
            payload_of({"lane": "0", "position": 0, "ordinal": 0, "op": "insert", "key": key, "content": content}),
        )
        for tx, number, key, content in rows
    ]


def accept(connection: psycopg.Connection[Any], entries: Sequence[Event]) -> None:
    """These entries come in, in the connection's transaction."""
    for one in entries:
        head = (one.head.position, one.head.ordinal) if one.head else (None, None)
        connection.execute(ACCEPT, (one.at.position, one.at.ordinal, *head, one.digest))


def accepted(connection: psycopg.Connection[Any]) -> list[Event]:
    """What the record shows, in order of entry."""
    query = (
        "SELECT position, ordinal, payload_digest, head_position, head_ordinal FROM fencepost.accepted ORDER BY entry"
    )
    return [
        Event(Coordinate(position, ordinal), digest, None if head is None else Coordinate(head, head_ordinal))
        for position, ordinal, digest, head, head_ordinal in connection.execute(query)
    ]
