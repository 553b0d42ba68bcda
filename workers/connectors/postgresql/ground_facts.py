"""Who and what can set a coordinate, as PostgreSQL's catalogue shows it. Only facts; recovery_api.domain.grounds judges.

Every role counts that is no superuser, but for an owner that cannot log in and has no session open here. What a role may
do is what any role may do that it is a member of, directly or not, whatever that membership inherits: SET ROLE, or ADMIN
OPTION, would give the rest. Rights of PUBLIC and of the predefined roles (pg_write_all_data) count, because the server
itself is asked.

Partitions with the same owner and the same grants are asked about once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from recovery_api.domain.grounds import Catalogue, Column, Held, Right, Sequence, Set, Setter, moves_of, numbers_step
from workers.connectors.postgresql.catalogue import Table
from workers.connectors.postgresql.mapped_rows import filtered_columns
from workers.connectors.postgresql.opening import Opened
from workers.connectors.postgresql.safe_frontier import Drawn

TREE = """
WITH RECURSIVE tree AS (
    SELECT %s::bigint::oid AS oid
    UNION
    SELECT i.inhrelid FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid
)
SELECT tree.oid::bigint FROM tree
"""
"""The table, its partitions, and theirs: each has an owner and rights of its own."""

COLUMNS = """
WITH own AS (
    SELECT c.oid, c.relkind, a.attnum, a.attidentity, a.attnotnull, a.atttypid, d.oid AS default_oid,
           pg_get_expr(d.adbin, d.adrelid) AS says
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname::text = %(column)s::text
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.oid::bigint = ANY(%(tables)s::bigint[])
), drawn AS (
    SELECT own.oid, coalesce(
        (SELECT i.objid FROM pg_depend i WHERE own.attidentity <> '' AND i.refclassid = 'pg_class'::regclass
         AND i.refobjid = own.oid AND i.refobjsubid = own.attnum AND i.classid = 'pg_class'::regclass
         AND i.deptype = 'i' LIMIT 1),
        (SELECT n.refobjid FROM pg_depend n JOIN pg_sequence q ON q.seqrelid = n.refobjid
         WHERE n.classid = 'pg_attrdef'::regclass AND n.objid = own.default_oid
         AND n.refclassid = 'pg_class'::regclass AND n.deptype = 'n' LIMIT 1)) AS sequence
    FROM own
), root AS (SELECT sequence FROM drawn WHERE oid::bigint = %(root)s::bigint)
SELECT own.oid::bigint, own.oid::regclass::text, own.relkind = 'f', format_type(own.atttypid, NULL), own.attnotnull,
       own.attidentity::text, own.says, s.seqrelid::bigint, s.seqrelid::regclass::text, s.seqcache, s.seqincrement,
       s.seqcycle
FROM own JOIN drawn ON drawn.oid = own.oid
LEFT JOIN pg_sequence s ON s.seqrelid = coalesce(
    drawn.sequence, CASE WHEN own.attidentity <> '' THEN (SELECT sequence FROM root) END)
