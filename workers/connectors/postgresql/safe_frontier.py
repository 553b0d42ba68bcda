"""The highest coordinate below which no further commit can appear, and the ground on which that is believed.

Three grounds, strongest first (and a replica, which has none of its own):
1. *transaction ids*: the coordinate begins with the writing transaction's id, and everything below the snapshot's xmin
   has ended;
2. *share lock*: the snapshot was taken while no inserting transaction was open, and every number is drawn in its INSERT;
3. *grace*: the head was read, then the transactions open at that moment were waited for, a configured time at most.
A gap in the numbers means nothing by itself: a rolled-back transaction leaves one, and an open one may still fill it.
How much of each is known, recovery_api.domain.grounds says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from recovery_api.domain.coordinates import INT64_MAX, Coordinate
from recovery_api.domain.grounds import Standing, doubts_say, standing_of
from workers.connectors.postgresql.open_transactions import OpenTransaction, open_transactions
from workers.connectors.readings import SafeFrontier

TRANSACTION_IDS, SHARE_LOCK, GRACE, REPLICA = "transaction ids", "share lock", "grace", "replica replay"
SHIFT = 2**63
LOOK_AGAIN_SECONDS = 0.05

SEQUENCE_UNSEEN = "this role may not see how far the sequence has come (GRANT SELECT ON SEQUENCE)"
TAKEN_IN_LATER = "that no row is changed so that the filter takes it in later"
IN_TRANSACTION_ONLY = "a number drawn before its transaction began (a cached or pooled sequence) would not be seen"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The transaction's snapshot: ids below `xmin` have ended, ids at or above `xmax` had not begun."""

    xmin: int
    xmax: int
    running: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.xmin}:{self.xmax}"


@dataclass(frozen=True, slots=True)
class Drawn:
    """Where the sequence stood after the snapshot. `last` None: it has given out nothing yet, or `is_seen` is False."""

    is_seen: bool
    last: int | None


@dataclass(frozen=True, slots=True)
class Waited:
    """What of the transactions open at first is still open now."""

    remaining: tuple[OpenTransaction, ...]


def snapshot_read(connection: psycopg.Connection[Any]) -> Snapshot:
    row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
    assert row is not None
    xmin, xmax, running = row[0].split(":")
    return Snapshot(int(xmin), int(xmax), tuple(int(xid) for xid in running.split(",") if xid))


def replay_position(connection: psycopg.Connection[Any]) -> str | None:
    """How far a replica has replayed, as a log position; None where it cannot say."""
    row = connection.execute("SELECT pg_last_wal_replay_lsn()::text").fetchone()
    return row[0] if row else None


def by_transaction_ids(
    snapshot: Snapshot,
    transactions: Collection[OpenTransaction],
    doubts: Collection[str] = (),
    is_attested: bool = False,
) -> SafeFrontier:
    """Everything below the snapshot's xmin: those transactions have ended, and ids are not given out again."""
    named = {one.transaction: str(one) for one in transactions}
    standing = standing_of(doubts, is_attested)
    who = "On the owner's word" if is_attested else "It is assumed"
    return SafeFrontier(
        _below(snapshot.xmin),
        TRANSACTION_IDS,
        f"Every transaction below {snapshot.xmin} had ended in snapshot {snapshot}, and the coordinate begins with its"
        " transaction's id.",
        tuple(named.get(str(xid % 2**32), f"transaction {xid}") for xid in snapshot.running),
        f"{who} that nobody gives a row another transaction's id: {doubts_say(doubts)}." if doubts else None,
        standing,
        _given(standing, "nobody gives a row another transaction's id"),
    )


def by_share_lock(
    head: Coordinate | None,
    drawn: Drawn,
    blockers: Collection[OpenTransaction],
    doubts: Collection[str],
    is_attested: bool,
) -> SafeFrontier:
    """The head, or as far as numbers were drawn, where the snapshot was taken under the lock; nothing, where somebody kept
    the lock from being granted."""
    if not drawn.is_seen:
        doubts = (*doubts, SEQUENCE_UNSEEN)
    standing = standing_of(doubts, is_attested)
    who = "On the owner's word" if is_attested else "It is assumed"
    weakness = f"{who} that numbers are drawn inside their INSERT, for {doubts_say(doubts)}." if doubts else None
    given = _given(standing, "numbers are drawn in their INSERT")
    if blockers:
        says = (
            "The SHARE lock was not granted: a transaction that writes the table is open and may commit below the head."
        )
        return SafeFrontier(None, SHARE_LOCK, says, tuple(str(one) for one in blockers), weakness, standing, given)
    says = "The snapshot was taken while a SHARE lock kept every inserting transaction out; later numbers are higher."
    if drawn.is_seen and head is not None and (drawn.last is None or drawn.last < head.position):
        stands = "has given out no number" if drawn.last is None else f"stands at {drawn.last}"
        says += (
            f" Its sequence {stands}: what lies above it was numbered otherwise, and lower numbers are still to come."
        )
        head = None if drawn.last is None else Coordinate(drawn.last)
    return SafeFrontier(head, SHARE_LOCK, says, (), weakness, standing, given)


