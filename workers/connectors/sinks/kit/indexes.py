"""The record's index beside its key: made after an upgrade, without holding up a delivery.

The law: nothing rests on it but the speed of an audit, so an upgrade that could not make it has upgraded, and says so.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.kinds.postgresql_kit import KitOptions
from workers.connectors.sinks.kit import FOLLOWED_INDEX, MOST_WAIT_SECONDS, kit_sql, roles_sql

_STATE = """
    SELECT i.indisvalid AND i.indisready AND i.indislive FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
    JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = 'accepted' AND x.relname = %s"""


def index_make(connection: psycopg.Connection[Any], options: KitOptions) -> str:
    """Makes the record's index where it is not there, or not whole; why it could not be made, as a sentence, or "".

    It reads the record once, and waits for transactions that began before it. The connection is outside a transaction,
    of somebody who may upgrade.
    """
    found = connection.execute(_STATE, (options.schema, FOLLOWED_INDEX)).fetchone()
    if found == (True,):
        return ""
    connection.execute(roles_sql(options, connection.info.dbname))
    connection.execute("SELECT set_config('lock_timeout', %s, false)", (f"{MOST_WAIT_SECONDS}s",))
    try:
        if found is not None:  # an earlier attempt ended half way
            dropped = sql.Identifier(options.schema, FOLLOWED_INDEX)
            connection.execute(sql.SQL("DROP INDEX CONCURRENTLY {}").format(dropped))
        connection.execute(_statement(options, connection.info.dbname))
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected, psycopg.errors.QueryCanceled) as error:
        return (
            f"The index {FOLLOWED_INDEX} could not be made ({str(error).splitlines()[0]}), so audits read the record in "
            "full. It waits for transactions that are older than itself: run the upgrade again when they have ended."
        )
    finally:
        connection.execute("RESET lock_timeout")
    return ""


def _statement(options: KitOptions, database: str) -> str:
    """The statement of the kit's text, for a table that is in use."""
    made = re.search(rf"^CREATE INDEX {FOLLOWED_INDEX} [^;]*;", kit_sql(options, database), re.M)
    assert made is not None, "the kit's text makes this index"
    return made[0].replace("CREATE INDEX", "CREATE INDEX CONCURRENTLY", 1)
