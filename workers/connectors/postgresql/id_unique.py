"""Whether an id identifies its event at the source, as the catalogue shows it.

The id's type must be one that ids are compared as, and a constraint must keep two events from sharing an id. That an id
is never used again later, no catalogue can show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg

from recovery_api.domain.identity import COLUMN_TYPES, NO_REUSE, IdType
from recovery_api.domain.mapping import term_parse
from workers.connectors.postgresql.indexes import unique_problem
from workers.connectors.postgresql.opening import Opened
from workers.connectors.readings import SourceIds

OF_ITS_OWN = "Acceptance is established per event: map an id that each event has for itself."


def ids_problems(connection: psycopg.Connection[Any], options: Mapping[str, Any], opened: Opened) -> list[str]:
    """Why ids cannot stand for events, where the owner attests that none comes again, and so means them to."""
    if not options.get(NO_REUSE):
        return []
    found = source_ids(connection, options, opened)
    if found is None:
        return [f"{NO_REUSE} is said, and no event_id is mapped. Map it, or leave that out."]
    return [f"event_id {found.problem}. {found.remedy}"] if found.problem else []


def source_ids(connection: psycopg.Connection[Any], options: Mapping[str, Any], opened: Opened) -> SourceIds | None:
    """The source's ids, with the reason for which one cannot stand for its event. None: none are mapped."""
    if not options.get("event_id"):
        return None
    table = opened.table
    place = f"{table.schema}.{table.name}"
    term = term_parse("event_id", options["event_id"], table.columns)
    if term.is_constant or term.is_joined or term.path:
        remedy = (
            f"Make a column of it: ALTER TABLE {place} ADD COLUMN event_id … GENERATED ALWAYS AS (…) STORED UNIQUE; and"
            " map that."
        )
        problem = f"{options['event_id']!r} is no column of {place}, so no UNIQUE constraint can keep it to one event"
        return SourceIds(IdType.TEXT, problem, remedy)
    found = table.columns[term.column].type
    if found not in COLUMN_TYPES:
        remedy = f"An id is {', '.join(COLUMN_TYPES)}. {OF_ITS_OWN}"
        return SourceIds(IdType.TEXT, f"{term.column!r} is {found}: ids of that type are not compared", remedy)
    if problem := unique_problem(connection, table, term.column):
        remedy = f"ALTER TABLE {place} ADD UNIQUE ({term.column}). {OF_ITS_OWN}"
        return SourceIds(COLUMN_TYPES[found], f"{term.column!r} {problem}", remedy)
    return SourceIds(COLUMN_TYPES[found])
