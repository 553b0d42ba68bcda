"""A PostgreSQL table as a committed history: an outbox, a change log, an event table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery_api.domain.kinds.base import Kind, Option
from recovery_api.domain.kinds.postgresql_mapping import CONNECTION_OPTIONS, MAPPING_OPTIONS, mapping_check, spelling_of

COLUMN_OPTIONS = ("event_id", "key", "op", "content", "committed_at", "commit_xid")
"""Options whose value is one column of the table."""


def check(options: Mapping[str, Any]) -> None:
    """Raises: BadInput where the mapping contradicts itself."""
    mapping_check("postgresql_outbox", options, COLUMN_OPTIONS)


KIND = Kind(
    name="postgresql_outbox",
    end="source",
    says="A PostgreSQL outbox table: any schema, any columns, partitioned or not. Only ever read.",
    options=(
        *CONNECTION_OPTIONS,
        *MAPPING_OPTIONS,
        Option("committed_at", "A timestamp column, for display only: no clock ever orders events."),
        Option("commit_xid", "An xid8 column with the writing transaction: shows rows that came from another cluster."),
        Option(
            "retention",
            "keeps: nothing is ever dropped. purges: old rows go, and what is below the oldest is unknown.",
            type="choice",
            default="keeps",
            choices=("keeps", "purges"),
        ),
        Option(
            "share_lock",
            "Make a bare number's frontier safe by a moment's SHARE lock. Needs MAINTAIN on the table (17+).",
            type="boolean",
            default=False,
        ),
        Option(
            "share_lock_function",
            "A definer function, schema.name, without arguments, that takes the SHARE lock where the role may not.",
        ),
        Option(
            "numbers_are_drawn_in_insert",
            "Your word that no client draws a number before its INSERT, where the catalogue cannot show it.",
            type="boolean",
            default=False,
        ),
        Option(
            "lock_timeout_ms",
            "How long one try for the lock may hold up writers.",
            type="integer",
            default=250,
            minimum=1,
            maximum=1000,
        ),
        Option(
            "lock_tries", "How often the lock is tried, pausing longer each time.", type="integer", default=4, minimum=1
        ),
        Option(
            "grace_seconds",
            "Without a better ground: how long a transaction that drew a number may take to commit. An assumption.",
            type="integer",
            default=30,
            minimum=0,
            maximum=3600,
        ),
    ),
    connector="workers.connectors.sources.postgresql_outbox.PostgresqlOutbox",
    check=check,
)

spelling = spelling_of
