"""Whether the control database can serve this version: it answers, and its migrations are applied."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor


@dataclass(frozen=True, slots=True)
class Readiness:
    """`missing`: each lack with its remedy, in sentences. Empty: nothing is."""

    missing: tuple[str, ...] = ()

    @property
    def is_ready(self) -> bool:
        return not self.missing


def readiness() -> Readiness:
    """Asked anew each time; the text of a database's error is not passed on."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        executor = MigrationExecutor(connection)
        behind = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except ImproperlyConfigured:
        return Readiness(("No control database is configured: set DATABASE_URL.",))
    except (DatabaseError, InterfaceError) as error:
        connection.close()
        return Readiness((f"The control database does not answer ({type(error).__name__}): see that it is up.",))
    if behind:
        first = ".".join((behind[0][0].app_label, behind[0][0].name))
        return Readiness((f"{len(behind)} migrations are not applied, {first} first: run manage.py migrate.",))
    return Readiness()
