"""The control database's rows as they were at one moment, and the way back to them: what a restored backup is."""

from __future__ import annotations

from django.db import connection, transaction

TABLES = """
SELECT c.oid::regclass::text, (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '')
FROM pg_class c
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname LIKE 'recovery_api_%'
ORDER BY 1
"""


class ControlBackup:
    """Every row of the product's tables, taken when this is made."""

    def __init__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(TABLES)
            tables = cursor.fetchall()
            self.rows = {}
            for table, columns in tables:
                cursor.execute(f"SELECT coalesce(jsonb_agg(to_jsonb(t)), '[]')::text FROM {table} t")
                self.rows[table, columns] = cursor.fetchone()[0]

    def restore(self) -> None:
        """The rows of that moment and no others. Triggers stand aside, as they do for a restore."""
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute("ALTER TABLE recovery_api_event DISABLE TRIGGER events_are_append_only")
            for table, _ in self.rows:
                cursor.execute(f"DELETE FROM {table}")
            for (table, columns), rows in self.rows.items():
                cursor.execute(
                    f"INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE"
                    f" SELECT {columns} FROM jsonb_populate_recordset(NULL::{table}, %s::jsonb)",
                    [rows],
                )
            cursor.execute("ALTER TABLE recovery_api_event ENABLE ALWAYS TRIGGER events_are_append_only")
