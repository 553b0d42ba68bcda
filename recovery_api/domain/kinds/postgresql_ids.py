"""An existing PostgreSQL table that knows only message ids (an inbox): what its owner must say to make it a record.

The laws: the owner says whose rows count, which of them are acceptances and how long they are kept; none of it is
guessed. What cannot be read in such a table is refused, not ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recovery_api.domain.errors import BadInput
from recovery_api.domain.identity import BY_COORDINATE, BY_EVENT_ID, MARK, is_by_event_id
from recovery_api.domain.kinds.base import Option
from recovery_api.domain.kinds.postgresql_mapping import identifier_check
from recovery_api.domain.mapping import ON_PATHS, Condition, Term, filter_parse, term_parse

KIND = "postgresql_table"

LONGEST_SECONDS = 10 * 365 * 86400

_OPTIONS = (
    Option(
        "identity",
        "What events and entries meet by: coordinate, or event_id for a table that knows only message ids (an inbox).",
        type="choice",
        default=BY_COORDINATE,
        choices=(BY_COORDINATE, BY_EVENT_ID),
    ),
    Option(
        "consumer_column", "Of ids: the column that says which consumer a row is of, where several share the table."
    ),
    Option("consumer", "Of ids: that column's value for the one consumer whose rows count."),
    Option(
        "accepted_when",
        "Of ids: which rows are acceptances, as a filter is written: Consumed is not null. Other rows were only received.",
    ),
    Option(
        "lifetime_seconds",
        "Of ids: how long a row is kept after it was accepted, before the sink deletes it. For ever: is_append_only=true.",
        type="integer",
        minimum=1,
        maximum=LONGEST_SECONDS,
    ),
    Option(
        "lifetime_margin_seconds",
        "Of ids: how much of that life does not count, for clocks that differ and commits that take long.",
        type="integer",
        default=60,
        minimum=0,
        maximum=LONGEST_SECONDS,
    ),
)

IDENTITY_OPTIONS = tuple(replace(option, decides=True) for option in _OPTIONS)
"""By ids neither contents nor what is premature is judged: it leaves nothing standing that was judged by coordinate."""

ONLY_OF_IDS = ("consumer_column", "consumer", "accepted_when", "lifetime_seconds")
NEVER_OF_IDS = (
    *("coordinate", "key", "op", "op_values", "content", "digest", "accepted_at", "entry", "generation", "head"),
    *("admitted_in", "joined_table", "joined_schema", "joined_on"),
)


def ids_check(options: Mapping[str, Any]) -> None:
    """What the options of a table so read say together. Raises: BadInput."""
    if not is_by_event_id(options):
        for name in ONLY_OF_IDS:
            if options.get(name) is not None:
                raise BadInput(
                    f"{KIND}.{name}", "is of a record of ids alone", "Say identity=event_id, or leave it out."
                )
        return
    for name in NEVER_OF_IDS:
        if options.get(name) is not None:
            problem = "is not read of a record that is met by id: contents and order are not judged"
            raise BadInput(f"{KIND}.{name}", problem, "Leave it out, or say identity=coordinate.")
    if options.get("is_effect"):
        raise BadInput(f"{KIND}.is_effect", "is said of a table that knows only message ids", MARK)
    if not options.get("event_id"):
        raise BadInput(f"{KIND}.event_id", "is missing", "Name the column of the message id.")
    for name in ("event_id", "consumer_column"):
        if options.get(name):
            _own_term(name, options[name])
    if options.get("consumer") is not None and not options.get("consumer_column"):
        raise BadInput(f"{KIND}.consumer", "is given without its column", "Name consumer_column.")
    for name in ("accepted_when", "filter"):
        for condition in conditions_of(options, name):
            term = _own_term(name, condition.column)
            if term.path and condition.comparison not in ON_PATHS:
                problem = f"{condition.column!r} is a path, whose text is compared by {condition.comparison.value}"
                raise BadInput(f"{KIND}.{name}", problem, "Compare it with =, <> or in: as texts, 10 comes before 9.")
    _lifetime_check(options)


def conditions_of(options: Mapping[str, Any], name: str) -> tuple[Condition, ...]:
    """The conditions of one of the two filters: `filter` for rows that count at all, `accepted_when` for acceptances."""
    text = options.get(name)
    return filter_parse(f"{KIND}.{name}", text) if text else ()


def _own_term(name: str, text: str) -> Term:
    term = term_parse(f"{KIND}.{name}", text)
    if term.is_constant or term.is_joined:
        raise BadInput(
            f"{KIND}.{name}", f"{text!r} is no column of the table itself", "Name one, or a path in its JSON."
        )
    identifier_check(f"{KIND}.{name}", term.column)
    return term


def _lifetime_check(options: Mapping[str, Any]) -> None:
    """How long rows live has no default: a wrong one would call events lost that were delivered."""
    lifetime, is_kept = options.get("lifetime_seconds"), options.get("is_append_only")
    says = "Say lifetime_seconds, as the sink deletes its rows, or is_append_only=true where they are kept for ever."
    if lifetime is None and not is_kept:
        raise BadInput(f"{KIND}.lifetime_seconds", "is not said", says)
    if lifetime is not None and is_kept:
        raise BadInput(f"{KIND}.lifetime_seconds", "is given, and is_append_only=true says that rows stay", says)
    if lifetime is not None and lifetime <= options["lifetime_margin_seconds"]:
        problem = f"{lifetime} s are no longer than the margin of {options['lifetime_margin_seconds']} s"
        remedy = "An absence would never show anything: keep rows longer, or give a smaller lifetime_margin_seconds."
        raise BadInput(f"{KIND}.lifetime_seconds", problem, remedy)
