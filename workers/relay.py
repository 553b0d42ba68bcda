"""A small reference relay: it reads an outbox table, delivers through the sink kit's functions, and keeps a cursor.

With `--table` it delivers into an ordinary table instead, as most relays do: no generation, nobody to say `wait`.

Its law: the sink's word decides, the cursor only remembers. It delivers in the generation the sink gave it, waits
where the sink says `wait`, stops and asks again where the sink says `fenced`, and starts where the sink says the last
recovery left off. The crash window every relay has, between the sink's acceptance and the checkpoint, is here as the
crash point `relay.accepted`; what it does after that is re-sent, and absorbed by the sink's identity key.

`reading` is how far it reads. `safe`: to the safe frontier, so that nothing can commit behind the cursor. `naive`:
everything above the cursor, as most relays do, so that an id drawn early and committed late is skipped for good.
"""

from __future__ import annotations

import argparse
import json
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg import sql

from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.hand_over import relay_starts_at
from workers.connectors.credentials import credential_resolve
from workers.doors import Door, door_of
from workers.faults import Point, crash_point
from workers.wire import HeldSend, wire_hold

WAIT_SECONDS = 0.5
"""Between two looks at an empty outbox, and between two asks while the sink says `wait`."""
LOCK_MILLISECONDS = 300
"""A safe reading of a bare bigint blocks the outbox's writers no longer than this, and looks again later."""

XID8_HELD = "(tx::text::numeric - 9223372036854775808)::bigint, id"

CURSOR_TABLE = """
CREATE TABLE IF NOT EXISTS {table} (
    relay text PRIMARY KEY,
    position bigint NOT NULL,
    ordinal bigint NOT NULL,
    generation bigint NOT NULL,
    started_from jsonb,
    checkpointed_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""
"""The relay's own durable checkpoint, in the source database. `started_from`: the hand-over it last started from."""


class Spelling(StrEnum):
    """Which coordinate the outbox has."""

    BIGINT = "bigint"
    """One ascending number, drawn inside the INSERT."""
    XID8_BIGINT = "xid8_bigint"
    """The inserting transaction and a number: the safe frontier costs no lock."""


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """One relay. `source` and `sink` are credential references; `outbox` and `cursor` are schema and table."""

    name: str
    source: str
    sink: str
    outbox: tuple[str, str]
    cursor: tuple[str, str]
    door: Door = field(default_factory=Door)
    spelling: Spelling = Spelling.BIGINT
    reading: Literal["naive", "safe"] = "safe"
    batch_events: int = 50
    hold_back: Path | None = None
    """Hold one send of the first batch back in flight, to be let go through this socket."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A coordinate as held: signed 64-bit, a transaction id shifted by 2^63."""

    position: int
    ordinal: int = 0


LOWEST = Position(-(2**63), -(2**63))


def _position(handed_over: dict[str, str] | None) -> Position | None:
    return None if handed_over is None else Position(int(handed_over["position"]), int(handed_over["ordinal"]))


@dataclass(slots=True)
class Step:
    """What one pass did. `said`: delivered | empty | busy | fenced | paused."""

    said: str
    words: dict[str, int] = field(default_factory=dict)
    cursor: Position = LOWEST


