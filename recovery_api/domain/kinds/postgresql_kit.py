"""The fenced PostgreSQL sink: the kit in a schema of its own, one pipeline a schema. Options and their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery_api.domain.abilities import Ability
from recovery_api.domain.capabilities import Archetype
from recovery_api.domain.errors import BadInput
from recovery_api.domain.kinds.base import RESTORE_OPTION, Installer, Kind, Option
from recovery_api.domain.kinds.horizons import RECORD_HORIZONS, horizons_check
from recovery_api.domain.kinds.postgresql_mapping import CONNECTION_OPTIONS, IDENTIFIER_BYTES
from recovery_api.domain.kinds.state import STATE_OPTIONS, StatePlace, state_of
from recovery_api.domain.points import FOR_GOOD, Point, Value

TRADES = ("relay", "recoverer", "auditor")
"""What a login can be made in a kit: each is a group of its own."""
ROLE_SUFFIX_BYTES = len("_recoverer")


@dataclass(frozen=True, slots=True)
class Effect:
    """What an acceptance does besides being recorded. `kind`: none | target | function.

    `order`: none and a mapped target are guarded by the kit; a function says of itself.
    """

    kind: str = "none"
    schema: str = ""
    name: str = ""
    key: str = ""
    content: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    order: str = "guarded"

    def as_row(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "schema": self.schema,
            "name": self.name,
            "key": self.key,
            "content": self.content,
            "columns": dict(self.columns),
            "order": self.order,
        }


@dataclass(frozen=True, slots=True)
class KitOptions:
    """The parsed options that shape the kit itself."""

    schema: str
    prefix: str | None
    effect: Effect
    batch_limit: int
    lock_wait_seconds: int
    relay_wait_seconds: int
    lanes: tuple[str, ...] = ()

    def prefix_in(self, database: str) -> str:
        """What the kit's roles begin with. Raises: BadInput where a role's name would be too long."""
        prefix = self.prefix or f"{database}_{self.schema}"
        if len(prefix.encode()) + ROLE_SUFFIX_BYTES > IDENTIFIER_BYTES:
            raise BadInput(
                "postgresql_kit.prefix",
                f"{prefix!r} makes role names longer than {IDENTIFIER_BYTES} bytes",
                f"Give a prefix of at most {IDENTIFIER_BYTES - ROLE_SUFFIX_BYTES} bytes.",
            )
        return prefix


def kit_options(options: Mapping[str, Any]) -> KitOptions:
    """The kit that parsed `options` describe. Raises: BadInput where they contradict each other."""
    horizons_check("postgresql_kit", options)
    if len(options["schema"].encode()) > IDENTIFIER_BYTES:
        raise BadInput("postgresql_kit.schema", f"is longer than {IDENTIFIER_BYTES} bytes", "Give a shorter one.")
    kit_state(options)
    return KitOptions(
        schema=options["schema"],
        prefix=options["prefix"],
        effect=_effect(options),
        batch_limit=options["batch_limit"],
        lock_wait_seconds=options["lock_wait_seconds"],
        relay_wait_seconds=options["relay_wait_seconds"],
        lanes=tuple(options["lanes"] or ()),
    )


def _effect(options: Mapping[str, Any]) -> Effect:
    target, function = options["target"], options["effect_function"]
    if target and function:
        raise BadInput("postgresql_kit.effect_function", "a target is mapped already", "Give one of the two.")
    if function:
        if not options["effect_order"]:
            raise BadInput(
                "postgresql_kit.effect_order", "is missing", "Say whether it is order-free, guarded or ordered."
            )
        return Effect("function", options["effect_schema"], function, order=options["effect_order"])
    if not target:
        for name in ("target_key", "target_content", "target_columns", "effect_order"):
            if options[name]:
                raise BadInput(f"postgresql_kit.{name}", "there is no target or function", "Leave it out, or give one.")
        return Effect()
    if not options["target_key"]:
        raise BadInput("postgresql_kit.target_key", "is missing", "Name the target's column for the event's key.")
    if bool(options["target_content"]) == bool(options["target_columns"]):
        raise BadInput(
            "postgresql_kit.target_columns", "content goes to one column or to several", "Give one of the two options."
        )
    columns = options["target_columns"] or {}
    taken = [options["target_key"], options["target_content"], *columns.values()]
    if len({name for name in taken if name}) < len([name for name in taken if name]):
        raise BadInput("postgresql_kit.target_columns", "one column is named twice", "Map each column once.")
    return Effect(
        "target",
        options["target_schema"],
        target,
        key=options["target_key"],
        content=options["target_content"] or "",
        columns=columns,
    )


def kit_state(options: Mapping[str, Any]) -> StatePlace | None:
    """The copy of state beside the kit's record: the table that is named, else the mapped target. Raises: BadInput."""
    effect, target = _effect(options), None
    if effect.kind == "target":
        columns: dict[str, str | None] = {effect.content: None} if effect.content else {}
        columns |= {column: member for member, column in effect.columns.items()}
        target = StatePlace(effect.schema, effect.name, effect.key, columns)
    return state_of("postgresql_kit", options, target)


