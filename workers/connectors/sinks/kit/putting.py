"""Putting the kit into a sink's database, or showing what would be run: one way for the command and for the worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from recovery_api.domain.errors import BadInput
from recovery_api.domain.kinds.postgresql_kit import kit_options
from workers.connectors.credentials import credential_resolve
from workers.connectors.deadlines import Step
from workers.connectors.postgresql.connection import Address, connection_open
from workers.connectors.sinks.kit import MOST_WAIT_SECONDS, kit_sql, names_get, quoted
from workers.connectors.sinks.kit.inspection import kit_may_read, paths_read
from workers.connectors.sinks.kit.install import kit_install
from workers.connectors.sinks.kit.upgrade import kit_upgrade, upgrade_finish

UNNAMED_DATABASE = "DATABASE"
NOTHING_DONE: Mapping[str, Any] = {
    "installed": False,
    "upgraded": False,
    "from_version": None,
    "not_carried": [],
    "not_indexed": "",
}

Grants = Iterable[tuple[str, str]]
"""Pairs of a trade and the login that becomes one."""


def kit_script(parsed: Mapping[str, Any], grants: Grants, database: str) -> str:
    """What an administrator may run by hand: the kit and the grants in one transaction. Connects to nothing."""
    options = kit_options(parsed)
    names = names_get(options, database)
    granted = [f"GRANT {quoted(getattr(names, trade))} TO {quoted(login)};" for trade, login in grants]
    return "\n".join(["BEGIN;", kit_sql(options, database), *granted, "COMMIT;"])


def kit_put(parsed: Mapping[str, Any], grants: Grants, is_upgrade: bool = False) -> dict[str, Any]:
    """Installs the kit and grants its groups in one transaction; what is there already and the same is left.

    `is_upgrade`: brings a kit that is there to today's version instead. Returns `{installed, upgraded, from_version,
    schema, kit_version, roles, granted, not_carried, not_indexed, undisciplined_paths}`. Raises what `kit_install` and `kit_upgrade`
    do.
    """
    granted: dict[str, str] = {}
    grants = list(grants)
    address = Address.of(parsed)
    address = replace(address, names=(*address.names, *(login for _, login in grants)))
    with connection_open(address, "fencepost sink_install") as connection:
        with connection.transaction():
            kit = kit_options(parsed)
            done = kit_upgrade(connection, kit) if is_upgrade else kit_install(connection, kit)
            report: dict[str, Any] = {**NOTHING_DONE, **done}
            for trade, login in grants:
                group = sql.Identifier(report["roles"][trade])
                connection.execute(sql.SQL("GRANT {} TO {}").format(group, sql.Identifier(login)))
                granted[login] = trade
        if is_upgrade:
            connection.step = Step("making the record's index", waits_seconds=MOST_WAIT_SECONDS)
            report["not_indexed"] = upgrade_finish(connection, kit)
        paths = paths_read(connection, kit_options(parsed)) if kit_may_read(connection, report["schema"]) else []
    rows = [{"path": path, "role": role, "says": says} for path, role, says in paths]
    return {**report, "granted": granted, "undisciplined_paths": rows}


def database_of(reference: str | None) -> str:
    """The database that a connection string names: the kit's roles are named after it.

    Raises: AccessDenied where the reference cannot be resolved; BadInput where it names no database.
    """
    if reference is None:
        return UNNAMED_DATABASE
    try:
        database = conninfo_to_dict(credential_resolve(reference)).get("dbname")
    except psycopg.ProgrammingError as error:
        raise BadInput(reference, "does not hold a connection string", "Write a libpq URL or key=value.") from error
    if not database:
        raise BadInput(reference, "names no database", "Name it in the connection string.")
    return str(database)
