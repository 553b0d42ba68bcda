"""An existing PostgreSQL table as an acceptance record: readable, without a fence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recovery_api.domain.abilities import Ability
from recovery_api.domain.capabilities import Archetype
from recovery_api.domain.errors import BadInput
from recovery_api.domain.identity import is_by_event_id
from recovery_api.domain.kinds.base import RESTORE_OPTION, Kind, Option
from recovery_api.domain.kinds.horizons import SINK_HORIZONS, horizons_check
from recovery_api.domain.kinds.postgresql_ids import IDENTITY_OPTIONS, ids_check
from recovery_api.domain.kinds.postgresql_mapping import CONNECTION_OPTIONS, MAPPING_OPTIONS, mapping_check, spelling_of
from recovery_api.domain.kinds.state import STATE_OPTIONS, state_of
from recovery_api.domain.points import FOR_GOOD, Point, Value

COLUMN_OPTIONS = ("event_id", "key", "op", "content", "digest", "accepted_at", "entry", "generation", "admitted_in")


def check(options: Mapping[str, Any]) -> None:
    """Raises: BadInput where the mapping contradicts itself."""
    ids_check(options)
    horizons_check("postgresql_table", options)
    if state_of("postgresql_table", options) is not None and not options.get("key"):
        remedy = "Map the record's key: which keys were accepted above a frontier is told by it."
        raise BadInput("postgresql_table.key", "is missing beside a state_table", remedy)
    if is_by_event_id(options):
        return
    if not options.get("coordinate"):
        remedy = "Name the column that orders the history; or say identity=event_id, where the table knows only ids."
        raise BadInput("postgresql_table.coordinate", "is missing", remedy)
    mapping_check("postgresql_table", options, COLUMN_OPTIONS)
    head = options.get("head")
    if head is not None and len(head) != len(options["coordinate"]):
        problem = f"{len(head)} columns are given and the coordinate has {len(options['coordinate'])}"
        raise BadInput("postgresql_table.head", problem, "A head is spelled as the coordinate is.")


DELIVERED = frozenset({Ability.APPENDED, Ability.DRILLED})


def _withheld(options: Mapping[str, Any]) -> frozenset[Ability]:
    """A table of ids answers by no range and is never the effect; another is the effect only where that is said."""
    if is_by_event_id(options):
        return DELIVERED | {Ability.RECORD_BY_RANGE, Ability.STATE}
    state = frozenset() if state_of("postgresql_table", options) else frozenset({Ability.STATE})
    return frozenset({Ability.RECORD_BY_SCAN}) | state | (frozenset() if options["is_effect"] else DELIVERED)


def _declared(options: Mapping[str, Any]) -> Mapping[Point, Value]:
    """Of ids, that rows stay must be said; of coordinates it must be taken back. A row that goes is remembered no more."""
    said = options["is_append_only"]
    stays = said is True if is_by_event_id(options) else said is not False
    return {Point.RECORD_COMPLETE: stays, Point.MEMORY: FOR_GOOD if stays else 0}


KIND = Kind(
    name="postgresql_table",
    end="sink",
    label="PostgreSQL table as a record",
    says="An existing PostgreSQL table that records what was accepted. It has no fence, and says so; it is written only where"
    " its rows are said to be the effect.",
    options=(
        *CONNECTION_OPTIONS,
        *(replace(one, is_required=False) if one.name == "coordinate" else one for one in MAPPING_OPTIONS),
        *IDENTITY_OPTIONS,
        RESTORE_OPTION,
        *SINK_HORIZONS,
        *STATE_OPTIONS,
        Option(
            "digest",
            "A column that holds the payload digest ready made: bytea of 32 bytes, or 64 hex digits.",
            decides=True,
        ),
        Option("accepted_at", "A timestamp column: when it was accepted. For display only."),
        Option("entry", "A number column that ascends in order of acceptance."),
        Option("generation", "A number column: the restart counter of the relay run that delivered it."),
        Option(
            "head",
            "The column, or the two, of the last source coordinate the relay knew durable; spelled as the coordinate.",
            type="names",
            decides=True,
        ),
        Option("admitted_in", "An xid8 column: the transaction that admitted the entry."),
        Option(
            "is_append_only",
            "Your word that rows are never updated or deleted. Not said: yes for coordinates; of ids it must be said. Said"
            " no: every verdict from this record is unknown.",
            type="boolean",
        ),
        Option(
            "is_effect",
            "Your word that a row of this table is the effect itself, and not the mark of one that happens elsewhere."
            " Without it nothing is ever written here.",
            type="boolean",
            default=False,
        ),
        Option(
            "drill_connection",
            "Where the connection string of a login that may make a drill's schema with a copy of the table is kept:"
            " env:FENCEPOST_END_NAME or file:/path. Without it drills use `connection`.",
            "reference",
        ),
    ),
    connector="workers.connectors.sinks.postgresql_table.record_of",
    archetype=Archetype.QUERYABLE,
    abilities=frozenset({Ability.RECORD_BY_RANGE, Ability.RECORD_BY_SCAN, Ability.STATE}) | DELIVERED,
    withheld=_withheld,
    check=check,
    spelling=spelling_of,
    example={
        "connection": "env:FENCEPOST_END_MAIL",
        "table": "accepted",
        "coordinate": ["position"],
        "op": "op",
        "key": "key",
        "content": "content",
    },
    declares=_declared,
    tests={
        Point.READS_RECORD: "The table and its mapped columns were opened for reading with this login.",
        Point.RECORD_COMPLETE: "The server is asked whether it is the primary. That rows stay is the owner's word alone.",
        Point.FENCE: "Not asked: nothing checks a generation at an ordinary table.",
        Point.IDENTITY_KEY: "A valid unique index on the coordinate is looked for in the catalogue. Not asked where only ids are known.",
        Point.ONE_TRANSACTION: "This login's rights to lock the table and to insert there are asked of the server.",
        Point.APPEND: "This login's rights to lock the table and to insert there are asked of the server.",
        Point.MEMORY: "A unique index refuses a coordinate for as long as its row is there. Not asked where only ids are known.",
        Point.BATCH_LIMIT: "Not asked: a table has no limit of its own.",
    },
    shows=(
        "Whether the table and its columns are there and this login may read every row.",
        "Whether it is the primary, and so whether what is read is the whole record.",
        "Whether this login may lock the table and insert there, and what to grant; whether a unique constraint refuses what"
        " a relay sends late; which triggers and foreign keys an insert meets.",
        "A few rows, as mapped.",
    ),
)
