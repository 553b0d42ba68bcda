"""A statement that a limit ended: told with the limit's name, its value and who set it, or with whom it waited for.

One law: which limit it was is asked of the server, never read from its message, which comes in the server's language.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from recovery_api.domain.errors import CutShort, FencepostError, SinkBusy
from workers.connectors.postgresql.answering import AnsweringConnection

NEARLY = 0.9
"""Of a limit's time: the server's clock begins a little before ours ends."""

_LIMIT = """
SELECT s.setting::float8 / 1000, s.setting || ' ms', quote_ident(session_user), s.source
FROM pg_settings s WHERE s.name = %s AND s.setting::bigint > 0
"""
SOURCES = {
    "user": "set for this role",
    "database": "set for this database",
    "database user": "set for this role in this database",
    "configuration file": "set for the whole server",
}


@contextmanager
def limits_named(connection: AnsweringConnection) -> Iterator[None]:
    """Inside it a statement that statement_timeout, transaction_timeout or lock_timeout ended leaves as what it is.

    Raises: CutShort naming the setting; SinkBusy naming who held the lock.
    """
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        if not connection.blockers:
            raise
        seconds = f"{connection.failed_after_seconds:.0f}"
        raise SinkBusy("; ".join(connection.blockers), seconds) from _bare(error)
    except psycopg.errors.QueryCanceled as error:
        if (found := _statement_timeout(connection)) is None:
            raise
        raise found from _bare(error)
    except psycopg.errors.TransactionTimeout as error:
        remedy = "Lift it for this role: ALTER ROLE … SET transaction_timeout = 0."
        limit = CutShort(connection.endpoint, "transaction_timeout", "its limit", connection.step.name, remedy)
        raise limit from _bare(error)


def _statement_timeout(connection: AnsweringConnection) -> FencepostError | None:
    """None: no limit of that length is set, so that somebody cancelled the statement."""
    ran = connection.failed_after_seconds
    if own := connection.statement_seconds:
        if ran < NEARLY * own:
            return None
        value = f"{own} s (an option of the registered end)"
        remedy = "Raise it there, or leave it out."
        return CutShort(connection.endpoint, "statement_timeout_seconds", value, connection.step.name, remedy)
    if connection.closed:
        return None
    if connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
        connection.execute("ROLLBACK")
    row = connection.execute(_LIMIT.encode(), ("statement_timeout",)).fetchone()
    if row is None or ran < NEARLY * row[0]:
        return None
    _, value, role, source = row
    value = f"{value} ({SOURCES[source]})" if source in SOURCES else value
    remedy = (
        f"It is the server's administrator's word, so it stands. Raise it for this role (ALTER ROLE {role} SET "
        "statement_timeout = '5min'), or register the end with a statement_timeout_seconds of its own."
    )
    return CutShort(connection.endpoint, "statement_timeout", value, connection.step.name, remedy)


def _bare(error: psycopg.Error) -> psycopg.Error:
    """Without the connection it came from, which holds the password in plain."""
    error._pgconn = None
    return error