class Relay:
    """One run of the relay over two open connections: `start`, then `step` until told to stop."""

    def __init__(self, settings: RelaySettings, source: psycopg.Connection, sink: psycopg.Connection) -> None:
        self.settings = settings
        self.source = source
        self.sink = sink
        self.generation: int | None = None
        self.cursor = LOWEST
        self._hold_back = settings.hold_back
        self._outbox = sql.Identifier(*settings.outbox)
        self._cursor_table = sql.Identifier(*settings.cursor)

    def start(self) -> str:
        """Asks the sink for a generation: `started`, or `wait` while a recovery's claim is open.

        It starts from the sink's hand-over where that is news to it, be it behind its cursor or ahead: the sink knows
        what it accepted, the cursor does not. A hand-over it has started from before does not move it again.
        """
        answer, generation, start = self.settings.door.start(self.sink, self.settings.name)
        if answer != "started":
            self.generation = None
            return answer
        self.generation = generation
        news = start.get(SINGLE_LANE)
        cursor_read = sql.SQL("SELECT position, ordinal, started_from FROM {} WHERE relay = %s").format(
            self._cursor_table
        )
        known = self.source.execute(cursor_read, (self.settings.name,)).fetchone()
        position, ordinal, started_from = known or (self.cursor.position, self.cursor.ordinal, None)
        # One place that another fire handed over again is news: the generation tells them apart.
        seen = _position(news) if news == started_from else None
        self.cursor = relay_starts_at(Position(position, ordinal), _position(news), seen)
        started_from = started_from if news is None else news
        self.checkpoint(started_from)
        return "started"

    def step(self) -> Step:
        """Reads a batch above the cursor, delivers it in one sink transaction, then records the cursor."""
        events, last = self._read()
        if events is None:
            return Step("busy", cursor=self.cursor)
        if not events:
            return Step("empty", cursor=self.cursor)
        assert self.generation is not None
        held = self._hold_one(events)
        words = self.settings.door.deliver(self.sink, self.generation, events)
        crash_point(Point.RELAY_ACCEPTED)
        if held is not None:
            words.append(held.finish())
        counted = {word: words.count(word) for word in sorted(set(words))}
        for refused in ("fenced", "paused", "unallocated", "lost"):
            if refused in counted:
                return Step(refused, counted, self.cursor)
        self.cursor = last
        self.checkpoint()
        return Step("delivered", counted, self.cursor)

    def _hold_one(self, events: list[str]) -> HeldSend | None:
        """Takes the middle event out of the first batch that has three, and puts it on the wire."""
        if self._hold_back is None or len(events) < 3 or self.generation is None:
            return None
        path, self._hold_back = self._hold_back, None
        event = events.pop(len(events) // 2)
        return wire_hold(path, self.settings.sink, self.settings.door, self.generation, event)

    def _read(self) -> tuple[list[str] | None, Position]:
        """The next events as elements of the kit's `events`, and the last one's position. None: writers held the lock.

        Content stays the text PostgreSQL printed: parsing it here would put its numbers through floats.
        """
        xid8 = self.settings.spelling is Spelling.XID8_BIGINT
        with self.source.transaction():
            limit = "true"
            if xid8:
                coordinate, above, order = XID8_HELD, "(tx, id) > (%s::text::xid8, %s)", "tx, id"
                arguments = [self.cursor.position + 2**63, self.cursor.ordinal]
                if self.settings.reading == "safe":
                    limit = "tx < pg_snapshot_xmin(pg_current_snapshot())"
            else:
                coordinate, above, order = "id, 0", "id > %s", "id"
                arguments = [self.cursor.position]
                if self.settings.reading == "safe":
                    if (highest := self._highest_safe_id()) is None:
                        return None, self.cursor
                    limit, arguments = "id <= %s", [*arguments, highest]
            query = sql.SQL(
                f"SELECT {coordinate}, event_id::text, op, key, content::text"  # nosec B608 # built of constants; names are quoted
                f" FROM {{}} WHERE {above} AND {limit} ORDER BY {order} LIMIT %s"
            ).format(self._outbox)
            rows = self.source.execute(query, (*arguments, self.settings.batch_events)).fetchall()
        if not rows:
            return [], self.cursor
        last = Position(rows[-1][0], rows[-1][1])
        return [event_json(row, last) for row in rows], last

    def _highest_safe_id(self) -> int | None:
        """The highest id with no open insert at or below it: nobody who drew one is open while we hold the lock."""
        self.source.execute(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}")
        try:
            with self.source.transaction():
                self.source.execute(sql.SQL("LOCK TABLE {} IN SHARE MODE").format(self._outbox))
                row = self.source.execute(sql.SQL("SELECT max(id) FROM {}").format(self._outbox)).fetchone()
        except psycopg.errors.LockNotAvailable:
            return None
        assert row is not None
        return -(2**63) if row[0] is None else int(row[0])

    def checkpoint(self, *started_from: Any) -> None:
        """Records the cursor, unless a newer run of this relay has recorded its own."""
        moved = sql.SQL(", started_from = EXCLUDED.started_from") if started_from else sql.SQL("")
        query = sql.SQL(
            "INSERT INTO {table} AS cursor (relay, position, ordinal, generation, started_from)"
            " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (relay) DO UPDATE SET position = EXCLUDED.position,"
            " ordinal = EXCLUDED.ordinal, generation = EXCLUDED.generation, checkpointed_at = clock_timestamp(){moved}"
            " WHERE cursor.generation <= EXCLUDED.generation"
        ).format(table=self._cursor_table, moved=moved)
        handed_over = json.dumps(started_from[0]) if started_from and started_from[0] is not None else None
        row = (self.settings.name, self.cursor.position, self.cursor.ordinal, self.generation, handed_over)
        self.source.execute(query, row)


def event_json(row: tuple[Any, ...], head: Position) -> str:
    """One element of the kit's `events`. The head is the last position this relay knew durable: its batch's end."""
    position, ordinal, event_id, op, key, content = row
    members = {
        "lane": SINGLE_LANE,
        "position": str(position),
        "ordinal": str(ordinal),
        "event_id": event_id,
        "op": op,
        "key": key,
        "head_position": str(head.position),
        "head_ordinal": str(head.ordinal),
    }
    text = json.dumps(members)
    return text if content is None else f'{text[:-1]}, "content": {content}}}'


def relay_run(
    settings: RelaySettings, stop: threading.Event, is_draining: bool, report: Callable[..., None]
) -> Literal["stopped", "drained"]:
    """Runs until `stop` is set, or with `is_draining` until the outbox has nothing more.

    Fenced or paused, the run is over: it asks the sink for the next generation and starts again from where that says.
    """
    with (
        psycopg.connect(credential_resolve(settings.source), autocommit=True, application_name=settings.name) as source,
        psycopg.connect(credential_resolve(settings.sink), autocommit=True, application_name=settings.name) as sink,
    ):
        relay = Relay(settings, source, sink)
        while not stop.is_set():
            answer = relay.start()
            report(said=answer, generation=relay.generation, cursor=relay.cursor.position)
            if answer != "started":
                stop.wait(WAIT_SECONDS)
                continue
            while not stop.is_set():
                step = relay.step()
                if step.said not in ("empty", "busy"):
                    report(said=step.said, generation=relay.generation, cursor=step.cursor.position, words=step.words)
                    if step.said != "delivered":
                        break
                    continue
                if step.said == "empty" and is_draining:
                    return "drained"
                stop.wait(WAIT_SECONDS)
    return "stopped"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m workers.relay", description=__doc__)
    parser.add_argument("--name", default="relay")
    parser.add_argument("--source", required=True, help="env:FENCEPOST_END_NAME or file:/path of the source's address")
    parser.add_argument("--sink", required=True, help="env:FENCEPOST_END_NAME or file:/path of the sink's address")
    parser.add_argument("--outbox", required=True, help="schema.table")
    parser.add_argument("--cursor", required=True, help="schema.table")
    parser.add_argument("--kit-schema", default="fencepost")
    parser.add_argument("--table", help="schema.table of an ordinary table, in place of the kit")
    parser.add_argument("--spelling", type=Spelling, choices=list(Spelling), default=Spelling.BIGINT)
    parser.add_argument("--reading", choices=["naive", "safe"], default="safe")
    parser.add_argument("--batch-events", type=int, default=50)
    parser.add_argument("--hold-back", type=Path, help="hold one send back in flight, let go through this socket")
    parser.add_argument("--drain", action="store_true", help="stop when the outbox has nothing more")
    given = vars(parser.parse_args())
    is_draining = given.pop("drain")
    given["door"] = door_of(given.pop("kit_schema"), given.pop("table"))
    for table in ("outbox", "cursor"):
        schema, _, name = given[table].rpartition(".")
        given[table] = (schema or "public", name)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def report(**said: Any) -> None:
        print(json.dumps(said), flush=True)

    report(said=relay_run(RelaySettings(**given), stop, is_draining, report))


if __name__ == "__main__":
    main()
