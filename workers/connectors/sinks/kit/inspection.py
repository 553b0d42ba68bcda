"""What a kit can do, found out by asking the server it lies in; never by what was registered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from recovery_api.domain.capabilities import Archetype, Capability
from recovery_api.domain.conditions import undisciplined_weaknesses
from recovery_api.domain.errors import FencepostError
from recovery_api.domain.kinds.postgresql_kit import KitOptions
from workers.connectors.postgresql.flushing import durability_weaknesses
from workers.connectors.postgresql.poolers import pooler_weaknesses
from workers.connectors.readings import ConnectionReport
from workers.connectors.sinks.kit import KIT_VERSION, names_get
from workers.connectors.sinks.kit.expected import Difference, differences
from workers.connectors.sinks.kit.facts import installed_read
from workers.connectors.sinks.kit.following import following_read
from workers.connectors.sinks.kit.install import kit_as_named, kit_version_get
from workers.connectors.sinks.kit.record import latest_read
from workers.connectors.sinks.kit.versions import FACTS_TABLE, is_known, unfenced_by_version, version_refuse
from workers.connectors.sinks.kit.ways import ways_read

TELLS = "undisciplined_paths("
"""The kit's own function that names who may write what."""

_SERVER = """
    SELECT current_setting('server_version') AS server_version, current_setting('server_encoding') AS encoding,
        pg_is_in_recovery() AS is_replica, current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on' AS is_durable,
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


@dataclass(frozen=True, slots=True)
class Found:
    """One look at what is installed: how it differs from its version's text, and every way past admission."""

    differing: tuple[Difference, ...] = ()
    paths: tuple[tuple[str, str | None, str], ...] = ()

    @property
    def unreliable(self) -> list[str]:
        """What takes the fence away: a sentence each."""
        return [difference.says for difference in self.differing if difference.breaks_admission]

    @property
    def has_identity_key(self) -> bool:
        return not any(difference.breaks_identity for difference in self.differing)


def kit_test(connection: psycopg.Connection[Any], kit: KitOptions) -> ConnectionReport:
    """Whether the kit is there, of this version, and whether this login can read it and recover through it."""
    return _test(connection, kit)[0]


def _test(connection: psycopg.Connection[Any], kit: KitOptions) -> tuple[ConnectionReport, Found, int]:
    """The report, what was found, and the installed version (0: none)."""
    server = _one(connection, _SERVER)
    facts: dict[str, Any] = {name: server[name] for name in ("server_version", "database", "role", "is_replica")}
    problems: list[str] = []
    weaknesses = pooler_weaknesses(connection) + durability_weaknesses(connection)
    if server["encoding"] != "UTF8":
        problems.append(f"The database is encoded in {server['encoding']}; the kit needs UTF8.")
    try:
        found = kit_version_get(connection, kit.schema)
    except FencepostError as error:
        return ConnectionReport(False, facts, (*problems, str(error))), Found(), 0
    if found is None:
        problems.append(f"Schema {kit.schema!r} holds no sink kit. Install it: manage.py sink_install.")
        return ConnectionReport(False, facts, tuple(problems)), Found(), 0
    version = found["kit_version"]
    facts |= {"kit_version": version, "kit": found["identity"], "effect": found["effect"]}
    if not is_known(version):
        problems.append(str(version_refuse(version, kit.schema)))
        return ConnectionReport(False, facts, tuple(problems)), Found(), version
    if version != KIT_VERSION:
        weaknesses.append(unfenced_by_version(version, kit.schema))
    if found["effect"] != kit.effect.as_row():
        problems.append(f"The kit was installed with another effect: {found['effect']}.")
        return ConnectionReport(False, facts, tuple(problems)), Found(), version
    rights = _one(connection, _RIGHTS, kit.schema)
    groups = names_get(kit_as_named(connection, kit), server["database"])
    if not rights["can_read"]:
        problems.append(f"This login cannot read the record. GRANT {groups.auditor} TO {server['role']};")
    elif rights["is_filtered"]:
        problems.append("A row security policy hides part of the record from this login.")
    if not (rights["can_recover"] and rights["can_stage"]) and version == KIT_VERSION:
        weaknesses.append(f"This login can audit, not recover. GRANT {groups.recoverer} TO {server['role']};")
    if server["is_replica"]:
        problems.append("This server is a replica; what is read here is not what was accepted. Use the primary.")
    looked = Found()
    if rights["can_read"]:
        looked = kit_look(connection, kit, version)
        weaknesses += undisciplined_weaknesses(looked.paths)
        if problem := following_read(connection, kit.schema).problem:
            weaknesses.append(problem)
    sample = latest_read(connection, kit.schema) if rights["can_read"] and not rights["is_filtered"] else None
    return ConnectionReport(not problems, facts, tuple(problems), tuple(weaknesses), sample), looked, version


