"""A table that was truncated or rewritten since a snapshot was taken shows that snapshot no row, though rows were there.

PostgreSQL keeps no row versions for older snapshots across TRUNCATE or an ALTER that rewrites. So once a reading has read
its tables, and holds their ACCESS SHARE locks until it ends, it looks whether each still has the file that its snapshot
knows: nothing can change that afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg

from recovery_api.domain.errors import SnapshotLost

REWRITTEN = """
SELECT c.oid::regclass::text FROM pg_class c
WHERE c.oid::bigint = ANY(%s::bigint[]) AND c.relfilenode <> 0
AND c.relfilenode IS DISTINCT FROM pg_relation_filenode(c.oid::regclass)
LIMIT 1
"""


def rewritten_refuse(connection: psycopg.Connection[Any], tables: Iterable[int]) -> None:
    """Call it in the reading's transaction, after it has read from each of `tables` (oids).

    Raises: SnapshotLost where one was truncated or rewritten since the snapshot was taken: the read starts again.
    """
    row = connection.execute(REWRITTEN.encode(), [list(tables)]).fetchone()
    if row is not None:
        raise SnapshotLost(row[0], "it was truncated or rewritten after the snapshot was taken")
