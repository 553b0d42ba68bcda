"""Keys and contents of a copy of state as SQL: one hash a key, one digest a content, the same at source and target.

A content is compared as the target would hold it: its members cast to the columns' own types, by the rules by which the
sink kit applies an event (`jsonb_populate_record`). What a column cannot hold has a digest that no row of the target can
have. One law: an expression here depends on nothing but the value and `CANONICAL_SETTINGS`.
"""

from __future__ import annotations

from recovery_api.domain.errors import Unsuitable
from workers.connectors.postgresql import canonical_sql
from workers.connectors.postgresql.canonical_sql import literal
from workers.connectors.protocols.image import StateColumn, StateMapping

JSON_TYPES = ("json", "jsonb")
TEXT_TYPES = ("text",)
"""Types that hold any text as it is."""

KEY_TYPES = {
    **dict.fromkeys(("text", "varchar", "bpchar", "uuid", "bool", "int2", "int4", "int8", "bytea"), "{}::text"),
    **dict.fromkeys(("date", "time", "timestamp", "timestamptz", "inet", "cidr", "macaddr"), "{}::text"),
    "numeric": "trim_scale({})::text",
    "float4": "({} + 0)::text",
    "float8": "({} + 0)::text",
}
"""Types whose equal values have one text by this expression, so that two spellings of a key have one hash."""

CONTENT_TYPES = (*KEY_TYPES, "timetz", "interval", *JSON_TYPES)
"""Types that every PostgreSQL server has, and casts alike under pinned settings."""

NOT_HELD = literal("not representable ")


def types_check(mapping: StateMapping, target: str) -> None:
    """Nothing, where key and contents can be compared by their values. Raises: Unsuitable, with why not."""
    if mapping.key.base not in KEY_TYPES:
        raise Unsuitable(
            f"the key {mapping.key.name!r} of {target}",
            f"is {mapping.key.base}, and its equality is not that of a text: a key in another spelling would be taken for "
            "another key",
            f"Image audits compare keys of type {', '.join(KEY_TYPES)}.",
        )
    for column in mapping.columns:
        if column.base not in CONTENT_TYPES:
            raise Unsuitable(
                f"column {column.name!r} of {target}",
                f"is {column.base}: the source's server need not cast a value to it as the target's does",
                f"Image audits compare columns of type {', '.join(CONTENT_TYPES)}.",
            )


def key_hash_at_target(column: StateColumn, row: str) -> str:
    """The hash of a target row's key."""
    return _hash(KEY_TYPES[column.base].format(f"{row}.{quoted(column.name)}"))


def key_hash_of_event(column: StateColumn, key: str, has_soft_errors: bool) -> str:
    """The hash of an event's key, a text expression. A key that the column cannot hold has one that no row has."""
    if column.base in TEXT_TYPES:
        return _hash(key)
    typed = _hash(KEY_TYPES[column.base].format(f"(k.given::{column.type})"))
    if has_soft_errors:
        valid = f"k.given IS NULL OR pg_input_is_valid(k.given, {literal(column.type)})"
        typed = f"CASE WHEN {valid} THEN {typed} ELSE sha256(convert_to({NOT_HELD} || k.given, 'UTF8')) END"
    return f"(SELECT {typed} FROM (SELECT ({key})::text AS given OFFSET 0) AS k)"  # nosec B608 # built of constants; names are quoted


def key_is(column: StateColumn, row: str, key: str, has_soft_errors: bool) -> str:
    """Whether a target row's key is this one, as an event writes it; by the key's own equality, so that its index serves."""
    held = f"{row}.{quoted(column.name)}"
    if column.base in TEXT_TYPES:
        return f"{held}::text = {key}"
    typed = f"({key})::{column.type}"
    if has_soft_errors:
        typed = f"CASE WHEN pg_input_is_valid({key}, {literal(column.type)}) THEN {typed} END"
    return f"{held} = {typed}"


