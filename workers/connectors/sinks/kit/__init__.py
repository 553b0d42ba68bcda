"""The sink kit: one schema of one pipeline in the sink's own database, as SQL anybody may read before it runs.

The law: everything the protocol decides is decided in these functions, in one transaction with what it changes. The
.sql files are the kit, split by concept; this module only fills in names and the effect.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from recovery_api.domain.kinds.postgresql_kit import Effect, KitOptions
from workers.connectors.postgresql.canonical_sql import MAY_HAVE_TRAILING_ZEROS, payload_digest, zeros_dropped

KIT_VERSION = 5
FOLLOWED_INDEX = "record_by_transaction"
"""The record's index by which what is new in it is found. Nothing that the kit decides rests on it."""

_HERE = resources.files(__name__)
_PARTS = ("schema", "digest", "locks", "admission", "claim", "fire", "reading", "guards", "grants")
# The payload's digest, step by step, of the variables op, key and content. Absent content is the empty text, a delete's
# null; numbers lose trailing fractional zeros, looked for where there is a point at all.
_DIGEST = {
    "canonical_text": "coalesce(content::text, CASE op WHEN 'delete' THEN 'null' ELSE '' END)",
    "has_trailing_zeros": f"position('.' IN canonical) > 0 AND canonical ~ {MAY_HAVE_TRAILING_ZEROS}",
    "zeros_dropped": zeros_dropped("canonical"),
    "digest_of_canonical": payload_digest("op", "key", "sha256(convert_to(canonical, 'UTF8'))"),
}
MOST_WAIT_SECONDS = 60
"""What every wait at a sink is bounded by, whatever its caller asks for."""

# What a function's result may depend on, fixed for the time of its call; and a bound for each wait inside, a row's, too.
_PINNED_TEXTS = "SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on"
_PINNED = (
    f"{_PINNED_TEXTS} SET \"TimeZone\" = 'UTC' SET \"DateStyle\" = 'ISO, MDY' SET \"IntervalStyle\" = 'postgres' "
    f"SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '{MOST_WAIT_SECONDS}s'"
)
WRITTEN_OUT = _DIGEST | {
    "most_wait_seconds": str(MOST_WAIT_SECONDS),
    "pinned": _PINNED,
    "pinned_texts": _PINNED_TEXTS,
}
"""What is the same for all options: a released text has it written out."""
_PLACE = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Names:
    """The kit's roles: the owner nobody logs in as, and the groups a login is granted one of."""

    owner: str
    relay: str
    recoverer: str
    auditor: str


def names_get(options: KitOptions, database: str) -> Names:
    """The role names of a kit in `database`."""
    prefix = options.prefix_in(database)
    return Names(*(f"{prefix}_{trade}" for trade in ("owner", "relay", "recoverer", "auditor")))


@dataclass(frozen=True, slots=True)
class KitText:
    """One SQL text of the kit, with places for names: the one that is installed today, or an earlier one as released.

    `has_typed_keys`: the applied keys have the target's own type, by a part that differs with the effect. `arguments` and
    `latest_row` are how that text's functions name an event and a key's latest row.
    """

    version: int
    parts: tuple[str, ...]
    read: Callable[[str], str]
    has_typed_keys: bool = True
    effect_parts: tuple[str, ...] = ("effects_of_many",)
    arguments: str = 'lane, "position", ordinal, op, key, content'
    latest_row: str = "s"


def part_read(part: str) -> str:
    """A part of today's text as it is written."""
    return (_HERE / f"{part}.sql").read_text(encoding="utf-8")


def parts_all() -> list[str]:
    """The names of today's parts, whichever effect they serve."""
    return sorted(path.name.removesuffix(".sql") for path in _HERE.iterdir() if path.name.endswith(".sql"))


def part_frozen(part: str) -> str:
    """A part of today's text with what no option changes written out, so that it stands without this module."""
    return _PLACE.sub(lambda place: WRITTEN_OUT.get(place[1], place[0]), part_read(part))


TODAY = KitText(KIT_VERSION, ("roles", *_PARTS), part_read)


def kit_sql(options: KitOptions, database: str, text_: KitText = TODAY) -> str:
    """The whole kit as one SQL script without transaction control; run it in one transaction."""
    values = _values(options, database, text_)
    parts = list(text_.parts)
    if options.effect.kind != "none":
        parts[parts.index("admission") : parts.index("admission")] = [
            f"effect_{options.effect.kind}",
            *text_.effect_parts,
        ]
        values |= _effect_values(options.effect, values, text_)
    if text_.has_typed_keys:
        applied = "applied_target" if options.effect.kind == "target" else "applied"
        values["applied"] = _fill(applied, values, text_)
    return "\n".join(_fill(part, values, text_) for part in parts)


