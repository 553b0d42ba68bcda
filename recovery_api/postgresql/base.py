"""Django's own PostgreSQL backend, except that no wait for the control database lasts for good.

One law: a call that stays unanswered is given up from this side, its connection closed, and told as the database being
away: keepalives are acknowledged by any proxy, also for a server that is gone. Whether its transaction committed is then
not known, as after any lost connection; every write that matters is guarded, so that it can be asked again.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import base

Driver: Any = base.Database


class BoundedConnection(Driver.Connection):
    """`answer_seconds` None: as long as it takes."""

    answer_seconds: float | None = None

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, timeout or self.answer_seconds)
        except Driver.errors._WaitTimeout:
            self.pgconn.finish()
            raise


class DatabaseWrapper(base.DatabaseWrapper):
    """`ANSWER_SECONDS` of its settings is how long one call may stay unanswered."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        connection.__class__ = BoundedConnection  # the driver's own, made by Django with all that it sets
        connection.answer_seconds = self.settings_dict.get("ANSWER_SECONDS") or None
        return connection

    def schema_editor(self, *args: Any, **kwargs: Any) -> Any:
        """A migration may take as long as its tables need."""
        self.ensure_connection()
        self.connection.answer_seconds = None
        return super().schema_editor(*args, **kwargs)