def under_filter(safe: SafeFrontier, filter_: str | None, moves: Collection[str]) -> SafeFrontier:
    """The frontier of the rows that a filter takes in: assumed, where a row below it may be changed to be one of them."""
    if filter_ is None or not moves or safe.given.endswith(TAKEN_IN_LATER):
        return safe
    weakness = f"It is assumed {TAKEN_IN_LATER} ({filter_}): {doubts_say(moves)}."
    given = f"{safe.given} and {TAKEN_IN_LATER}" if safe.given else TAKEN_IN_LATER
    both = f"{safe.weakness} {weakness}" if safe.weakness else weakness
    return replace(safe, standing=Standing.ASSUMED, weakness=both, given=given)


def by_grace(head: Coordinate | None, waited: Waited, grace_seconds: int, obstacles: Collection[str]) -> SafeFrontier:
    """The head as it was before the wait; nothing, while a transaction that already writes the table is open."""
    still = tuple(str(one) for one in waited.remaining)
    because = f" No stronger ground: {'; '.join(obstacles)}." if obstacles else ""
    if any(one.is_writing_table for one in waited.remaining):
        says = f"A transaction that writes the table is open after {grace_seconds} s and may commit below the head."
        return SafeFrontier(None, GRACE, says, still, f"Grace of {grace_seconds} s, and it did not suffice.{because}")
    if still:
        weakness = (
            f"It is assumed that a transaction commits within {grace_seconds} s of drawing a number; "
            f"{len(still)} older ones are still open and are taken not to have drawn any.{because}"
        )
        says = f"The head was read {grace_seconds} s before the snapshot; what drew a number by then is taken to have ended."
        given = f"that commits end within {grace_seconds} s of drawing a number"
        return SafeFrontier(head, GRACE, says, still, weakness, given=given)
    says = "Every transaction that was open when the head was read had ended when the snapshot was taken."
    weakness = f"Grace: {IN_TRANSACTION_ONLY}.{because}"
    return SafeFrontier(
        head, GRACE, says, (), weakness, given="that every number is drawn by the transaction it commits in"
    )


def on_replica(snapshot: Snapshot, has_transaction_ids: bool, replayed: str | None) -> SafeFrontier:
    """What had been replayed, and nothing about what the primary has committed since."""
    says = f"A replica, replayed up to {replayed or 'an unknown position'}; what was committed later is not here yet."
    weakness = "A replica read is not authoritative: what lies beyond the replay position is unknown."
    waits_for = ("the primary: a replica cannot show which numbers its open transactions have drawn",)
    return SafeFrontier(
        _below(snapshot.xmin) if has_transaction_ids else None,
        REPLICA,
        says,
        () if has_transaction_ids else waits_for,
        weakness,
        given="that the replica holds everything committed up to f",
    )


def transactions_wait(
    connection: psycopg.Connection[Any],
    leaves: Collection[int],
    first: Collection[OpenTransaction],
    grace_seconds: float,
    pause: Callable[[float], None] = time.sleep,
) -> Waited:
    """Waits until none of `first` is open any more, `grace_seconds` at most. On an autocommit connection."""
    virtuals = {one.virtual for one in first}
    left = float(grace_seconds)
    while True:
        remaining = (
            [one for one in open_transactions(connection, leaves) if one.virtual in virtuals] if virtuals else []
        )
        if not remaining or left <= 0:
            return Waited(tuple(remaining))
        pause(LOOK_AGAIN_SECONDS)
        left -= LOOK_AGAIN_SECONDS


def _given(standing: Standing, what: str) -> str:
    """What *given …* goes on with; nothing on a proven ground."""
    if standing is Standing.PROVEN:
        return ""
    return f"the owner's word that {what}" if standing is Standing.ATTESTED else f"that {what}"


def _below(xmin: int) -> Coordinate | None:
    """The highest coordinate of a transaction id below `xmin`."""
    return Coordinate(xmin - 1 - SHIFT, INT64_MAX) if xmin > 0 else None
