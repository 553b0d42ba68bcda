"""What is installed, object by object, as the catalogue tells it: facts that are alike on every server and in every schema.

The law: read from the catalogue by the product's own queries, never by a function of the kit, which might be replaced.
Names of the schema and of the kit's roles are written as `{schema}` and `{owner}`, so that two installations compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from recovery_api.domain.kinds.postgresql_kit import KitOptions
from workers.connectors.sinks.kit import Names, quoted

_ACL = """coalesce((SELECT string_agg(g.says, ', ' ORDER BY g.says) FROM (
        SELECT CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE coalesce(r.says, pg_get_userbyid(x.grantee)) END || ' '
            || string_agg(x.privilege_type || CASE WHEN x.is_grantable THEN ' (grantable)' ELSE '' END, '+'
                          ORDER BY x.privilege_type) AS says
        FROM aclexplode({acl}) x LEFT JOIN role_names r ON r.oid = x.grantee
        WHERE x.grantee <> {owner} AND (r.says IS NOT NULL OR x.privilege_type NOT IN ('SELECT', 'USAGE', 'REFERENCES'))
        GROUP BY x.grantee, r.says) g), 'nobody')"""
"""Who else may do what. The owner's own rights differ between servers, and it could give them to itself; what others may
read is nobody's way into the record."""


def _acl(acl: str, kind: str, owner: str) -> str:
    return _ACL.replace("{acl}", f"coalesce({acl}, acldefault('{kind}', {owner}))").replace("{owner}", owner)


def _owner(oid: str) -> str:
    return f"coalesce((SELECT r.says FROM role_names r WHERE r.oid = {oid}), pg_get_userbyid({oid}))"


_RELATION = "CASE c.relkind WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' WHEN 'c' THEN 'type' ELSE 'table' END"
_FUNCTION = "p.proname::text || '(' || pg_get_function_identity_arguments(p.oid) || ')'"

_FACTS = f"""
    WITH role_names AS MATERIALIZED (
        SELECT r.oid, n.says FROM unnest(%(roles)s::text[], ARRAY['{{owner}}', '{{relay}}', '{{recoverer}}', '{{auditor}}'])
            AS n (name, says) JOIN pg_roles r ON r.rolname = n.name
    ), kit AS MATERIALIZED (
        SELECT n.oid, n.nspowner, n.nspacl FROM pg_namespace n WHERE n.nspname = %(schema)s
    ), relation AS MATERIALIZED (
        SELECT c.* FROM pg_class c JOIN kit ON kit.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c')
    )
    SELECT 'owner' AS kind, 'schema' AS object, {_owner("n.nspowner")} AS fact FROM kit n
    UNION ALL
    SELECT 'grants', 'schema', {_acl("n.nspacl", "n", "n.nspowner")} FROM kit n
    UNION ALL
    SELECT 'owner', {_RELATION} || ' ' || c.relname, {_owner("c.relowner")} FROM relation c
    UNION ALL
    SELECT 'grants', {_RELATION} || ' ' || c.relname, {_acl("c.relacl", "r", "c.relowner")}
        FROM relation c WHERE c.relkind <> 'c'
    UNION ALL
    SELECT {_RELATION}, c.relname::text,
        concat_ws('; ', CASE c.relkind WHEN 'r' THEN 'ordinary' ELSE c.relkind::text END,
            CASE c.relpersistence WHEN 'u' THEN 'unlogged' WHEN 't' THEN 'temporary' END,
            CASE WHEN c.relrowsecurity THEN 'row security' END,
            CASE WHEN c.relforcerowsecurity THEN 'row security forced' END,
            CASE WHEN c.relispartition THEN 'a partition' END,
            (SELECT 'part of ' || string_agg(i.inhparent::regclass::text, ', ') FROM pg_inherits i WHERE i.inhrelid = c.oid),
            (SELECT 'has parts ' || string_agg(i.inhrelid::regclass::text, ', ') FROM pg_inherits i WHERE i.inhparent = c.oid))
        FROM relation c
    UNION ALL
    SELECT 'grants', 'column ' || c.relname || '.' || a.attname, {_acl("a.attacl", "c", "c.relowner")}
        FROM relation c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE a.attacl IS NOT NULL
    UNION ALL
    SELECT 'column', c.relname || '.' || a.attname,
        concat_ws('; ', format_type(a.atttypid, a.atttypmod),
            CASE WHEN a.attcollation <> t.typcollation
                 THEN 'collation ' || coalesce(nullif(a.attcollation, 0)::regcollation::text, 'none') END,
            CASE WHEN a.attnotnull THEN 'not null' END,
            CASE a.attgenerated WHEN 's' THEN 'stored' WHEN 'v' THEN 'virtual' END,
            CASE a.attidentity WHEN 'a' THEN 'identity always' WHEN 'd' THEN 'identity by default' END,
            'default ' || pg_get_expr(d.adbin, d.adrelid))
        FROM relation c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_type t ON t.oid = a.atttypid
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE c.relkind <> 'S'
    UNION ALL
    SELECT 'constraint', c.relname || '.' || k.conname,
        pg_get_constraintdef(k.oid) || CASE WHEN k.convalidated THEN '' ELSE '; not validated' END
        FROM relation c JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype IN ('c', 'p', 'u', 'x', 'f')
    UNION ALL
    SELECT 'index', c.relname || '.' || x.relname,
        pg_get_indexdef(x.oid) || CASE WHEN i.indisvalid AND i.indisready AND i.indislive THEN '' ELSE '; not valid' END
        FROM relation c JOIN pg_index i ON i.indrelid = c.oid JOIN pg_class x ON x.oid = i.indexrelid
    UNION ALL
    SELECT 'trigger', c.relname || '.' || t.tgname, pg_get_triggerdef(t.oid) || '; enabled ' || t.tgenabled::text
        FROM relation c JOIN pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal
    UNION ALL
    SELECT 'rule', c.relname || '.' || w.rulename, pg_get_ruledef(w.oid) || '; enabled ' || w.ev_enabled::text
        FROM relation c JOIN pg_rewrite w ON w.ev_class = c.oid
    UNION ALL
    SELECT 'policy', c.relname || '.' || p.polname, p.polcmd::text || ' ' || coalesce(pg_get_expr(p.polqual, c.oid), '')
        FROM relation c JOIN pg_policy p ON p.polrelid = c.oid
    UNION ALL
    SELECT 'owner', 'function ' || {_FUNCTION}, {_owner("p.proowner")}
        FROM kit JOIN pg_proc p ON p.pronamespace = kit.oid
    UNION ALL
    SELECT 'grants', 'function ' || {_FUNCTION}, {_acl("p.proacl", "f", "p.proowner")}
        FROM kit JOIN pg_proc p ON p.pronamespace = kit.oid
    UNION ALL
    SELECT 'function', {_FUNCTION},
        concat_ws('; ', 'kind ' || p.prokind::text, 'arguments ' || pg_get_function_arguments(p.oid),
            'returns ' || pg_get_function_result(p.oid), l.lanname, 'volatility ' || p.provolatile::text,
            'parallel ' || p.proparallel::text, CASE WHEN p.prosecdef THEN 'security definer' END,
            CASE WHEN p.proisstrict THEN 'strict' END, CASE WHEN p.proleakproof THEN 'leakproof' END,
            'cost ' || p.procost || ' rows ' || p.prorows, 'support ' || nullif(p.prosupport::oid, 0)::text,
            (SELECT 'set ' || string_agg(s, ', ' ORDER BY s) FROM unnest(p.proconfig) s),
            'body ' || pg_get_function_sqlbody(p.oid))
        FROM kit JOIN pg_proc p ON p.pronamespace = kit.oid JOIN pg_language l ON l.oid = p.prolang
    UNION ALL
    SELECT 'type', t.typname::text, 'owner ' || {_owner("t.typowner")} || '; kind ' || t.typtype::text
        FROM kit JOIN pg_type t ON t.typnamespace = kit.oid AND t.typtype IN ('d', 'e', 'r')
    ORDER BY 1, 2"""

