"""The control database emptied between tests: what a test wrote goes, what migrations made stays.

Django truncates every table and makes content types, permissions and roles again, which is more than most tests cost.
Here the tables that hold rows are emptied by DELETE, without triggers. What migrations made is left alone for as long as it
is what it was; a test that changed it has Django's own way.
"""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction
from django.test import TransactionTestCase
from psycopg import sql

MADE = ("django_content_type", "auth_group", "auth_permission", "auth_group_permissions")
TIMELINE = ("recovery_api_event",)
"""Refuses DELETE whatever the session says; TRUNCATE is allowed in test databases. Nothing refers to it."""

_flushed = TransactionTestCase._fixture_teardown
_made: str | None = None


def emptying_begin() -> None:
    """From now on; the database is as migrations left it."""
    global _made
    _made = _fingerprint()
    TransactionTestCase._fixture_teardown = _emptied  # type: ignore[method-assign]


def _emptied(case: Any) -> None:
    if case.available_apps is not None or case.serialized_rollback or not _deleted():
        _flushed(case)


def _deleted() -> bool:
    """Whether everything but what migrations made is gone, and that is as it was."""
    names = [
        name
        for name in connection.introspection.django_table_names(only_existing=True, include_views=False)
        if name not in MADE
    ]
    tables = {name: sql.Identifier(name) for name in names}
    with transaction.atomic(), connection.cursor() as cursor:
        # As TRUNCATE does: what another thread or process is writing is waited for, and goes, too.
        cursor.execute(sql.SQL("LOCK TABLE {} IN SHARE MODE").format(sql.SQL(", ").join(tables.values())))
        asked = [
            sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})").format(sql.Literal(name), identifier)
            for name, identifier in tables.items()
        ]
        cursor.execute(sql.SQL(" UNION ALL ").join(asked))
        full = [name for (name,) in cursor.fetchall()]
        cursor.execute("SET LOCAL session_replication_role = replica")
        for name in full:
            how = "TRUNCATE {}" if name in TIMELINE else "DELETE FROM {}"
            cursor.execute(sql.SQL(how).format(tables[name]))
    return _fingerprint() == _made


def _fingerprint() -> str:
    """All rows of what migrations made."""
    rows = [
        sql.SQL("SELECT md5(string_agg(t::text, '' ORDER BY t.id)) AS made FROM {} t").format(sql.Identifier(name))
        for name in MADE
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL("SELECT string_agg(made, ' ') FROM ({}) all_made").format(sql.SQL(" UNION ALL ").join(rows))
        )
        return str(cursor.fetchone()[0])
