"""The shop at work: concurrent writers, each order change and its outbox row in one transaction, some rolled back.

What they write is drawn from a seed; how their transactions interleave is PostgreSQL's business. An outbox id is drawn
inside the INSERT and shows at COMMIT, so ids commit out of order whenever two transactions overlap.
"""

from __future__ import annotations

import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import psycopg
from psycopg import sql

from workers.connectors.credentials import credential_resolve
from workers.demo.world import World

CUSTOMERS = ("Adaeze", "Bram", "Chiara", "Dmitri", "Élodie", "Farid", "Grażyna", "Hiro", "Ines", "Jørgen")
THINKING_SECONDS = 0.004
"""At most this long a writer thinks between its INSERT and its COMMIT."""


@dataclass(frozen=True, slots=True)
class Trade:
    """What a stretch of business came to."""

    committed_transactions: int
    rolled_back_transactions: int
    committed_events: int


def trade(world: World, seed: int, writers: int, transactions: int) -> Trade:
    """`writers` threads, each with its connection, do `transactions` each: orders placed, shipped, cancelled."""
    start_together = threading.Barrier(writers)
    with ThreadPoolExecutor(writers) as pool:
        done = [
            pool.submit(_write, world, random.Random(name), name, transactions, start_together)  # nosec B311 # business of a demo
            for name in (f"{seed}-{number}" for number in range(writers))
        ]
        results = [future.result() for future in done]
    return Trade(*(sum(column) for column in zip(*results, strict=True)))


def _write(
    world: World, chance: random.Random, prefix: str, transactions: int, start_together: threading.Barrier
) -> tuple[int, int, int]:
    """One writer's transactions. It changes only orders it placed itself: no two writers wait for each other.

    Its first one commits, so that the lowest number is there: of a lower one that is missing nobody could know, before
    anything was audited, whether it was rolled back or purged.
    """
    committed = rolled_back = events = 0
    open_orders: dict[str, dict[str, object]] = {}
    pause = threading.Event()
    with psycopg.connect(credential_resolve(world.reference("orders_app")), application_name="shop") as orders:
        start_together.wait()
        for number in range(transactions):
            before, written = {key: dict(order) for key, order in open_orders.items()}, 0
            for line in range(chance.choice((1, 1, 1, 2, 3))):
                _change_one(orders, world, chance, open_orders, f"{prefix}-{number:03}-{line}")
                written += 1
            pause.wait(chance.random() * THINKING_SECONDS)
            if chance.random() < 0.12 and number:
                orders.rollback()
                open_orders, rolled_back = before, rolled_back + 1
            else:
                orders.commit()
                committed, events = committed + 1, events + written
    return committed, rolled_back, events


def _change_one(
    orders: psycopg.Connection, world: World, chance: random.Random, open_orders: dict[str, dict[str, object]], new: str
) -> None:
    if not open_orders or chance.random() < 0.55:
        order = {"customer": chance.choice(CUSTOMERS), "cents": chance.randrange(500, 90_000), "state": "placed"}
        open_orders[new] = order
        _record(orders, world, "insert", new, order)
        return
    key = chance.choice(sorted(open_orders))
    if chance.random() < 0.2:
        del open_orders[key]
        _record(orders, world, "delete", key, None)
        return
    order = open_orders[key]
    order["state"] = {"placed": "packed", "packed": "shipped"}.get(str(order["state"]), "returned")
    _record(orders, world, "update", key, order)


def _record(orders: psycopg.Connection, world: World, op: str, key: str, order: dict[str, object] | None) -> int:
    """The order's change and its outbox row, in the transaction that is open. Returns the outbox id it drew."""
    table, outbox = sql.Identifier(world.schema, "orders"), sql.Identifier(world.schema, "outbox")
    if order is None:
        orders.execute(sql.SQL("DELETE FROM {} WHERE number = %s").format(table), (key,))
    else:
        orders.execute(
            sql.SQL(
                "INSERT INTO {} (number, customer, cents, state) VALUES (%s, %s, %s, %s)"
                " ON CONFLICT (number) DO UPDATE SET state = EXCLUDED.state"
            ).format(table),
            (key, order["customer"], order["cents"], order["state"]),
        )
    content = None if order is None else json.dumps(order, ensure_ascii=False)
    row = orders.execute(
        sql.SQL("INSERT INTO {} (op, key, content) VALUES (%s, %s, %s) RETURNING id").format(outbox), (op, key, content)
    ).fetchone()
    assert row is not None
    return int(row[0])


class OpenTransaction:
    """A transaction that has drawn its outbox ids and has not committed: an import, a slow request."""

    def __init__(self, world: World, name: str, events: int) -> None:
        self._connection = psycopg.connect(
            credential_resolve(world.reference("orders_app")), application_name=f"shop {name}"
        )
        order = {"customer": name, "cents": 1_000, "state": "placed"}
        self.ids = [
            _record(self._connection, world, "insert", f"{name}-{number:03}", order) for number in range(events)
        ]

    def commit(self) -> None:
        self._connection.commit()
        self._connection.close()

    def close(self) -> None:
        """Rolls back what was not committed."""
        self._connection.close()