_KEY = """
    SELECT format_type(a.atttypid, a.atttypmod), format_type(a.atttypid, NULL), CASE WHEN a.attcollation <> t.typcollation
        THEN '; collation ' || coalesce(nullif(a.attcollation, 0)::regcollation::text, 'none') ELSE '' END
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = to_regclass(%s) AND a.attname = %s AND NOT a.attisdropped"""

_BODIES = """
    SELECT p.proname::text || '(' || pg_get_function_identity_arguments(p.oid) || ')', p.prosrc
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = %s"""


@dataclass(frozen=True, slots=True)
class KeyType:
    """The key column of a mapped target: its type, the same without a length, and its collation where it is not the type's."""

    type: str
    base: str
    collation: str


@dataclass(frozen=True, slots=True)
class Installed:
    """`facts`: kind and object -> what the catalogue says of it; `bodies`: function -> its text, verbatim."""

    facts: Mapping[str, str]
    bodies: Mapping[str, str]
    key: KeyType | None = None


def installed_read(connection: psycopg.Connection[Any], kit: KitOptions, names: Names) -> Installed:
    """Everything that lies in the kit's schema, whoever put it there. Any login may ask: the catalogue is everybody's."""
    roles = [names.owner, names.relay, names.recoverer, names.auditor]
    target = f"{quoted(kit.effect.schema)}.{quoted(kit.effect.name)}"
    with connection.transaction():
        connection.execute("SELECT set_config('search_path', 'pg_catalog', true)")
        rows = connection.execute(_FACTS, {"schema": kit.schema, "roles": roles}).fetchall()
        bodies = connection.execute(_BODIES, (kit.schema,)).fetchall()
        key = connection.execute(_KEY, (target, kit.effect.key)).fetchone() if kit.effect.kind == "target" else None
        spelled = connection.execute("SELECT quote_ident(%s)", (kit.schema,)).fetchone()
    assert spelled is not None

    def alike(said: str) -> str:
        return said.replace(f"{spelled[0]}.", "{schema}.")

    return Installed(
        {f"{kind} {alike(name)}": alike(fact) for kind, name, fact in rows},
        {alike(name): body for name, body in bodies},
        KeyType(*key) if key else None,
    )
