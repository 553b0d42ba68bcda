"""How a PostgreSQL table's or view's columns are mapped to events: shared by every kind that reads one as it is.

What a mapped value may be written as, `recovery_api.domain.mapping` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from recovery_api.domain.coordinates import TABLE_SPELLINGS, Spelling
from recovery_api.domain.errors import BadInput
from recovery_api.domain.kinds.base import Gaps, Option
from recovery_api.domain.mapping import ON_PATHS, Condition, Term, filter_parse, filter_text, term_parse

OPS = ("insert", "update", "delete")
IDENTIFIER_BYTES = 63
"""PostgreSQL cuts longer names silently, and a cut name may be another table's."""

CONNECTION_OPTIONS = (
    Option(
        "connection",
        "Where the connection string is kept: env:FENCEPOST_END_NAME or file:/path. A libpq URL or key=value string.",
        type="reference",
        is_required=True,
    ),
    Option("connect_timeout_seconds", "How long to wait for a connection.", type="integer", default=10, minimum=1),
    Option(
        "answer_timeout_seconds",
        "How long the server may stay silent in a step, besides what its entries add, before the step is given up.",
        type="integer",
        default=30,
        minimum=1,
    ),
    Option(
        "statement_timeout_seconds",
        "How long one statement may run; 0 is no limit for readings, and the role's own for what writes.",
        type="integer",
        default=0,
        minimum=0,
    ),
)

CONTENT_FORMATS = {
    "json": "JSON in a json, jsonb or text column",
    "escaped": "JSON inside a JSON string, or JSON as it is",
    "text": "a text",
    "bytes": "bytea",
    "hex": "bytes written as hex digits",
    "base64": "bytes written as base64",
    "json_bytes": "JSON as UTF-8 in bytea",
    "text_bytes": "text as UTF-8 in bytea",
}
"""Contents of bytes (bytes, hex, base64) are one JSON string of `\\x` and the hex, so that they compare with each other."""

MAY_BE = "A column, column->a->b (JSON), =constant, or joined.column."

_OPTIONS = (
    Option("schema", "The table's schema, exactly as the catalogue spells it.", default="public"),
    Option("table", "The table or view, exactly as the catalogue spells it, without quotes.", is_required=True),
    Option(
        "preset",
        "The preset that filled the options left out: whose library's table it is. A test compares the columns.",
    ),
    Option(
        "coordinate",
        "The column that orders the history; two for xid8_bigint: transaction id, number.",
        type="names",
        is_required=True,
    ),
    Option(
        "coordinate_spelling",
        "What the coordinate is: bigint, unsigned, pg_lsn, or xid8_bigint for two columns.",
        type="choice",
        default=Spelling.BIGINT.value,
        choices=tuple(spelling.value for spelling in TABLE_SPELLINGS),
    ),
    Option("event_id", f"The event's own id: shown, and matched only where a record knows nothing else. {MAY_BE}"),
    Option("key", f"Whose event it is. {MAY_BE}"),
    Option("op", f"What says insert, update or delete. Without it every row is `op_constant`. {MAY_BE}"),
    Option("op_constant", "What every row is, where nothing says it.", type="choice", default="insert", choices=OPS),
    Option(
        "op_values",
        "How the values of `op` read, value to op: c=insert, u=update, d=delete. Without it they are the ops.",
        type="columns",
    ),
    Option("content", f"The event's content. {MAY_BE}"),
    Option(
        "content_format",
        "How the content is read: " + "; ".join(f"{name}: {says}" for name, says in CONTENT_FORMATS.items()) + ".",
        type="choice",
        default="json",
        choices=tuple(CONTENT_FORMATS),
    ),
    Option(
        "filter",
        "Which rows count, column comparison value: state = 'sent' and kind in ('a', 'b') and deleted_at is null.",
    ),
    Option("joined_table", "One more table, whose columns are then mapped as joined.column."),
    Option("joined_schema", "The joined table's schema. Without it: the table's own."),
    Option(
        "joined_on",
        "Which columns must be equal, own=theirs: order_id=id. Theirs must be unique.",
        type="columns",
    ),
)

MAPPING_OPTIONS = tuple(replace(option, decides=True) for option in _OPTIONS)


def spelling_of(options: Mapping[str, Any]) -> Spelling:
    """How a table so mapped writes its coordinates."""
    return Spelling(options.get("coordinate_spelling") or Spelling.BIGINT)


ROLLED_BACK = Gaps(
    proven=("was never committed (rollbacks). Harmless.", "were never committed (rollbacks). Harmless."),
    unproven=(
        "has no row: rolled back, or still open, which only the ground rules out.",
        "have no row: rolled back, or still open, which only the ground rules out.",
    ),
)


