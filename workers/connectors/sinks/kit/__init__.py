"""The sink kit: one schema of one pipeline in the sink's own database, as SQL anybody may read before it runs.

The law: everything the protocol decides is decided in these functions, in one transaction with what it changes. The
.sql files are the kit, split by concept; this module only fills in names and the effect.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recovery_api.domain.kinds.postgresql_kit import Effect, KitOptions
from workers.connectors.postgresql.canonical_sql import MAY_HAVE_TRAILING_ZEROS, payload_digest, zeros_dropped

KIT_VERSION = 4

_HERE = Path(__file__).parent
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


def kit_sql(options: KitOptions, database: str) -> str:
    """The whole kit as one SQL script without transaction control; run it in one transaction."""
    names = names_get(options, database)
    values: dict[str, str] = {
        "schema": quoted(options.schema),
        "schema_text": text(options.schema),
        "accepted_text": text(f"{quoted(options.schema)}.accepted"),
        "kit_version": str(KIT_VERSION),
        "applied_text": text(f"{quoted(options.schema)}.applied"),
        "claim_text": text(f"{quoted(options.schema)}.claim"),
        "counter_text": text(f"{quoted(options.schema)}.counter"),
        "lock_text": text(f"{quoted(options.schema)}.lock"),
        "most_wait_seconds": str(MOST_WAIT_SECONDS),
        "pinned": _PINNED,
        "pinned_texts": _PINNED_TEXTS,
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
        **_DIGEST,
    }
    for trade in ("owner", "relay", "recoverer", "auditor"):
        values[trade] = quoted(getattr(names, trade))
        values[f"{trade}_text"] = text(getattr(names, trade))
    parts = list(_PARTS)
    if options.effect.kind != "none":
        parts[parts.index("admission") : parts.index("admission")] = [
            f"effect_{options.effect.kind}",
            "effects_of_many",
        ]
        values |= _effect_values(options.effect, values)
    values["applied"] = _fill("applied_target" if options.effect.kind == "target" else "applied", values)
    return "\n".join(_fill(part, values) for part in ["roles", *parts])


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


def _effect_values(effect: Effect, values: Mapping[str, str]) -> dict[str, str]:
    arguments = 'lane, "position", ordinal, op, key, content'
    common = {
        "effect_of_event": f"PERFORM {values['schema']}.effect_of_event({arguments});",
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
        return common | specific | {"target_privileges": _fill("function_grants", {**values, **specific})}
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
        "latest_members": _members(members, "s"),
    }
    return common | specific | {"target_privileges": _fill("target_grants", {**values, **specific})}


def _members(members: Mapping[str, str], row: str) -> str:
    pairs = ", ".join(f"{text(column)}, {row}.{value}" for column, value in members.items())
    return f"jsonb_build_object({pairs})"


def _fill(part: str, values: Mapping[str, Any]) -> str:
    sql = (_HERE / f"{part}.sql").read_text(encoding="utf-8")
    return _PLACE.sub(lambda place: values[place[1]], sql)
