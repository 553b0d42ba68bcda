"""A PostgreSQL table as a committed history: an outbox, a change log, an event table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from recovery_api.domain.abilities import Ability
from recovery_api.domain.errors import BadInput
from recovery_api.domain.identity import NO_REUSE
from recovery_api.domain.images import KEY_ORDER
from recovery_api.domain.kinds.base import Kind, Option, Retention
from recovery_api.domain.kinds.horizons import SOURCE_HORIZONS, horizons_check
from recovery_api.domain.kinds.postgresql_mapping import (
    CONNECTION_OPTIONS,
    MAPPING_OPTIONS,
    gaps_of,
    identifier_check,
    mapping_check,
    spelling_of,
)
from recovery_api.domain.kinds.postgresql_purge import purge_sql

COLUMN_OPTIONS = ("event_id", "key", "op", "content", "committed_at", "commit_xid")
"""Options whose value is one column of the table."""

SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}")
"""As PostgreSQL takes them."""

CURSOR_OPTIONS = (
    Option(
        "cursor_table",
        "Where the relay keeps its cursor, in this database. Shown beside the sink's word, never believed.",
    ),
    Option("cursor_schema", "The cursor table's schema. Without it: the outbox's own."),
    Option(
        "cursor_columns",
        "The column of the last coordinate the relay recorded as sent; two for xid8_bigint.",
        type="names",
    ),
    Option("cursor_where", "Which row is this relay's, column=value: relay=letters.", type="columns"),
    Option(
        "cursor_spelling",
        "coordinate: written as the outbox writes it. held: signed 64-bit, unsigned shifted by 2^63, as the sink kit does.",
        type="choice",
        default="coordinate",
        choices=("coordinate", "held"),
    ),
)


def check(options: Mapping[str, Any]) -> None:
    """Raises: BadInput where the mapping contradicts itself."""
    mapping_check("postgresql_outbox", options, COLUMN_OPTIONS)
    horizons_check("postgresql_outbox", options)
    if (slot := options.get("slot")) is not None and not SLOT_NAME.fullmatch(slot):
        problem = f"{slot!r} cannot be the name of a slot"
        raise BadInput("postgresql_outbox.slot", problem, "Small letters, digits and underscores, 63 at most.")
    table, columns = options.get("cursor_table"), options.get("cursor_columns")
    for option in CURSOR_OPTIONS:
        if option.name != "cursor_table" and options.get(option.name) not in (None, option.default) and not table:
            raise BadInput(f"postgresql_outbox.{option.name}", "is given without a cursor table", "Name cursor_table.")
    if table and len(columns or ()) != len(options["coordinate"]):
        problem = f"names {len(columns or ())} columns and the coordinate has {len(options['coordinate'])}"
        raise BadInput(
            "postgresql_outbox.cursor_columns", problem, "A cursor is as wide as the coordinate it points at."
        )
    named = [(name, options.get(name)) for name in ("cursor_table", "cursor_schema", "publication")]
    named += [("cursor_columns", name) for name in columns or ()]
    named += [("cursor_where", name) for name in options.get("cursor_where") or ()]
    for name, said in named:
        if said:
            identifier_check(f"postgresql_outbox.{name}", said)


def retention_of(options: Mapping[str, Any]) -> Retention:
    """What becomes of old rows, as registered."""
    return Retention(options["retention"])


KIND = Kind(
    name="postgresql_outbox",
    end="source",
    label="PostgreSQL outbox table",
    says="A PostgreSQL outbox table: any schema, any columns, partitioned or not. Only ever read.",
    options=(
        *CONNECTION_OPTIONS,
        *MAPPING_OPTIONS,
        *CURSOR_OPTIONS,
        Option("committed_at", "A timestamp column, for display only: no clock ever orders events."),
        Option("commit_xid", "An xid8 column with the writing transaction: shows rows that came from another cluster."),
        Option(
            "retention",
            "keeps: nothing is ever dropped. purges: old rows go, and what is below the oldest is unknown."
            " deletes_delivered: rows go once they were delivered; the best verdict is nothing owed of what is kept.",
            type="choice",
            default="keeps",
            choices=tuple(one.value for one in Retention),
        ),
        *SOURCE_HORIZONS,
        Option(
            "slot",
            "The logical slot that the relay reads by, where it does: how long its WAL lasts is read at each audit, with this"
            " source's own login.",
        ),
        Option(
            "publication",
            "The name of the publication that the relay reads by, if it does. The partitions that it leaves out are then listed:"
            " what is committed there is never emitted.",
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
            "Your word, recorded with your name, that no client draws or supplies a coordinate of its own, where the catalogue"
            " cannot show it.",
            type="boolean",
            default=False,
            is_word=True,
        ),
        Option(
            NO_REUSE,
            "Your word, recorded with your name, that no event id is ever used again. Asked where the record knows only ids.",
            type="boolean",
            default=False,
        ),
        Option(
            KEY_ORDER,
            "Your word, recorded with your name, that the events of one key are committed in the order of their coordinates:"
            " each writer locks the key before it writes the event. Asked by image audits.",
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
    abilities=frozenset({Ability.JOINED_SNAPSHOT, Ability.COMMITTED_STATE}),
    connector="workers.connectors.sources.postgresql_outbox.PostgresqlOutbox",
    check=check,
    spelling=spelling_of,
    gaps=gaps_of,
    retention=retention_of,
    purge=purge_sql,
    example={
        "connection": "env:FENCEPOST_END_ORDERS",
        "table": "outbox",
        "coordinate": ["tx", "id"],
        "coordinate_spelling": "xid8_bigint",
        "key": "key",
        "op": "op",
        "content": "content",
    },
    shows=(
        "Whether the table and its columns are there and this login may read every row.",
        "Whether coordinates are there, unique and indexed, and which ground makes a frontier safe.",
        "A few rows, as mapped.",
    ),
)