def _withheld(options: Mapping[str, Any]) -> frozenset[Ability]:
    return frozenset() if kit_state(options) else frozenset({Ability.STATE})


def _declared(options: Mapping[str, Any]) -> Mapping[Point, Value]:
    return {Point.IDENTITY_KEY: True, Point.MEMORY: FOR_GOOD, Point.BATCH_LIMIT: options["batch_limit"]}


KIND = Kind(
    name="postgresql_kit",
    end="sink",
    label="PostgreSQL with the sink kit",
    says="A PostgreSQL database with Fencepost's sink kit: fence, claims and acceptance record in one schema.",
    archetype=Archetype.FENCED,
    abilities=frozenset(
        {
            Ability.RECORD_BY_RANGE,
            Ability.FOLLOWED,
            Ability.ORDERED_EFFECT,
            Ability.STATE,
            Ability.FENCED,
            Ability.DRILLED,
        }
    ),
    withheld=_withheld,
    check=kit_options,
    connector="workers.connectors.sinks.postgresql_kit.PostgresqlKit",
    installer=Installer("the sink kit", TRADES, "workers.connectors.sinks.kit.putting"),
    example={"connection": "env:FENCEPOST_END_MAIL"},
    declares=_declared,
    tests={
        Point.READS_RECORD: "The server is asked for this login's rights at the kit, and for policies that hide rows.",
        Point.RECORD_COMPLETE: "The kit keeps every acceptance; the server is asked whether it is the primary.",
        Point.FENCE: "What is installed is compared, object by object, with what the kit's text installs; and this login's"
        " rights to claim, stage and fire are asked of the server.",
        Point.IDENTITY_KEY: "The record's primary key is looked for in the catalogue.",
        Point.ONE_TRANSACTION: "The fire is one function of the kit: installed as its text says, and this login may call it.",
        Point.APPEND: "Not asked: this kind is fired into.",
        Point.MEMORY: "The kit deletes no acceptance, and its primary key covers all of them.",
        Point.BATCH_LIMIT: "The installed kit's own limit is read.",
    },
    shows=(
        "Which kit is installed, object by object, and in which version.",
        "Whether this login may read the whole record, claim, stage and fire.",
        "Every way into record or target that passes the fence by.",
    ),
    options=(
        *CONNECTION_OPTIONS,
        RESTORE_OPTION,
        *RECORD_HORIZONS,
        Option("schema", "The kit's schema, one a pipeline.", default="fencepost"),
        Option("prefix", "What the kit's roles begin with; <database>_<schema> when not given."),
        Option("target_schema", "The schema of the mapped target table.", default="public"),
        Option("target", "The table that accepted events are applied to; none when not given."),
        Option("target_key", "The target's column that holds the event's key; it needs a unique index of its own."),
        Option("target_content", "The target's column that takes the whole content."),
        Option("target_columns", "Members of the content and the target's columns that take them.", "columns"),
        *STATE_OPTIONS,
        Option("effect_schema", "The schema of the effect function.", default="public"),
        Option(
            "effect_function",
            "A function (lane text, position bigint, ordinal bigint, op text, key text, content jsonb) called in the "
            "transaction of each acceptance, instead of a mapped target.",
        ),
        Option(
            "effect_order",
            "What the effect function says of itself: its calls commute (order-free), it ignores older events itself "
            "(guarded), or it needs each key's events in order (ordered).",
            "choice",
            choices=("order-free", "guarded", "ordered"),
        ),
        Option(
            "drill_connection",
            "Where the connection string of a login that may make a drill's schema and roles is kept: env:FENCEPOST_END_NAME or "
            "file:/path. Without it drills use `connection`.",
            "reference",
        ),
        Option(
            "lanes",
            "The source's lanes, which the kit is told when it is installed: a delivery that names another is refused. "
            "Not given: a delivery's lane is not checked. A source without a lane column has the one lane 0.",
            "names",
        ),
        Option("batch_limit", "The most entries one fire lands.", "integer", default=100_000, minimum=1),
        Option(
            "lock_wait_seconds",
            "How long a claim waits for transactions inside the sink.",
            "integer",
            default=5,
            minimum=1,
            maximum=60,
        ),
        Option(
            "relay_wait_seconds",
            "How long an open claim makes a starting relay wait.",
            "integer",
            default=600,
            minimum=1,
        ),
    ),
)
