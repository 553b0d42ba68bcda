"""Ways into the record that lie outside the kit's schema: functions with somebody else's rights, views, event triggers.

The law: what can be seen is named; what cannot (what a superuser's function does in text it builds itself) is said to
be unknown.
"""

from __future__ import annotations

from typing import Any

import psycopg

from recovery_api.domain.kinds.postgresql_kit import KitOptions
from workers.connectors.sinks.kit import Names, quoted
from workers.connectors.sinks.kit.versions import FACTS_TABLES

Path = tuple[str, str | None, str]
NAMED_AT_MOST = 5

_FUNCTIONS = """
    SELECT p.oid::regprocedure::text, o.rolname, o.rolname = %(owner)s AS is_owners, o.rolsuper,
        p.prosrc ILIKE '%%accepted%%' OR p.prosrc LIKE '%%' || %(schema)s || '%%'
            OR EXISTS (SELECT FROM pg_depend d JOIN pg_class c ON c.oid = d.refobjid AND c.relnamespace = k.oid
                       WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.refclassid = 'pg_class'::regclass)
            AS names_it,
        CASE WHEN has_function_privilege('public', p.oid, 'EXECUTE') THEN 'everybody'
             ELSE (SELECT string_agg(DISTINCT pg_get_userbyid(x.grantee), ', ') FROM aclexplode(p.proacl) x
                   WHERE x.grantee <> p.proowner AND x.grantee <> 0) END AS callers
    FROM pg_namespace k
    JOIN pg_class a ON a.relnamespace = k.oid AND a.relname = 'accepted'
    CROSS JOIN pg_proc p
    JOIN pg_roles o ON o.oid = p.proowner
    JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE k.nspname = %(schema)s AND p.prosecdef AND n.oid <> k.oid
        AND n.nspname NOT IN ('pg_catalog', 'information_schema')
        AND has_table_privilege(o.oid, a.oid, 'INSERT')
        AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
        -- another pipeline's kit, with its own inspection
        AND NOT EXISTS (SELECT FROM pg_class r JOIN pg_class f ON f.relnamespace = r.relnamespace AND f.relname = ANY (%(kits)s)
                        WHERE r.relnamespace = n.oid AND r.relname = 'accepted' AND r.relowner = f.relowner
                            AND r.relowner = n.nspowner)
    ORDER BY 1"""

_VIEWS = """
    WITH RECURSIVE over AS (
        SELECT c.oid, c.oid AS base FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p') OR c.oid = to_regclass(%(target)s)
        UNION
        SELECT w.ev_class, over.base FROM over
            JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = over.oid AND d.classid = 'pg_rewrite'::regclass
            JOIN pg_rewrite w ON w.oid = d.objid AND w.ev_class <> over.oid
    )
    SELECT v.oid::regclass::text, over.base::regclass::text, pg_get_userbyid(v.relowner),
        CASE WHEN x.grantee = 0 THEN 'everybody' ELSE pg_get_userbyid(x.grantee) END,
        string_agg(DISTINCT x.privilege_type, ', ' ORDER BY x.privilege_type)
    FROM over JOIN pg_class v ON v.oid = over.oid AND v.relkind = 'v',
    LATERAL (
        SELECT g.grantee, g.privilege_type FROM aclexplode(coalesce(v.relacl, acldefault('r', v.relowner))) g
        UNION ALL
        SELECT g.grantee, g.privilege_type || ' (' || t.attname || ')' FROM pg_attribute t, LATERAL aclexplode(t.attacl) g
            WHERE t.attrelid = v.oid AND t.attacl IS NOT NULL) x
    WHERE x.privilege_type ~ '^(INSERT|UPDATE|DELETE)' AND x.grantee <> v.relowner
        AND NOT coalesce('security_invoker=true' = ANY (v.reloptions) OR 'security_invoker=on' = ANY (v.reloptions), false)
        AND has_table_privilege(v.relowner, over.base, 'INSERT, UPDATE, DELETE')
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 4"""

_EVENT_TRIGGERS = """
    SELECT t.evtname::text, t.evtfoid::regprocedure::text FROM pg_event_trigger t
    WHERE t.evtenabled <> 'D'
        AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_event_trigger'::regclass AND e.objid = t.oid AND e.deptype = 'e')
    ORDER BY 1"""


def ways_read(connection: psycopg.Connection[Any], kit: KitOptions, names: Names) -> list[Path]:
    """Each way as path, role and a sentence."""
    target = f"{quoted(kit.effect.schema)}.{quoted(kit.effect.name)}" if kit.effect.kind == "target" else None
    given = {"schema": kit.schema, "owner": names.owner, "target": target, "kits": FACTS_TABLES}
    with connection.transaction():
        connection.execute("SELECT set_config('search_path', 'pg_catalog', true)")
        functions = connection.execute(_FUNCTIONS, given).fetchall()
        views = connection.execute(_VIEWS, given).fetchall()
        events = connection.execute(_EVENT_TRIGGERS).fetchall()
    return [*_functions_told(functions), *_views_told(views), *_events_told(events)]


def _functions_told(rows: list[Any]) -> list[Path]:
    told: list[Path] = []
    silent = []
    for name, owner, is_owners, is_super, names_it, callers in rows:
        who = f"{callers} may call it" if callers else "nobody else may call it now"
        if is_owners:
            told.append(("function", None, f"Function {name} runs with the rights of the kit's owner {owner}: {who}."))
        elif names_it or not is_super:
            told.append(
                ("function", None, f"Function {name} runs with the rights of {owner}, who can write the record: {who}.")
            )
        elif callers:
            silent.append(name)
    if silent:
        more = "" if len(silent) <= NAMED_AT_MOST else f" and {len(silent) - NAMED_AT_MOST} more"
        told.append(
            (
                "function",
                None,
                f"{len(silent)} functions run with a superuser's rights and do not name the record; what they write"
                f" otherwise is not known: {', '.join(silent[:NAMED_AT_MOST])}{more}.",
            )
        )
    return told


def _views_told(rows: list[Any]) -> list[Path]:
    return [
        ("view", who, f"View {view} over {table}: {who} holds {what} on it, with the rights of its owner {owner}.")
        for view, table, owner, who, what in rows
    ]


def _events_told(rows: list[Any]) -> list[Path]:
    return [
        (
            "event trigger",
            None,
            f"Event trigger {name} calls {function} at DDL in this database, the kit's upgrade included.",
        )
        for name, function in rows
    ]
