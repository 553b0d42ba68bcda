"""How a PostgreSQL table's columns are mapped to events: shared by every kind that reads a table as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.errors import BadInput
from recovery_api.domain.kinds.base import Option

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

MAPPING_OPTIONS = (
    Option("schema", "The table's schema, exactly as the catalogue spells it.", default="public"),
    Option("table", "The table, exactly as the catalogue spells it, without quotes.", is_required=True),
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
        choices=tuple(spelling.value for spelling in Spelling),
    ),
    Option("event_id", "The column of the event's own id; shown, never matched."),
    Option("key", "The column that says whose event it is."),
    Option("op", "The column that says insert, update or delete. Without one every row is `op_constant`."),
    Option("op_constant", "What every row is, where no column says it.", type="choice", default="insert", choices=OPS),
    Option(
        "op_values",
        "How the op column's values read, value to op: c=insert, u=update, d=delete. Without it they are the ops.",
        type="columns",
    ),
    Option("content", "The column of the event's content."),
    Option(
        "content_format",
        "How the content column is read: json, text (a JSON string), bytes (a JSON string of its hex).",
        type="choice",
        default="json",
        choices=("json", "text", "bytes"),
    ),
    Option(
        "preset",
        "The preset that filled the options left out: whose library's table it is. A test compares the columns.",
    ),
)


def spelling_of(options: Mapping[str, Any]) -> Spelling:
    """How a table so mapped writes its coordinates."""
    return Spelling(options.get("coordinate_spelling") or Spelling.BIGINT)


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
    names += [(option, options[option]) for option in column_options if options.get(option)]
    for option, name in names:
        identifier_check(f"{kind}.{option}", name)


def identifier_check(field: str, name: str) -> None:
    """Raises: BadInput for what cannot be the name of a schema, a table or a column."""
    if "\x00" in name or len(name.encode("utf-8", "surrogatepass")) > IDENTIFIER_BYTES:
        raise BadInput(
            field,
            f"{name[:80]!r} cannot be a name in PostgreSQL",
            f"A name has at most {IDENTIFIER_BYTES} bytes and no NUL.",
        )
