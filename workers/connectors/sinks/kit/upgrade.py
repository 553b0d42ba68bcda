"""Upgrading a kit in place: one transaction that keeps record, counters and claims, or changes nothing.

The law: no call that began inside an older text's functions may land past the newer text's lock. So `protocol`, which
every call reads first, is locked first (nobody waits for it while holding the lock, so nothing deadlocks), the old lock
after it; and the new text keeps its row under another name, so that a call that waited finds no `protocol` any more and
fails. Tried the other way: it is accepted, past the new lock.

The order: 1. the locks, each bounded, the waiting named; 2. the old schema is parked under another name; 3. the new text
runs as it is installed anywhere, so that what is there afterwards is what the kit installs; 4. the record's table moves
over and is made equal to the new one, without a copy; the small tables' rows are copied; 5. the parked rest is dropped,
and what is not the kit's stops the whole; 6. after the commit the index that the record lacks is built CONCURRENTLY, never
under these locks.
"""

from __future__ import annotations

from time import monotonic
from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.errors import NotFound, SinkBusy
from recovery_api.domain.kinds.postgresql_kit import KitOptions
from workers.connectors.sinks.kit import KIT_VERSION, kit_sql, lock_key, names_get, quoted, roles_sql
from workers.connectors.sinks.kit.indexes import index_make
from workers.connectors.sinks.kit.install import effect_refuse, errors_told, kit_as_named, kit_version_get
from workers.connectors.sinks.kit.keeping import rows_keep, table_keep
from workers.connectors.sinks.kit.leaving import grants_carry, parked_drop
from workers.connectors.sinks.kit.releases import releases_of
from workers.connectors.sinks.kit.versions import FACTS_TABLE, version_refuse

KEPT_IN_PLACE = "accepted"
ADVISORY_UNTIL = 3
"""The last version whose lock was an advisory key."""

_HOLDERS = """
    SELECT coalesce(string_agg(coalesce('session ' || l.pid || ' (' || coalesce(nullif(a.application_name, ''), 'no application name')
            || ', ' || coalesce(a.usename, 'role not visible') || ')', 'prepared transaction ' || p.gid), '; '), '')
    FROM pg_locks l
    LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    LEFT JOIN pg_locks x ON l.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid' AND x.granted
        AND x.virtualtransaction = l.virtualtransaction
    LEFT JOIN pg_prepared_xacts p ON p.transaction = x.transactionid
    WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()) AND """


def kit_upgrade(connection: psycopg.Connection[Any], options: KitOptions) -> dict[str, Any]:
    """Brings the kit in this schema to today's version, keeping everything; again: changes nothing, and makes the record's
    index where it is not there. A caller with a transaction of its own makes that index afterwards (`upgrade_finish`).

    Returns `{upgraded, from_version, schema, kit_version, roles, not_carried, not_indexed}`. `not_carried`: other logins'
    rights on the kit's objects that went with them, a sentence each; `not_indexed`: why the index could not be made, or "".
    Raises: NotFound without a kit; Unsuitable for a newer one, another effect, or something in the schema that is not
    the kit's; SinkBusy with whom it waited for; what `kit_install` raises.
    """
    is_idle = connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
    with errors_told(options), connection.transaction():
        report = _upgrade(connection, options)
    return report | {"not_indexed": upgrade_finish(connection, options) if is_idle else ""}


def upgrade_finish(connection: psycopg.Connection[Any], options: KitOptions) -> str:
    """What an upgrade does outside its transaction: the record's index. Why it could not be made, or ""."""
    options = kit_as_named(connection, options)
    with errors_told(options):
        says = index_make(connection, options)
        _owner_leave(connection, names_get(options, connection.info.dbname).owner)
    return says