def digest_at_target(mapping: StateMapping, row: str, has_soft_errors: bool) -> str:
    """The digest of what a target's row holds in the mapped columns."""
    held = [_shown(one, f"{row}.{quoted(one.name)}", has_soft_errors) for one in mapping.columns]
    if _is_whole(mapping):
        return _digest(f"coalesce({held[0]}, 'null'::jsonb)")
    return _digest(_object(mapping, held))


def digest_of_event(mapping: StateMapping, content: str, raw: str, has_soft_errors: bool) -> str:
    """The digest of what the target would hold. `content`: a jsonb expression, null where there is none or jsonb cannot hold
    it; `raw`: its text, null only where there is none."""
    columns = mapping.columns
    held = [_typed(one, f"(g.c -> {literal(one.member)})" if one.member is not None else "g.c") for one in columns]
    document = f"coalesce({held[0]}, 'null'::jsonb)" if _is_whole(mapping) else _object(mapping, held)
    valid = ["(g.c IS NOT NULL OR g.raw IS NULL)"]
    if has_soft_errors:
        valid += [check for one in columns if (check := _valid(one))]
    return (
        f"(SELECT CASE WHEN {' AND '.join(valid)} THEN {_digest(document)}"  # nosec B608 # built of constants; names are quoted
        f" ELSE sha256(convert_to({NOT_HELD} || g.raw, 'UTF8')) END"
        f" FROM (SELECT {content} AS c, ({raw})::text AS raw OFFSET 0) AS g)"
    )


def is_partial(mapping: StateMapping, op: str, content: str) -> str:
    """Whether an event is an update that lacks a member that the target has a column for."""
    if not mapping.members:
        return "false"
    members = ", ".join(map(literal, mapping.members))
    return f"(({op}) = 'update' AND NOT coalesce(({content}) ?& ARRAY[{members}]::text[], false))"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_whole(mapping: StateMapping) -> bool:
    return len(mapping.columns) == 1 and mapping.columns[0].member is None


def _object(mapping: StateMapping, held: list[str]) -> str:
    pairs = ", ".join(f"{literal(one.name)}, {value}" for one, value in zip(mapping.columns, held, strict=True))
    return f"jsonb_build_object({pairs})"


def _shown(column: StateColumn, value: str, has_soft_errors: bool) -> str:
    """What a target's column holds, as JSON. A `json` that jsonb cannot hold, put there by hand, is its text."""
    if column.base == "json" and has_soft_errors:
        text = f"({value})::text"
        return f"CASE WHEN pg_input_is_valid({text}, 'jsonb') THEN ({text})::jsonb ELSE to_jsonb({text}) END"
    if column.base in JSON_TYPES:
        return f"nullif(({value})::jsonb, 'null'::jsonb)"
    return f"to_jsonb({value})"


def _hash(text: str) -> str:
    return f"sha256(convert_to({canonical_sql.key_json(text)}, 'UTF8'))"


def _digest(document: str) -> str:
    return f"sha256(convert_to({canonical_sql.canonical_jsonb(document)}, 'UTF8'))"


def _text(column: StateColumn) -> str:
    """The text that the column's input is given: a JSON string's own, of everything else its JSON."""
    value = "g.c" if column.member is None else f"(g.c -> {literal(column.member)})"
    return f"({value} #>> ARRAY[]::text[])"


def _typed(column: StateColumn, value: str) -> str:
    """`value`, JSON, as the column holds it, as JSON again; JSON's null and no value are one null."""
    if column.base in JSON_TYPES:
        return f"nullif({value}, 'null'::jsonb)"
    return f"to_jsonb({_text(column)}::{column.type})"


def _valid(column: StateColumn) -> str:
    if column.base in (*JSON_TYPES, *TEXT_TYPES):
        return ""
    return f"({_text(column)} IS NULL OR pg_input_is_valid({_text(column)}, {literal(column.type)}))"