ORDER BY own.oid
"""
"""The identity of a partition is its root's: the sequence depends on the root's column only."""

WHO_AND_WHERE = """
usable AS (
    SELECT r.oid, r.rolname::text, r.rolcreaterole FROM pg_roles r
    WHERE NOT r.rolsuper AND r.rolname !~ '^pg_' AND (r.rolcanlogin
        OR EXISTS (SELECT FROM pg_stat_activity a WHERE a.usesysid = r.oid AND a.datname = current_database())
        OR NOT EXISTS (SELECT FROM pg_class c WHERE c.relowner = r.oid
                       AND c.oid::bigint = ANY(%(tables)s::bigint[] || %(sequences)s::bigint[])))
), membership AS (
    SELECT m.member, m.roleid FROM pg_auth_members m
    UNION
    SELECT d.datdba, r.oid FROM pg_database d JOIN pg_roles r ON r.rolname = 'pg_database_owner'
    WHERE d.datname = current_database()
), acting AS (
    SELECT usable.oid, usable.rolname, usable.oid AS acts FROM usable
    UNION
    SELECT acting.oid, acting.rolname, membership.roleid FROM acting JOIN membership ON membership.member = acting.acts
), reach AS (
    SELECT acting.rolname, x.oid AS acts, x.rolname::text AS acts_name, x.rolsuper
    FROM acting JOIN pg_roles x ON x.oid = acting.acts
), places AS (
    SELECT DISTINCT ON (c.relowner, c.relacl::text, a.attacl::text, c.oid::bigint = %(root)s::bigint)
        c.oid, c.oid::regclass::text AS place, c.relowner, a.attnum
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname::text = %(column)s::text
    WHERE c.oid::bigint = ANY(%(tables)s::bigint[])
    ORDER BY c.relowner, c.relacl::text, a.attacl::text, c.oid::bigint = %(root)s::bigint, c.oid
), sequences AS (
    SELECT c.oid, c.oid::regclass::text AS place, c.relowner FROM pg_class c
    WHERE c.oid::bigint = ANY(%(sequences)s::bigint[])
)
"""

RIGHTS = f"""
WITH RECURSIVE {WHO_AND_WHERE}
SELECT reach.rolname, held.what, places.place
FROM reach CROSS JOIN places CROSS JOIN LATERAL (VALUES
    ('OWN', reach.acts = places.relowner),
    ('SUPPLY', has_column_privilege(reach.acts, places.oid, places.attnum, 'INSERT')),
    ('CHANGE', has_column_privilege(reach.acts, places.oid, places.attnum, 'UPDATE')),
    ('TRIGGER', has_table_privilege(reach.acts, places.oid, 'TRIGGER'))
) AS held (what, holds)
WHERE held.holds AND NOT reach.rolsuper
UNION
SELECT reach.rolname, held.what, sequences.place
FROM reach CROSS JOIN sequences CROSS JOIN LATERAL (VALUES
    ('OWN', reach.acts = sequences.relowner),
    ('DRAW', has_sequence_privilege(reach.acts, sequences.oid, 'USAGE, UPDATE'))
) AS held (what, holds)
WHERE held.holds AND NOT reach.rolsuper
UNION
SELECT reach.rolname, 'RISE', reach.acts_name FROM reach
WHERE reach.rolsuper OR reach.acts_name IN ('pg_execute_server_program', 'pg_write_server_files')
UNION
SELECT usable.rolname, 'GRANT', places.place
FROM usable CROSS JOIN places JOIN pg_roles o ON o.oid = places.relowner
WHERE usable.rolcreaterole AND NOT o.rolsuper AND current_setting('server_version_num')::int < 160000
ORDER BY 1, 2, 3
"""  # nosec B608 # built of constants

TABLE_SETTERS = """
SELECT t.tgname::text, 'TRIGGER', t.tgrelid::regclass::text FROM pg_trigger t
WHERE t.tgrelid::bigint = ANY(%(tables)s::bigint[]) AND NOT t.tgisinternal AND t.tgenabled <> 'D'
  AND (t.tgtype & 3) = 3 AND (t.tgtype & 20) <> 0
UNION
SELECT r.rulename::text, 'RULE', r.ev_class::regclass::text FROM pg_rewrite r
WHERE r.ev_class::bigint = ANY(%(tables)s::bigint[]) AND r.ev_enabled <> 'D'
UNION
SELECT k.conname::text, 'CASCADE', k.conrelid::regclass::text FROM pg_constraint k
JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = ANY(k.conkey) AND a.attname::text = %(column)s::text
WHERE k.conrelid::bigint = ANY(%(tables)s::bigint[]) AND k.contype = 'f'
  AND (k.confupdtype IN ('c', 'n', 'd') OR k.confdeltype IN ('n', 'd'))
ORDER BY 1, 2, 3
"""

BORROWED = f"""
WITH RECURSIVE {WHO_AND_WHERE}, powerful AS (
    SELECT r.oid FROM pg_roles r WHERE r.rolsuper
    UNION
    SELECT r.oid FROM pg_roles r CROSS JOIN places p
    WHERE pg_has_role(r.oid, p.relowner, 'MEMBER') OR has_column_privilege(r.oid, p.oid, p.attnum, 'INSERT, UPDATE')
       OR has_table_privilege(r.oid, p.oid, 'TRIGGER')
    UNION
    SELECT r.oid FROM pg_roles r CROSS JOIN sequences q
    WHERE pg_has_role(r.oid, q.relowner, 'MEMBER') OR has_sequence_privilege(r.oid, q.oid, 'USAGE, UPDATE')
), through (oid) AS (
    SELECT unnest(%(tables)s::bigint[])::oid
    UNION
    SELECT w.ev_class FROM through JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = through.oid
        AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite w ON w.oid = d.objid
)
SELECT c.oid::regclass::text, 'PASSAGE', NULL::text
FROM through JOIN pg_class c ON c.oid = through.oid
WHERE c.oid::bigint <> ALL(%(tables)s::bigint[]) AND c.relowner IN (SELECT oid FROM powerful)
  AND EXISTS (SELECT FROM reach WHERE NOT reach.rolsuper
              AND (has_any_column_privilege(reach.acts, c.oid, 'INSERT, UPDATE')
                   OR has_table_privilege(reach.acts, c.oid, 'DELETE')))
UNION
SELECT p.oid::regprocedure::text, 'FUNCTION', p.prosrc
FROM pg_proc p
WHERE p.prosecdef AND p.proowner IN (SELECT oid FROM powerful)
  AND p.prolang NOT IN (SELECT l.oid FROM pg_language l WHERE l.lanname IN ('c', 'internal'))
  AND (EXISTS (SELECT FROM pg_trigger t WHERE t.tgfoid = p.oid)
       OR EXISTS (SELECT FROM reach WHERE NOT reach.rolsuper AND has_function_privilege(reach.acts, p.oid, 'EXECUTE')))
  AND EXISTS (SELECT FROM usable)