def kit_capability(connection: psycopg.Connection[Any], kit: KitOptions) -> Capability:
    """The kit's capability as tested now: fenced where it is the kit as its text installs it, and can be fired at."""
    report, found, version = _test(connection, kit)
    server = _one(connection, _SERVER)
    if not report.is_usable:
        return Capability(Archetype.BLIND, False, False, False, False, False, grounds=report.problems)
    rights = _one(connection, _RIGHTS, kit.schema)
    may_lose = not server["is_durable"] or (server["standbys"] > 0 and not server["has_synchronous_standby"])
    unfenced = ""
    if version != KIT_VERSION:
        unfenced = unfenced_by_version(version, kit.schema)
    elif found.unreliable:
        unfenced = f"The fence cannot be relied on: {' '.join(found.unreliable)}"
    can_fire = bool(rights["can_recover"] and rights["can_stage"]) and not unfenced
    facts = sql.Identifier(kit.schema, FACTS_TABLE[version])
    told = _one(connection, sql.SQL("SELECT batch_limit, to_jsonb(p) -> 'lanes' AS lanes FROM {} p").format(facts))
    grounds = [
        unfenced
        or f"The kit of version {version} is installed in schema {kit.schema!r} as its text installs it; it checks the "
        "fence at admission.",
        "The record can be read whole on the primary.",
        "A coordinate is accepted once, for good: it is the record's primary key."
        if found.has_identity_key
        else "A coordinate can be accepted twice: the record's primary key is not there.",
        "A batch lands in one transaction with the check of its digest.",
        _lanes_said(told["lanes"]),
        *report.weaknesses,
    ]
    if may_lose:
        grounds.append(
            "Its fail-over is asynchronous, or fsync or full_page_writes is off: a crash or a fail-over can lose acceptances."
        )
    return Capability(
        archetype=Archetype.FENCED if can_fire else Archetype.QUERYABLE,
        can_read_record=True,
        is_record_complete=True,
        has_fence=can_fire,
        has_identity_key=found.has_identity_key,
        lands_in_one_transaction=can_fire,
        can_lose_acceptances=may_lose,
        batch_limit=told["batch_limit"],
        grounds=tuple(grounds),
        unfenced_because=unfenced,
    )


def _lanes_said(lanes: list[str] | None) -> str:
    if lanes is None:
        return (
            "It was not told the source's lanes, so a delivery's lane is not checked: install it with the option lanes."
        )
    named = f"the lane {lanes[0]}" if len(lanes) == 1 else f"the lanes {', '.join(lanes[:-1])} and {lanes[-1]}"
    return f"It refuses a delivery in any lane but {named}."


def kit_may_read(connection: psycopg.Connection[Any], schema: str) -> bool:
    """Whether this login may ask for the undisciplined paths: who only installs may not."""
    query = (
        "SELECT bool_and(has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE')) AS may"
        " FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        " WHERE n.nspname = %s AND p.proname = 'undisciplined_paths'"
    )
    return bool(_one(connection, query, schema)["may"])


def paths_read(connection: psycopg.Connection[Any], kit: KitOptions) -> list[tuple[str, str | None, str]]:
    """Who can write record or target by another way than admission, and what is not as the kit installs it: path, role,
    and a sentence."""
    found = kit_version_get(connection, kit.schema)
    return list(kit_look(connection, kit, found["kit_version"]).paths) if found else []


def kit_look(connection: psycopg.Connection[Any], kit: KitOptions, version: int) -> Found:
    """Compares what is installed with what this version installs, object by object, and looks for ways around it."""
    database = connection.info.dbname
    kit = kit_as_named(connection, kit)
    names = names_get(kit, database)
    differing = differences(installed_read(connection, kit, names), kit, database, version)
    query = sql.SQL("SELECT path, role, says FROM {}.undisciplined_paths()").format(sql.Identifier(kit.schema))
    own = list(connection.execute(query)) if _is_callable(connection, kit.schema) else []
    speaks = own and not any(one.object.startswith(TELLS) for one in differing)
    paths = [
        *own,
        *(
            ("kit", None, one.says)
            for one in differing
            if not (one.is_of_speed or (speaks and _is_told_by_the_kit(one)))
        ),
        *ways_read(connection, kit, names),
    ]
    return Found(tuple(differing), tuple(paths))


def _is_told_by_the_kit(difference: Difference) -> bool:
    """Whether the kit's own function, where it is as installed, names this with the role that can use it."""
    is_on_table = difference.object.startswith(("table ", "column "))
    if difference.kind in ("owner", "grants") and is_on_table:
        return True
    return difference.kind == "trigger" and difference.state == "missing"


def _is_callable(connection: psycopg.Connection[Any], schema: str) -> bool:
    query = (
        "SELECT count(*) = 1 AS is_there FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        " WHERE n.nspname = %s AND p.proname = 'undisciplined_paths' AND p.pronargs = 0"
    )
    return bool(_one(connection, query, schema)["is_there"])


def _one(connection: psycopg.Connection[Any], query: Any, *arguments: Any) -> dict[str, Any]:
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(query, arguments or None).fetchone()
    assert row is not None
    return row
