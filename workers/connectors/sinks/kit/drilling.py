"""A drill's namespace: another schema beside the kit's own, with roles of its own, running the functions that are
installed in the pipeline's schema.

The law: nothing here can reach the pipeline's record. The drill's functions belong to an owner made for it, which holds
no right on the pipeline's schema, so that even a function somebody changed by hand is refused there. Schema and roles
are made in one transaction and go in one; what a crash leaves carries its mark, and the next drill takes it away.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.errors import AccessDenied, Refused, Unsuitable
from recovery_api.domain.kinds.postgresql_kit import Effect, KitOptions
from workers.connectors.postgresql.connection import Address, connection_open
from workers.connectors.sinks.kit import KIT_VERSION, names_get, quoted, text
from workers.connectors.sinks.kit.install import kit_install, kit_version_get
from workers.connectors.sinks.kit.versions import version_refuse

MARK = "A drill's namespace. Fencepost removes it."
TRADES = ("owner", "relay", "recoverer", "auditor")
LOCKED = ("lock", "counter", "claim")
"""Tables that functions name in texts."""
NOT_PLAYED = ("undisciplined_paths",)
"""Functions that no step of the protocol calls and that name the schema's tables in texts."""
EFFECTS = {
    "effect_of_event": '(lane text, "position" bigint, ordinal bigint, op text, key text, content jsonb)',
    "effect_of_batch": "(generation bigint, arm bigint)",
    "effects_of_many": "(events jsonb, answers text[])",
}
"""In a drill an effect does nothing: the target is the pipeline's."""
LOCK_SECONDS = 10

_MAY = """
    SELECT r.rolsuper OR has_database_privilege(current_database(), 'CREATE'), r.rolsuper OR r.rolcreaterole
    FROM pg_roles r WHERE r.rolname = current_user"""

_FUNCTIONS = """
    SELECT p.proname, ARRAY(SELECT t.typname FROM unnest(p.proargtypes) WITH ORDINALITY a (type, nth)
                            JOIN pg_type t ON t.oid = a.type ORDER BY a.nth)::text, p.prosrc, p.prosecdef, p.provolatile, p.proconfig,
        pg_get_functiondef(p.oid)
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = %s"""


@contextmanager
def namespace_open(address: Address, kit: KitOptions) -> Iterator[tuple[KitOptions, tuple[str, ...]]]:
    """The kit of a fresh drill schema, and what is to be said of it; schema and roles are gone at the end.

    Raises: AccessDenied with the grants that are missing; Unsuitable where the sink has no kit of this shape.
    """
    with connection_open(address, "fencepost drill") as connection:
        may_check(connection)
        leftovers_remove(connection, kit)
        name = f"{_stem(connection.info.dbname, kit.schema)}_{secrets.token_hex(4)}"
        notes = namespace_make(connection, kit, name)
    try:
        yield drill_kit(kit, name), notes
    finally:
        with connection_open(address, "fencepost drill") as connection:
            _remove(connection, name)


def drill_kit(kit: KitOptions, name: str) -> KitOptions:
    """The options of a drill's kit: as the pipeline's, without its effect. Raises: Refused for the pipeline's own schema."""
    if name == kit.schema:
        raise Refused(f"A drill in schema {name!r}", "that is the pipeline's own record", "A drill has its own schema.")
    return replace(kit, schema=name, prefix=name, effect=Effect())


def namespace_make(connection: psycopg.Connection[Any], kit: KitOptions, name: str) -> tuple[str, ...]:
    """Makes schema `name` and its roles, running the functions installed in the pipeline's schema. Returns what differs
    between those and the ones this version installs.

    Raises: Refused where `name` is the pipeline's own schema or is there already.
    """
    drill = drill_kit(kit, name)
    found = kit_version_get(connection, kit.schema)
    if found is not None and found["kit_version"] != KIT_VERSION:
        raise version_refuse(found["kit_version"], kit.schema)
    if found is None:
        raise Unsuitable(
            f"schema {kit.schema!r}", "it holds no sink kit, so there is no fence to drill", "Install it: sink_install."
        )
    if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [name]).fetchone():
        raise Refused(f"A drill in schema {name!r}", "that schema exists already", "A drill makes its own.")
    with connection.transaction():
        connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        kit_install(connection, drill)
        owner = names_get(drill, connection.info.dbname).owner
        _join(connection, name)
        connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(owner)))
        connection.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(name), sql.Literal(MARK)))
        differing = _functions_take_over(connection, kit, drill)
        connection.execute("RESET ROLE")
    if not differing:
        return ()
    return (f"The installed kit differs from the one this version installs in: {', '.join(differing)}.",)


