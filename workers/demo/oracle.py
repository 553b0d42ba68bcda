"""A second opinion that shares no code with the product: plain SQL over both databases, compared as sets.

The record is read first and the source last, so that what is missing was committed before the record was read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import psycopg
from psycopg import sql

from workers.demo.world import World

COMMITTED = """
SELECT id, sha256(convert_to(
    op || ' ' || to_json(key)::text || ' ' || encode(sha256(convert_to(
        CASE WHEN op = 'delete' THEN 'null' ELSE coalesce(content::text, '') END, 'UTF8')), 'hex'), 'UTF8'))
FROM {outbox}
"""
"""Each committed event with its payload digest, written out here for the demo's own content: whole numbers and text."""

ACCEPTED = "SELECT position, payload_digest FROM {record} ORDER BY entry"
ACCEPTED_IN_A_TABLE = COMMITTED.replace("SELECT id,", "SELECT position,").replace("{outbox}", "{record}")
"""Of an ordinary table that holds what was committed: digested here."""

LETTERS_DUE = """
SELECT key, ROW(content ->> 'customer', content ->> 'cents', content ->> 'state')::text FROM (
    SELECT DISTINCT ON (key) key, op, content FROM {outbox} ORDER BY key, id DESC
) AS latest WHERE op <> 'delete'
"""
LETTERS_THERE = "SELECT number, ROW(customer, cents, state)::text FROM {letters}"


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the two databases say at a frontier."""

    frontier: int
    obligations: int
    lost: tuple[int, ...]
    """Coordinates of obligations with no accepted entry of that payload."""
    duplicates: int
    """Payloads accepted more than once."""
    premature: int
    """Accepted entries with no committed event of that payload."""

    @property
    def is_exactly_once(self) -> bool:
        return not (self.lost or self.duplicates or self.premature)


def opinion_form(world: World, frontier: int) -> Opinion:
    """Plain SQL, both databases, at `frontier`."""
    query, record = ACCEPTED, sql.Identifier(world.kit_schema, "accepted")
    if world.door.table is not None:
        query, record = ACCEPTED_IN_A_TABLE, sql.Identifier(*world.door.table)
    accepted = Counter(_rows(world.mail, sql.SQL(query).format(record=record)))
    committed = set(_rows(world.orders, sql.SQL(COMMITTED).format(outbox=sql.Identifier(world.schema, "outbox"))))
    owed = {payload for payload in committed if payload[0] <= frontier}
    return Opinion(
        frontier=frontier,
        obligations=len(owed),
        lost=tuple(sorted(payload[0] for payload in owed - set(accepted))),
        duplicates=sum(1 for count in accepted.values() if count > 1),
        premature=sum(count for payload, count in accepted.items() if payload not in committed),
    )


def committed_above(world: World, cursor: int) -> int:
    """How many committed events lie beyond `cursor`: what nobody can decide at the source."""
    query = sql.SQL("SELECT count(*) FROM {} WHERE id > {}")
    rows = _rows(world.orders, query.format(sql.Identifier(world.schema, "outbox"), sql.Literal(cursor)))
    return int(rows[0][0])


def letters_differ(world: World) -> list[str]:
    """Keys whose letter at the target is not what the shop's latest event says, at the source's head."""
    there = dict(_rows(world.mail, sql.SQL(LETTERS_THERE).format(letters=sql.Identifier(world.post_schema, "letters"))))
    due = dict(_rows(world.orders, sql.SQL(LETTERS_DUE).format(outbox=sql.Identifier(world.schema, "outbox"))))
    return sorted(key for key in due.keys() | there.keys() if due.get(key) != there.get(key))


def _rows(dsn: str, query: sql.Composed) -> list[tuple]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(query).fetchall()