UNION
SELECT e.evtname::text, 'EVENT_TRIGGER', NULL
FROM pg_event_trigger e JOIN pg_proc p ON p.oid = e.evtfoid JOIN pg_roles r ON r.oid = p.proowner
WHERE e.evtenabled <> 'D' AND NOT r.rolsuper
ORDER BY 1, 2
"""  # nosec B608 # built of constants
"""What runs with rights of somebody else: views and rules over the table, definer functions, event triggers. Functions in
C are left out: only a superuser can bring one in."""


def mapped_catalogue_read(connection: psycopg.Connection[Any], opened: Opened) -> Catalogue:
    """What the catalogue shows now of a mapped table's coordinate, and of the columns that its filter looks at."""
    mapped, table = opened.mapped, opened.table
    coordinate = mapped.options["coordinate"]
    found = catalogue_read(connection, coordinate[0], len(coordinate), table)
    moves = [
        move
        for name in filtered_columns(mapped.options, mapped.types)
        for move in moves_of(found, catalogue_read(connection, name, 1, table))
    ]
    return replace(found, moves=tuple(dict.fromkeys(moves)))


def catalogue_read(connection: psycopg.Connection[Any], column: str, width: int, table: Table) -> Catalogue:
    """What the catalogue shows now of `column`, the first of the coordinate's `width`, on the table and every leaf."""
    with _pinned_names(connection):
        tables = [oid for (oid,) in connection.execute(TREE.encode(), [table.oid])]
        columns = []
        sequences: list[int] = []
        at = {"column": column, "tables": tables, "root": table.oid}
        for oid, place, is_foreign, type_, is_not_null, identity, default, *drawn in connection.execute(
            COLUMNS.encode(), at
        ):
            sequence = Sequence(*drawn) if drawn[0] is not None else None
            sequences += [sequence.oid] if sequence else []
            columns.append(Column(place, oid == table.oid, is_foreign, type_, is_not_null, identity, default, sequence))
        at["sequences"] = sorted(set(sequences))
        rights = [Held(role, Right[what], place) for role, what, place in connection.execute(RIGHTS.encode(), at)]
        setters = [
            Set(name, Setter[what], place) for name, what, place in connection.execute(TABLE_SETTERS.encode(), at)
        ]
        place = f"{table.schema}.{table.name}"
        setters += [
            Set(name, Setter[what], place)
            for name, what, source in connection.execute(BORROWED.encode(), at)
            if source is None or not only_locks(source)
        ]
    is_unlogged = table.persistence == "u"
    return Catalogue(table.oid, column, width, is_unlogged, tuple(columns), tuple(rights), tuple(setters))


def sequence_position(connection: psycopg.Connection[Any], found: Catalogue) -> Drawn:
    """How far the coordinate's sequence has come, asked after the snapshot: it only ever goes on from there."""
    oid = next((column.sequence.oid for column in found.columns if column.sequence), None)
    row = connection.execute(
        "SELECT has_sequence_privilege(%(oid)s::bigint::oid, 'USAGE, SELECT'),"
        " CASE WHEN has_sequence_privilege(%(oid)s::bigint::oid, 'USAGE, SELECT')"
        " THEN pg_sequence_last_value(%(oid)s::bigint::oid::regclass) END",
        {"oid": oid},
    ).fetchone()
    assert row is not None
    return Drawn(bool(row[0]), row[1])


def first_number(connection: psycopg.Connection[Any], found: Catalogue) -> int | None:
    """The number that the coordinate's sequence began with. None: no one sequence draws them all."""
    if numbers_step(found) is None:
        return None
    oid = next(column.sequence.oid for column in found.columns if column.sequence)
    row = connection.execute("SELECT seqstart FROM pg_sequence WHERE seqrelid = %s::bigint::oid", [oid]).fetchone()
    return None if row is None else int(row[0])


ONLY_LOCKS = re.compile(
    r"(begin\s+)?lock\s+(table\s+)?(only\s+)?[\w.\"]+\s+in\s+(share|share\s+row\s+exclusive|exclusive)\s+mode\s*;?(\s*end\s*;?)?",
    re.I,
)


def only_locks(body: str) -> bool:
    """True for a function's body that takes a table's lock and does nothing else: what `share_lock_function` names."""
    return ONLY_LOCKS.fullmatch(body.strip()) is not None


@contextmanager
def _pinned_names(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Inside it every function outside pg_catalog is printed with its schema: no other `nextval` passes for the real one."""
    if connection.info.transaction_status is not TransactionStatus.IDLE:
        yield  # a reader's transaction has it set
        return
    connection.execute("BEGIN READ ONLY; SET LOCAL search_path = pg_catalog")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
