"""Installing the kit: once, whole, or not at all; never over another version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
from psycopg.rows import dict_row

from recovery_api.domain.errors import AccessDenied, NotFound, Unsuitable
from recovery_api.domain.kinds.postgresql_kit import KitOptions
from workers.connectors.postgresql.sqlstates import sentence_of
from workers.connectors.sinks.kit import KIT_VERSION, kit_sql, names_get, quoted
from workers.connectors.sinks.kit.versions import FACTS_TABLE, FACTS_TABLES, version_refuse

OLDEST_SERVER = 150000
OWNER_SUFFIX = "_owner"
OTHERWISE = "compares keys otherwise than the column does"
"""The kit's words (applied_target.sql)."""


def kit_install(connection: psycopg.Connection[Any], options: KitOptions) -> dict[str, Any]:
    """Installs the kit and returns `{installed, schema, kit_version, roles}`; `installed` False: it was there already.

    Raises: Unsuitable for a kit of another version or shape, a schema used otherwise, or a server that cannot serve;
    AccessDenied where the login may not install; NotFound for a missing target or effect.
    """
    with errors_told(options), connection.transaction():
        return _install(connection, options)


@contextmanager
def errors_told(options: KitOptions) -> Iterator[None]:
    """What the server refuses of the kit's text, as the product's errors."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise AccessDenied(
            f"installing the kit in schema {options.schema!r}",
            _says(error, options),
            "Install as a superuser, or as the target's owner with CREATEROLE and CREATE on the database; "
            "--print shows the SQL to hand to somebody who may.",
        ) from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedFunction) as error:
        what = f"the {options.effect.kind} that the effect names ({_says(error, options)})"
        raise NotFound(what, "the sink's database", "Create it first.") from error
    except psycopg.errors.InvalidColumnReference as error:
        raise Unsuitable("the target", *_index_says(error, str(options.effect.key))) from error


def kit_version_get(connection: psycopg.Connection[Any], schema: str) -> dict[str, Any] | None:
    """`{kit_version, effect, identity}` of the kit in `schema`, or None where there is no such schema.

    Raises: Unsuitable where the schema holds something else; AccessDenied where the login may not look.
    """
    with connection.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(
            "SELECT has_schema_privilege(n.oid, 'USAGE')"
            " AND coalesce(has_table_privilege(p.oid, 'SELECT'), true) AS may_look"
            ", p.relname FROM pg_namespace n LEFT JOIN pg_class p ON p.relnamespace = n.oid AND p.relkind = 'r' AND p.relname = ANY (%s)"
            " WHERE n.nspname = %s ORDER BY p.relname",
            (list(FACTS_TABLES), schema),
        ).fetchone()
        if found is None:
            return None
        if found["relname"] is None:
            raise Unsuitable(f"schema {schema!r}", "it exists and is no sink kit", "Choose another schema.")
        if not found["may_look"]:
            raise AccessDenied(
                f"schema {schema!r}", "this login cannot read the record", "Grant it the kit's recoverers or auditors."
            )
        place = f"{quoted(schema)}.{quoted(found['relname'])}"
        return cursor.execute(f"SELECT kit_version, effect, identity::text FROM {place}").fetchone()  # nosec B608 # built of constants; names are quoted


def kit_as_named(connection: psycopg.Connection[Any], options: KitOptions) -> KitOptions:
    """The options with the prefix that the installed kit's roles have: in a copy of a database under another name, or
    where the prefix was left out at registering, the roles are not those that the options would make now."""
    row = connection.execute(
        "SELECT r.rolname FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner WHERE n.nspname = %s",
        (options.schema,),
    ).fetchone()
    if row is None or not row[0].endswith(OWNER_SUFFIX):
        return options
    return replace(options, prefix=row[0].removesuffix(OWNER_SUFFIX))


def _install(connection: psycopg.Connection[Any], options: KitOptions) -> dict[str, Any]:
    server = connection.info.server_version
    if server < OLDEST_SERVER:
        raise Unsuitable("the sink", f"PostgreSQL {server // 10000} is too old for the kit", "Use 15 or newer.")
    if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
        raise Unsuitable("the sink", f"its database is encoded in {encoding}", "The kit needs a UTF8 database.")
    database = connection.info.dbname
    names = names_get(options, database)
    report = {
        "schema": options.schema,
        "kit_version": KIT_VERSION,
        "roles": {"relay": names.relay, "recoverer": names.recoverer, "auditor": names.auditor},
    }
    found = kit_version_get(connection, options.schema)
    if found is None:
        connection.execute(kit_sql(options, database))
        return report | {"installed": True}
    _same_or_refuse(found, options)
    return report | {"installed": False} | _lanes_told(connection, options)


def _lanes_told(connection: psycopg.Connection[Any], options: KitOptions) -> dict[str, list[str]]:
    """Tells a kit that is there the lanes that the options name, where it knows others."""
    schema, wanted = quoted(options.schema), sorted(options.lanes)
    known = connection.execute(f"SELECT lanes FROM {schema}.{FACTS_TABLE[KIT_VERSION]}").fetchone()  # nosec B608 # built of constants; names are quoted
    if not wanted or known is None or sorted(known[0] or ()) == wanted:
        return {}
    connection.execute(f"SELECT {schema}.lanes_tell(%s)", (wanted,))
    return {"lanes_told": wanted}


def _same_or_refuse(found: Mapping[str, Any], options: KitOptions) -> None:
    if found["kit_version"] != KIT_VERSION:
        raise version_refuse(found["kit_version"], options.schema)
    effect_refuse(found, options)


def effect_refuse(found: Mapping[str, Any], options: KitOptions) -> None:
    """Raises: Unsuitable where the kit applies accepted events otherwise than these options say."""
    if found["effect"] != options.effect.as_row():
        raise Unsuitable(
            f"schema {options.schema!r}",
            f"its kit was installed with the effect {found['effect']}, not {options.effect.as_row()}",
            "Nothing was changed. Register the sink as it was installed, or install into another schema.",
        )


def _index_says(error: psycopg.Error, key: str) -> tuple[str, str]:
    """What is wrong with the target's unique index, by the kit's own word for it, and what to do."""
    if OTHERWISE in (error.diag.message_primary or ""):
        return (
            f"its unique index on {key} {OTHERWISE}",
            f"Give it a unique index on {key} with the column's own collation and operators.",
        )
    return f"it has no unique index on {key} alone", "Give it a primary key or unique index on the key."


def _says(error: psycopg.Error, options: KitOptions) -> str:
    """What the server refused, with names that the options hold."""
    names = [options.schema, *(str(value) for value in options.effect.as_row().values() if value)]
    parts = [part for name in names for part in (name, *name.split("."))]
    return sentence_of(error.sqlstate or "XX000", str(error), parts)
