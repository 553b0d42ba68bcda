"""The transaction that a person runs at a PostgreSQL source: it deletes what was counted, or nothing.

The law: the product never deletes at a source. What it prints compares the rows that it deletes, by their number and by the
sum of their positions, with what an audit counted, and raises an exception where they differ, which undoes it all. The
newest counted row stays: with it gone, nothing would show whether newer ones went that no audit ever saw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format
from recovery_api.domain.kinds.postgresql_mapping import filter_of, spelling_of
from recovery_api.domain.mapping import ARROW, Comparison, Condition

WORD = 2**64


def purge_sql(options: Mapping[str, Any], at: Coordinate, counted: Mapping[str, str], since: str) -> str:
    """One DO block. `options`: the source's, parsed. `counted`: an audit's fingerprint of the history at or below `at`.

    `since`: which audit that was, for the exception's text. Empty where the filter looks into a column's JSON: what that
    means only the catalogue shows.
    """
    conditions = filter_of(options)
    if any(ARROW in one.column for one in conditions):
        return ""
    spelling = spelling_of(options)
    spelled = coordinate_format(at, spelling)
    table = ".".join(map(identifier, (options["schema"], options["table"])))
    where = " AND ".join([_at_or_below(options["coordinate"], spelled, spelling), *map(_condition, conditions)])
    columns = options["coordinate"] if spelling is Spelling.XID8_BIGINT else options["coordinate"][:1]
    kept = [f"{identifier(one)}::pg_lsn" if spelling is Spelling.PG_LSN else identifier(one) for one in columns]
    coordinate, order = ", ".join(kept), ", ".join(f"{one} DESC" for one in kept)
    count, positions = int(counted["count"]), int(counted["positions"])
    by = since.replace("%", "%%")  # in a format a single one stands for a value
    differs = literal(
        f"Nothing was deleted: % rows lie at or below {spelled}, and {by} counted {count}, or others."
        " Audit again, then ask purge_check again."
    )
    body = f"""
DECLARE
    held_count numeric;
    held_positions numeric;
    gone_count numeric;
BEGIN
    WITH held AS (
        SELECT {_number(options["coordinate"][0], spelling)} AS position FROM {table} WHERE {where}
    ), newest AS (
        SELECT {coordinate} FROM {table} WHERE {where} ORDER BY {order} LIMIT 1
    ), gone AS (
        DELETE FROM {table} WHERE {where} AND ({coordinate}) <> (SELECT * FROM newest) RETURNING 1
    )
    SELECT count(*), mod(mod(coalesce(sum(2 * position + 1), 0), {WORD}) + {WORD}, {WORD}), (SELECT count(*) FROM gone)
    INTO held_count, held_positions, gone_count FROM held;
    IF held_count <> {count} OR held_positions <> {positions} THEN
        RAISE EXCEPTION {differs}, held_count;
    END IF;
    RAISE NOTICE '% rows were deleted; the newest of those that were counted stays.', gone_count;
END
"""  # nosec B608 # for a person to run; names and values are quoted
    tag = "$purge$"
    while tag in body:
        tag = f"$p{tag[1:]}"
    return f"DO {tag}{body}{tag};"


def identifier(name: str) -> str:
    """A quoted name.

    >>> identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A quoted text that reads alike whatever `standard_conforming_strings` says.

    >>> literal("it's"), literal("a\\\\b") == "E'a" + "\\\\" * 2 + "b'"
    ("'it''s'", True)
    """
    quoted = text.replace("'", "''")
    return "E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in text else f"'{quoted}'"


def _at_or_below(columns: list[str], spelled: str, spelling: Spelling) -> str:
    """Compared by the columns' own types and never as texts; where a column has another type the statement fails."""
    if spelling is Spelling.XID8_BIGINT:
        names, values = ", ".join(map(identifier, columns)), ", ".join(literal(one) for one in spelled.split(":"))
        return f"({names}) <= ({values})"
    name = identifier(columns[0])
    if spelling is Spelling.PG_LSN:
        return f"{name}::pg_lsn <= {literal(spelled)}::pg_lsn"
    return f"{name} <= {spelled}"


def _number(column: str, spelling: Spelling) -> str:
    """The position as a number: as an audit weighs it, whether it is held shifted or not."""
    name = identifier(column)
    return f"({name}::pg_lsn - '0/0'::pg_lsn)" if spelling is Spelling.PG_LSN else f"{name}::text::numeric"


def _condition(condition: Condition) -> str:
    name, values = identifier(condition.column), [literal(one) for one in condition.values]
    match condition.comparison:
        case Comparison.IS_NULL:
            return f"{name} IS NULL"
        case Comparison.IS_NOT_NULL:
            return f"{name} IS NOT NULL"
        case Comparison.IN:
            return f"{name} IN ({', '.join(values)})"
        case Comparison.OTHER:
            return f"{name} IS DISTINCT FROM {values[0]}"
    return f"{name} {condition.comparison.value} {values[0]}"
