"""What a kit can do, found out by asking the server it lies in; never by what was registered."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from recovery_api.domain.capabilities import Archetype, Capability
from recovery_api.domain.errors import FencepostError
from recovery_api.domain.kinds.postgresql_kit import KitOptions
from workers.connectors.base import ConnectionReport
from workers.connectors.postgresql.poolers import pooler_weaknesses
from workers.connectors.sinks.kit import KIT_VERSION, names_get
from workers.connectors.sinks.kit.install import kit_version_get
from workers.connectors.sinks.kit.record import latest_read

_SERVER = """
    SELECT current_setting('server_version') AS server_version, current_setting('server_encoding') AS encoding,
        pg_is_in_recovery() AS is_replica, current_setting('fsync') = 'on' AS is_durable,
        (SELECT count(*) FROM pg_stat_replication) AS standbys,
        current_setting('synchronous_standby_names') <> '' AS has_synchronous_standby,
        current_database() AS database, session_user AS role"""

_RIGHTS = """
    SELECT has_table_privilege(a.oid, 'SELECT') AS can_read, row_security_active(a.oid) AS is_filtered,
        has_table_privilege(s.oid, 'INSERT') AS can_stage,
        (SELECT bool_and(has_function_privilege(p.oid, 'EXECUTE')) FROM pg_proc p
            WHERE p.pronamespace = a.relnamespace
                AND p.proname IN ('generation_allocate', 'claim', 'claim_open', 'claim_find', 'arm', 'fire', 'settle')) AS can_recover
    FROM pg_class a JOIN pg_class s ON s.relnamespace = a.relnamespace AND s.relname = 'staged'
    WHERE a.relname = 'accepted' AND a.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)"""


def kit_test(connection: psycopg.Connection[Any], kit: KitOptions) -> ConnectionReport:
    """Whether the kit is there, of this version, and whether this login can read it and recover through it."""
    server = _one(connection, _SERVER)
    facts: dict[str, Any] = {name: server[name] for name in ("server_version", "database", "role", "is_replica")}
    problems: list[str] = []
    weaknesses = pooler_weaknesses(connection)
    if server["encoding"] != "UTF8":
        problems.append(f"The database is encoded in {server['encoding']}; the kit needs UTF8.")
    try:
        found = kit_version_get(connection, kit.schema)
    except FencepostError as error:
        return ConnectionReport(False, facts, (*problems, str(error)))
    if found is None:
        problems.append(f"Schema {kit.schema!r} holds no sink kit. Install it: manage.py sink_install.")
        return ConnectionReport(False, facts, tuple(problems))
    facts |= {"kit_version": found["kit_version"], "kit": found["identity"], "effect": found["effect"]}
    if found["kit_version"] != KIT_VERSION:
        problems.append(f"The kit is of version {found['kit_version']}; this Fencepost speaks version {KIT_VERSION}.")
        return ConnectionReport(False, facts, tuple(problems))
    if found["effect"] != kit.effect.as_row():
        problems.append(f"The kit was installed with another effect: {found['effect']}.")
    rights = _one(connection, _RIGHTS, kit.schema)
    groups = names_get(kit, server["database"])
    if not rights["can_read"]:
        problems.append(f"This login cannot read the record. GRANT {groups.auditor} TO {server['role']};")
    elif rights["is_filtered"]:
        problems.append("A row security policy hides part of the record from this login.")
    if not (rights["can_recover"] and rights["can_stage"]):
        weaknesses.append(f"This login can audit, not recover. GRANT {groups.recoverer} TO {server['role']};")
    if server["is_replica"]:
        problems.append("This server is a replica; what is read here is not what was accepted. Use the primary.")
    if rights["can_read"]:
        weaknesses += [says for _, _, says in paths_read(connection, kit.schema)]
    sample = latest_read(connection, kit.schema) if rights["can_read"] and not rights["is_filtered"] else None
    return ConnectionReport(not problems, facts, tuple(problems), tuple(weaknesses), sample)


def kit_capability(connection: psycopg.Connection[Any], kit: KitOptions) -> Capability:
    """The kit's capability as tested now: fenced where it is the kit, can be read whole, and can be fired at."""
    report = kit_test(connection, kit)
    server = _one(connection, _SERVER)
    if not report.is_usable:
        return Capability(Archetype.BLIND, False, False, False, False, False, grounds=report.problems)
    rights = _one(connection, _RIGHTS, kit.schema)
    may_lose = not server["is_durable"] or (server["standbys"] > 0 and not server["has_synchronous_standby"])
    can_recover = bool(rights["can_recover"] and rights["can_stage"])
    limit = _one(
        connection,
        sql.SQL("SELECT (facts ->> 'batch_limit')::bigint AS batch_limit FROM {}.state()").format(
            sql.Identifier(kit.schema)
        ),
    )
    grounds = [
        f"The kit of version {KIT_VERSION} is installed in schema {kit.schema!r}; it checks the fence at admission.",
        "The record can be read whole on the primary.",
        "A coordinate is accepted once, for good: it is the record's primary key.",
        "A batch lands in one transaction with the check of its digest.",
        *report.weaknesses,
    ]
    if may_lose:
        grounds.append(
            "Its fail-over is asynchronous, or fsync is off: acceptances can be lost when a standby takes over."
        )
    return Capability(
        archetype=Archetype.FENCED if can_recover else Archetype.QUERYABLE,
        can_read_record=True,
        is_record_complete=True,
        has_fence=can_recover,
        has_identity_key=True,
        lands_in_one_transaction=can_recover,
        can_lose_acceptances=may_lose,
        batch_limit=limit["batch_limit"],
        grounds=tuple(grounds),
    )


def kit_may_read(connection: psycopg.Connection[Any], schema: str) -> bool:
    """Whether this login may ask for the undisciplined paths: who only installs may not."""
    query = (
        "SELECT bool_and(has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE')) AS may"
        " FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        " WHERE n.nspname = %s AND p.proname = 'undisciplined_paths'"
    )
    return bool(_one(connection, query, schema)["may"])


def paths_read(connection: psycopg.Connection[Any], schema: str) -> list[tuple[str, str | None, str]]:
    """Who can write record or target by another way than admission: path, role, and a sentence."""
    query = sql.SQL("SELECT path, role, says FROM {}.undisciplined_paths()").format(sql.Identifier(schema))
    return [(path, role, says) for path, role, says in connection.execute(query)]


def _one(connection: psycopg.Connection[Any], query: Any, *arguments: Any) -> dict[str, Any]:
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(query, arguments or None).fetchone()
    assert row is not None
    return row