def may_check(connection: psycopg.Connection[Any]) -> None:
    """Raises: AccessDenied naming what to grant for a drill."""
    row = connection.execute(_MAY).fetchone()
    may_create, may_make_roles = row or (False, False)
    login, database = connection.info.user, connection.info.dbname
    grants = []
    if not may_create:
        grants.append(f"GRANT CREATE ON DATABASE {quoted(database)} TO {quoted(login)};")
    if not may_make_roles:
        grants.append(f"ALTER ROLE {quoted(login)} CREATEROLE;")
    if grants:
        raise AccessDenied(
            "The drill's namespace",
            f"{login} may not make a schema with roles of its own in {database}",
            f"{' '.join(grants)} Or name another login in the sink's option drill_connection.",
        )


def leftovers_remove(connection: psycopg.Connection[Any], kit: KitOptions) -> list[str]:
    """Takes away what crashed drills of this kit left; the names that were."""
    pattern = f"^{_stem(connection.info.dbname, kit.schema)}_[0-9a-f]{{8}}"
    schemas = connection.execute(
        "SELECT n.nspname FROM pg_namespace n WHERE n.nspname ~ %s AND n.nspname <> %s"
        " AND obj_description(n.oid, 'pg_namespace') = %s",
        (f"{pattern}$", kit.schema, MARK),
    ).fetchall()
    roles = connection.execute(
        "SELECT r.rolname FROM pg_roles r WHERE r.rolname ~ %s", (f"{pattern}_({'|'.join(TRADES)})$",)
    ).fetchall()
    names = sorted({name for (name,) in schemas} | {role.rpartition("_")[0] for (role,) in roles})
    for name in names:
        _remove(connection, name)
    return names


def _stem(database: str, schema: str) -> str:
    """What the drills of one kit are called. Roles are the cluster's, so the database is in it."""
    return f"fencepost_drill_{hashlib.sha256(f'{database}:{schema}'.encode()).hexdigest()[:8]}"


def _functions_take_over(connection: psycopg.Connection[Any], kit: KitOptions, drill: KitOptions) -> list[str]:
    installed = _functions(connection, kit.schema)
    differing = []
    for name, header in EFFECTS.items():
        connection.execute(f"CREATE FUNCTION {quoted(drill.schema)}.{name}{header} RETURNS void LANGUAGE sql AS ''")
    for key, (own_body, *own_shape, definition) in _functions(connection, drill.schema).items():
        if key[0] in NOT_PLAYED or key[0] in EFFECTS:
            continue
        if key not in installed:
            raise Unsuitable(f"the sink kit in {kit.schema!r}", f"it has no function {key[0]}({key[1]})", "Install it.")
        body, *shape, _ = installed[key]
        body = _moved(body, connection.info.dbname, kit, drill)
        if _bare(body) != _bare(own_body) or shape != own_shape:
            differing.append(key[0])
            definition = definition.replace(own_body, body)
            if "SECURITY DEFINER" in definition and not shape[0]:
                definition = definition.replace("SECURITY DEFINER", "SECURITY INVOKER")
            connection.execute(definition)
    return differing


def _functions(connection: psycopg.Connection[Any], schema: str) -> dict[tuple[str, str], list[Any]]:
    """Each function of a schema by name and arguments: body, whether it runs as its owner, volatility, settings, text."""
    return {(name, arguments): rest for name, arguments, *rest in connection.execute(_FUNCTIONS, [schema]).fetchall()}


def _moved(body: str, database: str, kit: KitOptions, drill: KitOptions) -> str:
    """A function's body with the pipeline's schema, locks and roles replaced by the drill's."""
    theirs, ours = names_get(kit, database), names_get(drill, database)
    body = body.replace(quoted(kit.schema), quoted(drill.schema))
    body = body.replace(text(kit.schema), text(drill.schema))
    for name in LOCKED:
        body = body.replace(text(f"{quoted(kit.schema)}.{name}"), text(f"{quoted(drill.schema)}.{name}"))
    for trade in TRADES:
        body = body.replace(text(getattr(theirs, trade)), text(getattr(ours, trade)))
    return body


def _bare(body: str) -> str:
    """A body without what an effect of the pipeline adds to it."""
    body = re.sub(r"lock_holders\(to_regclass\([^;]*\)\);", "lock_holders(NULL::oid);", body)
    return re.sub(r'PERFORM "[^;]*"\.effects?_of_(event|batch|many)\([^;]*\);|NULL;', "NULL;", body)


def _join(connection: psycopg.Connection[Any], name: str) -> None:
    """Makes this login a member of the drill's roles, which it made; a superuser needs no such thing."""
    row = connection.execute("SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user").fetchone()
    if row and row[0]:
        return
    found = connection.execute(
        "SELECT r.rolname FROM pg_roles r WHERE r.rolname = ANY (%s)", ([f"{name}_{trade}" for trade in TRADES],)
    ).fetchall()
    for (role,) in found:
        connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(role)))


def _remove(connection: psycopg.Connection[Any], name: str) -> None:
    """Takes away a drill's schema and roles, in one transaction. Does nothing where there is nothing of that name."""
    with connection.transaction():
        connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        _join(connection, name)
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))
        for trade in TRADES:
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(f"{name}_{trade}")))
