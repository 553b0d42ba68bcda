"""A copy of state beside an acceptance record: the options that name it, a table with a row a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery_api.domain.errors import BadInput
from recovery_api.domain.kinds.base import Option

WHOLE, PARTIAL = "whole", "partial"
PARTIAL_SAYS = (
    "Its updates carry only what changed, so no key's latest event says what the key should hold: the history and this "
    "table cannot be compared by latest events."
)

STATE_OPTIONS = (
    Option(
        "state_table",
        "A table in the record's database that holds a copy of state, a row a key: what an image audit compares. Without it"
        " the mapped target, where there is one.",
    ),
    Option("state_schema", "The schema of that table.", default="public"),
    Option("state_key", "Its column that holds the event's key; it needs a unique index of its own."),
    Option("state_content", "Its column that takes the whole content."),
    Option("state_columns", "Members of the content and its columns that take them.", type="columns"),
    Option(
        "state_updates",
        "whole: each insert or update holds all that the key should hold. partial: an update holds what changed alone; then"
        " no image audit is made.",
        type="choice",
        default=WHOLE,
        choices=(WHOLE, PARTIAL),
    ),
)


@dataclass(frozen=True, slots=True)
class StatePlace:
    """Where a copy of state lies. `columns`: by column the member of the content that it takes; None: the whole content."""

    schema: str
    table: str
    key: str
    columns: Mapping[str, str | None]
    is_partial: bool = False


def state_of(kind: str, options: Mapping[str, Any], target: StatePlace | None = None) -> StatePlace | None:
    """The copy of state that parsed options name, else `target`. None: there is none.

    Raises: BadInput where the options contradict each other.
    """
    table, content, columns = options["state_table"], options["state_content"], options["state_columns"]
    if not table:
        for name in ("state_key", "state_content", "state_columns"):
            if options[name]:
                raise BadInput(f"{kind}.{name}", "no state_table is named", "Leave it out, or name state_table.")
        if target is not None and options["state_updates"] == PARTIAL:
            return StatePlace(target.schema, target.table, target.key, target.columns, is_partial=True)
        return target
    if not options["state_key"]:
        raise BadInput(f"{kind}.state_key", "is missing", "Name the column that holds the event's key.")
    if bool(content) == bool(columns):
        raise BadInput(
            f"{kind}.state_columns", "a content is in one column or in several", "Give state_content or state_columns."
        )
    taken = [options["state_key"], *([content] if content else (columns or {}).values())]
    if len(set(taken)) < len(taken):
        raise BadInput(f"{kind}.state_columns", "one column is named twice", "Map each column once.")
    held: dict[str, str | None] = {content: None} if content else {at: member for member, at in columns.items()}
    return StatePlace(options["state_schema"], table, options["state_key"], held, options["state_updates"] == PARTIAL)
