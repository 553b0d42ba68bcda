"""A source with an outbox and a sink with the kit, small enough to see through, for the relay's tests."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from workers.doors import Door
from workers.relay import CURSOR_TABLE, Relay, RelaySettings

OUTBOX = "public.outbox"
OUTBOX_TABLE = """
CREATE TABLE outbox (
    tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id uuid NOT NULL DEFAULT gen_random_uuid(),
    op text NOT NULL,
    key text NOT NULL,
    content jsonb
)
"""
ROOT = Path(__file__).resolve().parent.parent.parent


class RelayWorld:
    """Two databases. Everything but the relay's own connections is an administrator's."""

    kit_schema = "fencepost"

    def __init__(self, source: str, sink: str, relay_login: str, directory: Path, stack: ExitStack) -> None:
        self.stack = stack
        self.directory = directory
        self._source_dsn = source
        self.sink_dsn = make_conninfo(sink, user=relay_login, password=relay_login)
        self.source = stack.enter_context(psycopg.connect(source, autocommit=True))
        self.sink = stack.enter_context(psycopg.connect(sink, autocommit=True))
        self.source.execute(OUTBOX_TABLE)
        self.source.execute(CURSOR_TABLE.format(table="relay_cursor"))
        for name, dsn in (("source", self._source_dsn), ("sink", self.sink_dsn)):
            (directory / name).write_text(dsn, encoding="utf-8")
        self.settings = RelaySettings(
            name="letters",
            source=f"file:{directory / 'source'}",
            sink=self.sink_reference,
            outbox=("public", "outbox"),
            cursor=("public", "relay_cursor"),
            door=Door(self.kit_schema),
        )

    @property
    def sink_reference(self) -> str:
        return f"file:{self.directory / 'sink'}"

    # -- the relay ---------------------------------------------------------------------------------------------------

    def relay(self, **settings: Any) -> Relay:
        """A run of the relay over two connections of its own, not started."""
        source = self.stack.enter_context(psycopg.connect(self._source_dsn, autocommit=True))
        return Relay(replace(self.settings, **settings), source, self.stack.enter_context(self.sink_as_relay()))

    def relay_process(self, *options: str, crash: str) -> subprocess.CompletedProcess[str]:
        """The relay as a process, until it ends."""
        return subprocess.run(
            [
                *(sys.executable, "-m", "workers.relay", "--name", "letters"),
                *("--source", self.settings.source, "--sink", self.settings.sink),
                *("--outbox", OUTBOX, "--cursor", "public.relay_cursor", *options),
            ],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "FENCEPOST_CRASH": crash},
            check=False,
        )

    def sink_as_relay(self) -> psycopg.Connection:
        return psycopg.connect(self.sink_dsn, autocommit=True)

    def cursor(self) -> int:
        return self._one(self.source, "SELECT position FROM relay_cursor WHERE relay = 'letters'")

    # -- the source --------------------------------------------------------------------------------------------------

    def writer(self) -> psycopg.Connection:
        """A connection whose transaction stays open until somebody commits it."""
        return psycopg.connect(self._source_dsn)

    def insert(self, writer: psycopg.Connection, key: str, content: str | None = '{"n": 1}', op: str = "insert") -> int:
        query = "INSERT INTO outbox (op, key, content) VALUES (%s, %s, %s) RETURNING id"
        return self._one(writer, query, (op, key, content))

    def insert_committed(self, key: str, content: str | None = '{"n": 1}', op: str = "insert") -> int:
        return self.insert(self.source, key, content, op)

    # -- the sink ----------------------------------------------------------------------------------------------------

    def accepted(self, column: str = "position") -> list[int]:
        rows = self.sink.execute(f"SELECT {column} FROM fencepost.accepted ORDER BY position, ordinal").fetchall()
        return [row[0] for row in rows]

    def digests(self) -> list[bytes]:
        return [row[0] for row in self.sink.execute("SELECT payload_digest FROM fencepost.accepted ORDER BY position")]

    def digests_expected(self) -> list[bytes]:
        """By the kit's own function, of what the source printed."""
        rows = self.source.execute("SELECT op, key, content::text FROM outbox ORDER BY id").fetchall()
        query = "SELECT fencepost.payload_digest(%s, %s, %s::jsonb)"
        return [self._one(self.sink, query, row) for row in rows]

    def claim(self) -> int:
        """Another recoverer's open claim. Its generation."""
        query = "SELECT generation FROM fencepost.generation_allocate('recoverer', 'test')"
        generation = self._one(self.sink, query)
        query = "SELECT answer FROM fencepost.claim(%s, '{}')"
        assert self._one(self.sink, query, (generation,)) == "granted"
        return generation

    def release(self, generation: int) -> None:
        assert self._one(self.sink, "SELECT answer FROM fencepost.release(%s, 'test')", (generation,)) == "released"

    def hand_over(self, position: int) -> None:
        """A recovery with nothing to send, which stores where the relay is to start."""
        generation = self.claim()
        query = "SELECT answer FROM fencepost.arm(%s, 0, '0:0:0:0', '{}')"
        assert self._one(self.sink, query, (generation,)) == "armed"
        start = f'{{"0": {{"position": "{position}", "ordinal": "0"}}}}'
        query = "SELECT answer FROM fencepost.fire(%s, 1, %s::jsonb)"
        assert self._one(self.sink, query, (generation, start)) == "landed"

    @staticmethod
    def _one(connection: psycopg.Connection, query: str, arguments: tuple[Any, ...] = ()) -> Any:
        row = connection.execute(query, arguments).fetchone()  # type: ignore[call-overload]
        assert row is not None
        return row[0]