def _upgrade(connection: psycopg.Connection[Any], options: KitOptions) -> dict[str, Any]:
    database = connection.info.dbname
    connection.execute("SELECT set_config('search_path', 'pg_catalog', true)")
    options = kit_as_named(connection, options)
    _execute(connection, roles_sql(options, database))
    found = kit_version_get(connection, options.schema)
    if found is None:
        raise NotFound(
            f"A sink kit in schema {options.schema!r}", "the sink's database", "Install it, without --upgrade."
        )
    version = found["kit_version"]
    names = names_get(options, database)
    report = {
        "schema": options.schema,
        "kit_version": KIT_VERSION,
        "from_version": version,
        "roles": {"relay": names.relay, "recoverer": names.recoverer, "auditor": names.auditor},
        "not_carried": [],
    }
    effect_refuse(found, options)
    if version == KIT_VERSION:
        _owner_leave(connection, names.owner)
        return report | {"upgraded": False}
    if not releases_of(version) or version > KIT_VERSION:
        raise version_refuse(version, options.schema)
    _locks_take(connection, options, version)
    parked = _park(connection, options.schema)
    _execute(connection, kit_sql(options, database))
    _execute(connection, roles_sql(options, database))  # the text's end gave the owner's rights back
    table_keep(connection, parked, options.schema, KEPT_IN_PLACE, names)
    rows_keep(connection, parked, options.schema, version)
    report["not_carried"] = grants_carry(connection, parked, options.schema, names)
    parked_drop(connection, parked, options.schema)
    _owner_leave(connection, names.owner)
    return report | {"upgraded": True}


def _locks_take(connection: psycopg.Connection[Any], options: KitOptions, version: int) -> None:
    """`protocol` first and alone, then the old lock, then every table of the kit that is copied or moved.

    All of them together wait no longer than one wait at this sink: deliveries queue behind the first.
    """
    until = monotonic() + options.lock_wait_seconds
    tables = [
        name
        for (name,) in connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p') ORDER BY 1",
            (quoted(options.schema),),
        )
    ]
    first = FACTS_TABLE[version]
    _table_lock(connection, options, first, until)
    if version <= ADVISORY_UNTIL:
        key = lock_key(options.schema)
        _bounded(
            connection,
            options,
            sql.SQL("SELECT pg_advisory_xact_lock({})").format(sql.Literal(key)),
            "l.locktype = 'advisory' AND l.objsubid = 1 AND (l.classid::bigint << 32 | l.objid::bigint) = %s",
            key,
            until,
        )
    for table in tables:
        if table != first:
            _table_lock(connection, options, table, until)


def _table_lock(connection: psycopg.Connection[Any], options: KitOptions, table: str, until: float) -> None:
    _bounded(
        connection,
        options,
        sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.Identifier(options.schema, table)),
        "l.locktype = 'relation' AND l.relation = to_regclass(%s)",
        f"{quoted(options.schema)}.{quoted(table)}",
        until,
    )


def _bounded(
    connection: psycopg.Connection[Any],
    options: KitOptions,
    statement: sql.Composed,
    which: str,
    lock: Any,
    until: float,
) -> None:
    """Takes a lock before `until`, or raises SinkBusy with the names of who holds it (`which` finds them by `lock`)."""
    rest = str(max(1, int((until - monotonic()) * 1000)))
    connection.execute("SELECT set_config('lock_timeout', %s, true)", (rest,))
    try:
        with connection.transaction():
            connection.execute(statement)
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
        row = connection.execute(_HOLDERS + which, (lock,)).fetchone()
        holders = row[0] if row and row[0] else "a transaction that has ended meanwhile"
        raise SinkBusy(f"{holders} (upgrading the kit; nothing was changed)", options.lock_wait_seconds) from error


def _park(connection: psycopg.Connection[Any], schema: str) -> str:
    """The old schema under a name of its own, until it is dropped at the end of this transaction."""
    row = connection.execute("SELECT 'fencepost_parked_' || %s::regnamespace::oid", (quoted(schema),)).fetchone()
    assert row is not None
    parked: str = row[0]
    connection.execute(sql.SQL("ALTER SCHEMA {} RENAME TO {}").format(sql.Identifier(schema), sql.Identifier(parked)))
    return parked


def _owner_leave(connection: psycopg.Connection[Any], owner: str) -> None:
    row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    if row is not None and not row[0]:
        connection.execute(sql.SQL("REVOKE {} FROM CURRENT_USER").format(sql.Identifier(owner)))


def _execute(connection: psycopg.Connection[Any], script: str) -> None:
    connection.execute(script)