def roles_sql(options: KitOptions, database: str) -> str:
    """The part that makes the roles and lets who installs act as the owner; run again, it changes nothing else."""
    return _fill("roles", _values(options, database, TODAY), TODAY)


def lock_key(schema: str) -> int:
    """The advisory lock that kits up to version 3 took in `schema`: an upgrade takes it, too."""
    return int.from_bytes(hashlib.sha256(f"fencepost:{schema}".encode()).digest()[:8], "big", signed=True)


def quoted(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """`value` as an SQL string literal."""
    escaped = value.replace("'", "''")
    return " E'" + escaped.replace("\\", "\\\\") + "'" if "\\" in escaped else f"'{escaped}'"


def _values(options: KitOptions, database: str, text_: KitText) -> dict[str, str]:
    names = names_get(options, database)
    values: dict[str, str] = {
        "schema": quoted(options.schema),
        "schema_text": text(options.schema),
        "accepted_text": text(f"{quoted(options.schema)}.accepted"),
        "kit_version": str(text_.version),
        "lock_key": str(lock_key(options.schema)),
        "applied_text": text(f"{quoted(options.schema)}.applied"),
        "claim_text": text(f"{quoted(options.schema)}.claim"),
        "counter_text": text(f"{quoted(options.schema)}.counter"),
        "lock_text": text(f"{quoted(options.schema)}.lock"),
        "lanes": f"ARRAY[{', '.join(map(text, options.lanes))}]" if options.lanes else "NULL",
        "lock_wait_seconds": str(options.lock_wait_seconds),
        "batch_limit": str(options.batch_limit),
        "relay_wait_seconds": str(options.relay_wait_seconds),
        "effect_json": text(json.dumps(options.effect.as_row(), sort_keys=True)),
        "target_regclass": "NULL::oid",
        "target_privileges": "",
        "effect_of_event": "NULL;",
        "effect_of_many": "NULL;",
        "effect_of_batch": "NULL;",
        **WRITTEN_OUT,
    }
    for trade in ("owner", "relay", "recoverer", "auditor"):
        values[trade] = quoted(getattr(names, trade))
        values[f"{trade}_text"] = text(getattr(names, trade))
    return values


def _effect_values(effect: Effect, values: Mapping[str, str], text_: KitText) -> dict[str, str]:
    common = {
        "effect_of_event": f"PERFORM {values['schema']}.effect_of_event({text_.arguments});",
        "effect_of_many": f"PERFORM {values['schema']}.effects_of_many(deliver_many.events, answers);",
        "effect_of_batch": f"PERFORM {values['schema']}.effect_of_batch(fire.generation, fire.arm);",
    }
    if effect.kind == "function":
        name = f"{quoted(effect.schema)}.{quoted(effect.name)}"
        signature = f"{name}(text, bigint, bigint, text, text, jsonb)"
        specific = {
            "function": name,
            "function_text": name,
            "function_schema": quoted(effect.schema),
            "function_signature": signature,
            "function_signature_text": text(signature),
            "effect_order": effect.order,
        }
        return common | specific | {"target_privileges": _fill("function_grants", {**values, **specific}, text_)}
    target = f"{quoted(effect.schema)}.{quoted(effect.name)}"
    members = {effect.key: "key"} | (
        {effect.content: "content"}
        if effect.content
        else {column: f"content -> {text(member)}" for member, column in effect.columns.items()}
    )
    columns = [quoted(name) for name in members]
    specific = {
        "target": target,
        "target_text": text(target),
        "target_regclass": f"to_regclass({text(target)})",
        "target_schema": quoted(effect.schema),
        "target_key": quoted(effect.key),
        "target_key_text": text(effect.key),
        "target_columns": ", ".join(columns),
        "target_values": ", ".join(f"(r.row).{name}" for name in columns),
        "target_updates": ", ".join(f"{name} = EXCLUDED.{name}" for name in columns),
        "event_members": _members(members, "effect_of_event"),
        "latest_members": _members(members, text_.latest_row),
    }
    return common | specific | {"target_privileges": _fill("target_grants", {**values, **specific}, text_)}


def _members(members: Mapping[str, str], row: str) -> str:
    pairs = ", ".join(f"{text(column)}, {row}.{value}" for column, value in members.items())
    return f"jsonb_build_object({pairs})"


def _fill(part: str, values: Mapping[str, Any], text_: KitText) -> str:
    return _PLACE.sub(lambda place: values[place[1]], text_.read(part))