def gaps_of(options: Mapping[str, Any]) -> Gaps | None:
    """What a number without a row means: a rollback, where the coordinate is one number drawn at a time."""
    return ROLLED_BACK if spelling_of(options) is Spelling.BIGINT else None


def mapping_check(kind: str, options: Mapping[str, Any], column_options: tuple[str, ...]) -> None:
    """What the options say together. `column_options` name those whose value is one column.

    Raises: BadInput.
    """
    spelling, coordinate = spelling_of(options), options["coordinate"]
    wanted = 2 if spelling is Spelling.XID8_BIGINT else 1
    if len(coordinate) != wanted or len(set(coordinate)) != wanted:
        raise BadInput(
            f"{kind}.coordinate",
            f"{len(coordinate)} columns are given and {spelling.value} has {wanted}",
            "Name the transaction id's column and the number's for xid8_bigint, one column otherwise.",
        )
    for value, op in (options.get("op_values") or {}).items():
        if op not in OPS:
            raise BadInput(f"{kind}.op_values", f"{value!r} is mapped to {op!r}", f"Map it to one of {', '.join(OPS)}.")
    if options.get("op_values") and not options.get("op"):
        raise BadInput(
            f"{kind}.op_values", "is given without an op column", "Name the column in `op`, or leave it out."
        )
    names = [("schema", options["schema"]), ("table", options["table"])]
    names += [("coordinate", name) for name in coordinate]
    for option, name in names:
        identifier_check(f"{kind}.{option}", name)
    _joined_check(kind, options)
    for option in column_options:
        if text := options.get(option):
            _text_check(f"{kind}.{option}", text)
    for condition in filter_of(options, f"{kind}.filter"):
        _text_check(f"{kind}.filter", condition.column)


def filter_of(options: Mapping[str, Any], field: str = "filter") -> tuple[Condition, ...]:
    """The conditions that a row must meet, all of them; none where every row counts. Raises: BadInput."""
    text = options.get("filter")
    return filter_parse(field, text) if text else ()


def filter_says(options: Mapping[str, Any]) -> str | None:
    """The filter as it is shown and digested; None where every row counts."""
    return filter_text(filter_of(options)) or None


def joined_place(options: Mapping[str, Any]) -> tuple[str, str] | None:
    """Schema and name of the joined table; None without one."""
    name = options.get("joined_table")
    return (options.get("joined_schema") or options["schema"], name) if name else None


def _joined_check(kind: str, options: Mapping[str, Any]) -> None:
    table, on = options.get("joined_table"), options.get("joined_on")
    for option in ("joined_schema", "joined_on"):
        if options.get(option) and not table:
            raise BadInput(f"{kind}.{option}", "is given without a joined table", "Name joined_table, or leave it out.")
    if not table:
        return
    if not on:
        raise BadInput(f"{kind}.joined_on", "is missing", "Say which columns must be equal: own=theirs.")
    for option, name in _joined_names(options, on):
        identifier_check(f"{kind}.{option}", name)


def _joined_names(options: Mapping[str, Any], on: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield "joined_table", options["joined_table"]
    if options.get("joined_schema"):
        yield "joined_schema", options["joined_schema"]
    for own, theirs in on.items():
        yield from (("joined_on", own), ("joined_on", theirs))


def _text_check(field: str, text: str) -> None:
    """What can be said of a mapped value before the catalogue is seen. Raises: BadInput."""
    term = term_parse(field, text)
    for part in [text] if term.is_constant else term.path:
        if "\x00" in part:
            raise BadInput(field, "holds a NUL", "PostgreSQL keeps no text with one.")
    if not term.is_constant:
        identifier_check(field, term.column)


def condition_check(condition: Condition, term: Term) -> None:
    """Nothing, where a filter may compare what `term` means in the catalogue. Raises: BadInput."""
    if term.is_constant or term.is_joined:
        problem = f"{condition.column!r} is no column of the table itself"
        remedy = "Filter by the table's own columns: a change in another table would move rows in and out unseen."
        raise BadInput("filter", problem, remedy)
    if term.path and condition.comparison not in ON_PATHS:
        problem = f"{condition.column!r} is compared by {condition.comparison.value}"
        remedy = "What a path gives is text, and as text 10 comes before 9: compare it with =, <> or in."
        raise BadInput("filter", problem, remedy)


def identifier_check(field: str, name: str) -> None:
    """Raises: BadInput for what cannot be the name of a schema, a table or a column."""
    if "\x00" in name or len(name.encode("utf-8", "surrogatepass")) > IDENTIFIER_BYTES:
        raise BadInput(
            field,
            f"{name[:80]!r} cannot be a name in PostgreSQL",
            f"A name has at most {IDENTIFIER_BYTES} bytes and no NUL.",
        )
