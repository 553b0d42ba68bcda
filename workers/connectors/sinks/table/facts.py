"""What the catalogue says about writing into a table: its columns, and what happens at an insert. Facts only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from workers.connectors.postgresql.catalogue import Table


@dataclass(frozen=True, slots=True)
class WrittenColumn:
    """One column as it is written. `declared`: its type as SQL spells it; `base`: the type's name, domains resolved."""

    declared: str
    base: str
    is_not_null: bool
    is_generated: bool
    is_identity_always: bool
    has_default: bool
    may_insert: bool
    draws_without_right: str | None
    """The sequence that its default draws from and this role may not use."""


@dataclass(frozen=True, slots=True)
class Trigger:
    name: str
    is_before_row: bool


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    name: str
    columns: frozenset[str]
    is_valid: bool
    is_immediate: bool
    is_partial: bool
    has_expressions: bool


@dataclass(frozen=True, slots=True)
class TableFacts:
    """One table as an insert meets it."""

    columns: Mapping[str, WrittenColumn]
    triggers: tuple[Trigger, ...]
    rules: tuple[str, ...]
    foreign_keys: tuple[str, ...]
    unique: tuple[UniqueIndex, ...]
    foreign_leaves: tuple[str, ...]
    role: str
    may_lock: bool
    may_make_temporary: bool
    version: int


COLUMNS = """
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated <> '', a.attidentity = 'a',
       a.attidentity <> '' OR a.atthasdef AND a.attgenerated = '',
       has_column_privilege(a.attrelid, a.attnum, 'INSERT'),
       (SELECT s.oid::regclass::text FROM pg_attrdef d
        JOIN pg_depend p ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid AND p.refclassid = 'pg_class'::regclass
        JOIN pg_class s ON s.oid = p.refobjid
        WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum
            AND CASE WHEN s.relkind = 'S' THEN NOT has_sequence_privilege(s.oid, 'USAGE') END LIMIT 1)
FROM pg_attribute a
WHERE a.attrelid = %s::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

TRIGGERS = """
SELECT DISTINCT t.tgname::text, t.tgtype & 3 = 3 FROM pg_trigger t
WHERE t.tgrelid::bigint = ANY(%s::bigint[]) AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND t.tgtype & 4 <> 0
ORDER BY 1
"""
"""tgtype's bits: 1 for each row, 2 before, 4 insert."""

RULES = """
SELECT DISTINCT r.rulename::text FROM pg_rewrite r
WHERE r.ev_class::bigint = ANY(%s::bigint[]) AND r.ev_type = '3' AND r.ev_enabled <> 'D' ORDER BY 1
"""

FOREIGN_KEYS = """
SELECT DISTINCT c.conname::text FROM pg_constraint c
WHERE c.conrelid = %s::bigint::oid AND c.contype = 'f' ORDER BY 1
"""

UNIQUE = """
SELECT c.relname::text, ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, n)
           JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE k.n <= i.indnkeyatts),
       i.indisvalid AND i.indisready AND i.indislive, i.indimmediate, i.indpred IS NOT NULL, i.indexprs IS NOT NULL
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = %s::bigint::oid AND i.indisunique ORDER BY 1
"""

FOREIGN_LEAVES = """
SELECT c.oid::regclass::text FROM pg_class c WHERE c.oid::bigint = ANY(%s::bigint[]) AND c.relkind = 'f' ORDER BY 1
"""

MAY = """
SELECT current_user::text, has_table_privilege(%s::bigint::oid, %s), has_database_privilege(current_database(), 'TEMP')
"""

MAINTAIN_VERSION = 170000


def facts_read(connection: psycopg.Connection[Any], table: Table) -> TableFacts:
    """Reads the catalogue alone; what a role may do nothing but connect can read, too."""
    version = connection.info.server_version
    tree = [table.oid, *table.leaves]
    lock = "UPDATE, DELETE, TRUNCATE" + (", MAINTAIN" if version >= MAINTAIN_VERSION else "")
    role, may_lock, may_make_temporary = connection.execute(MAY.encode(), [table.oid, lock]).fetchone() or (
        "",
        False,
        False,
    )
    columns = {
        name: WrittenColumn(declared, table.columns[name].type, *rest)
        for name, declared, *rest in connection.execute(COLUMNS.encode(), [table.oid])
        if name in table.columns
    }
    return TableFacts(
        columns=columns,
        triggers=tuple(Trigger(*row) for row in connection.execute(TRIGGERS.encode(), [tree])),
        rules=_names(connection, RULES, tree),
        foreign_keys=_names(connection, FOREIGN_KEYS, table.oid),
        unique=tuple(
            UniqueIndex(name, frozenset(names), *rest)
            for name, names, *rest in connection.execute(UNIQUE.encode(), [table.oid])
        ),
        foreign_leaves=_names(connection, FOREIGN_LEAVES, list(table.leaves)),
        role=role,
        may_lock=may_lock,
        may_make_temporary=may_make_temporary,
        version=version,
    )


def _names(connection: psycopg.Connection[Any], query: str, about: Any) -> tuple[str, ...]:
    return tuple(name for (name,) in connection.execute(query.encode(), [about]))
