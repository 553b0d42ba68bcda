"""A kind of end, as data: it answers everything that differs from kind to kind. Options are parsed strictly.

The law: outside the kinds and their connectors nobody asks what a kind is called; whoever needs to know asks the kind.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

from recovery_api.domain.abilities import DELIVERIES, RECORDS, Ability
from recovery_api.domain.coordinates import Coordinate, Spelling
from recovery_api.domain.errors import BadInput, UnknownOption
from recovery_api.domain.points import Compared, Point, Value, points_compared

_REFERENCE = re.compile(r"(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)")


@dataclass(frozen=True, slots=True)
class Option:
    """One option: what it is called, what it accepts, what it means to a person.

    `decides`: which rows count, or as what. Under another value an earlier verdict or plan is about something else.
    `is_word`: it is the word of whoever answers for a source, and a ground rests on it: who gave it is told with that.
    """

    name: str
    says: str
    type: Literal["text", "integer", "boolean", "choice", "names", "columns", "reference"] = "text"
    default: Any = None
    is_required: bool = False
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    decides: bool = False
    is_word: bool = False


RESTORE_WINDOW = "restore_window_seconds"
RESTORE_OPTION = Option(
    RESTORE_WINDOW,
    "How far back a restore or a fail-over may take this sink. What it accepted since then is not let go at the source:"
    " purge_check waits for it.",
    type="integer",
    minimum=1,
    maximum=10 * 365 * 86_400,
)
"""Of a sink. It decides nothing about which rows count."""


class HasOptions(Protocol):
    """Anything whose options are declared: a kind, a pipeline."""

    @property
    def name(self) -> str: ...
    @property
    def options(self) -> tuple[Option, ...]: ...


class Retention(StrEnum):
    """What becomes of old rows at an end, as its options say."""

    KEEPS = "keeps"
    """Nothing is ever dropped: what is not there was never there."""
    PURGES = "purges"
    """Old rows go: what lies below the oldest is unknown."""
    DELETES_DELIVERED = "deletes_delivered"
    """Rows are deleted once they are delivered, so a missing row may have been delivered, or may never have existed."""


@dataclass(frozen=True, slots=True)
class Installer:
    """What is put into an end's own system before it can serve there.

    `what`: its name in a sentence. `trades`: what a login can be made there. `module`: the dotted path of what does it,
    workers.connectors.registry.Installing.
    """

    what: str
    trades: tuple[str, ...]
    module: str


@dataclass(frozen=True, slots=True)
class Gaps:
    """What a whole number that no committed row has means, where a source draws its numbers one by one.

    Each goes on from "3 ids up to 9": `proven` where the ground rules out that one is still open, `unproven` elsewhere.
    """

    proven: tuple[str, str]
    unproven: tuple[str, str]

    def says(self, count: int, is_proven: bool) -> str:
        one, many = self.proven if is_proven else self.unproven
        return one if count == 1 else many


Options = Mapping[str, Any]
"""A kind's options, parsed."""


def _bigint(options: Options) -> Spelling:
    return Spelling.BIGINT


def _no_gaps(options: Options) -> Gaps | None:
    return None


def _no_purge(options: Options, at: Coordinate, counted: Mapping[str, str], since: str) -> str:
    return ""


def _nothing(options: Options) -> frozenset[Ability]:
    return frozenset()


def _keeps(options: Options) -> Retention:
    return Retention.KEEPS


def _nothing_declared(options: Options) -> Mapping[Point, Value]:
    return {}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of source or sink. `connector` is the dotted path of the class that does its I/O.

    `label`: what pages call it. `says`: what it is. `shows`: what its connection test shows, a sentence each. `example`:
    options that describe one, for the documentation. `check` refuses parsed options that contradict each other.
    `spelling`, `gaps` and `retention` are asked with parsed options: how coordinates are written, what a number without
    a row means (None: nothing), what becomes of old rows. `installer`: what is installed for it, if anything.
    `abilities`: what may be asked of its connector at most; `withheld`: which of them parsed options take away.
    `declares`: what parsed options say of a sink's points beyond its abilities; `tests`: how its test finds each out.
    `purge`: the transaction that a person runs to delete the history at or below a coordinate, bound to what an audit
    (`since`) counted there; empty: none can be written for it. `is_in_process`: it lives in one process's memory, so the tasks of a job run there, too, and it is offered to nobody.
    """

    name: str
    end: Literal["source", "sink"]
    says: str
    options: tuple[Option, ...]
    connector: str
    label: str = ""
    archetype: str | None = None
    abilities: frozenset[Ability] = frozenset()
    withheld: Callable[[Options], frozenset[Ability]] = _nothing
    check: Callable[[Options], object] | None = None
    spelling: Callable[[Options], Spelling] = _bigint
    gaps: Callable[[Options], Gaps | None] = _no_gaps
    retention: Callable[[Options], Retention] = _keeps
    installer: Installer | None = None
    declares: Callable[[Options], Mapping[Point, Value]] = _nothing_declared
    tests: Mapping[Point, str] = field(default_factory=dict)
    shows: tuple[str, ...] = ()
    example: Mapping[str, Any] = field(default_factory=dict)
    is_in_process: bool = False
    purge: Callable[[Options, Coordinate, Mapping[str, str], str], str] = _no_purge


KINDS = {
    "postgresql_outbox": "recovery_api.domain.kinds.postgresql_outbox",
    "postgresql_kit": "recovery_api.domain.kinds.postgresql_kit",
    "postgresql_table": "recovery_api.domain.kinds.postgresql_table",
    "archive_files": "recovery_api.domain.kinds.archive_files",
    "memory": "recovery_api.domain.kinds.memory",
}


def kind_names(end: str) -> list[str]:
    return [name for name in KINDS if kind_get(name).end == end]


def kinds_offered(end: str) -> list[Kind]:
    """The kinds of `end` that somebody may register, the recommended one first."""
    kinds = [kind_get(name) for name in KINDS]
    return [kind for kind in kinds if kind.end == end and not kind.is_in_process]


def kind_installed() -> Kind:
    """The kind of sink that something is installed for, where options are given before it is registered.

    Raises: BadInput where there are several: then the kind is to be named.
    """
    kinds = [kind for kind in kinds_offered("sink") if kind.installer is not None]
    if len(kinds) != 1:
        names = ", ".join(kind.name for kind in kinds)
        raise BadInput("kind", "is missing", f"Name the kind whose kit is meant: {names}.")
    return kinds[0]


def kind_get(name: str, field: str = "kind") -> Kind:
    """The kind called `name`. Raises: UnknownOption naming the nearest."""
    if name not in KINDS:
        raise _unknown(field, name, tuple(KINDS))
    kind: Kind = importlib.import_module(KINDS[name]).KIND
    return kind


def options_parse(kind: HasOptions, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `kind` with defaults filled in.

    Raises: UnknownOption for a name the kind does not have; BadInput for a missing or unusable value, and for values
    that contradict each other.
    """
    by_name = {option.name: option for option in kind.options}
    for name in given:
        if name not in by_name:
            raise _unknown(f"{kind.name}.{name}", name, tuple(by_name))
    parsed = {
        option.name: _value(kind, option, given[option.name])
        if given.get(option.name) is not None
        else _absent(kind, option)
        for option in kind.options
    }
    if isinstance(kind, Kind) and kind.check is not None:
        kind.check(parsed)
    return parsed


def deciding(kind_name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of an end's options that decide which rows count, and as what, with their defaults."""
    kind = kind_get(kind_name)
    parsed = options_parse(kind, options)
    return {option.name: parsed[option.name] for option in kind.options if option.decides}


def spelling_of(kind_name: str, options: Mapping[str, Any]) -> Spelling:
    """How a source of this kind, with options as given, writes its coordinates."""
    kind = kind_get(kind_name)
    return kind.spelling(options_parse(kind, options))


def gaps_of(kind_name: str, options: Mapping[str, Any]) -> Gaps | None:
    """What a number without a row means at a source of this kind, with options as given. None: nothing."""
    kind = kind_get(kind_name)
    return kind.gaps(options_parse(kind, options))


def retention_of(kind_name: str, options: Mapping[str, Any]) -> Retention:
    """What becomes of old rows at an end of this kind, with options as given."""
    kind = kind_get(kind_name)
    return kind.retention(options_parse(kind, options))


def abilities_of(kind_name: str, options: Mapping[str, Any]) -> frozenset[Ability]:
    """What may be asked of an end of this kind and options. Raises: UnknownOption, BadInput."""
    kind = kind_get(kind_name)
    return kind.abilities - kind.withheld(options_parse(kind, options))


def points_declared(kind_name: str, options: Mapping[str, Any]) -> dict[Point, Value]:
    """What a sink of this kind and options is said to be able to do, point by point: by its abilities, and by itself."""
    kind = kind_get(kind_name)
    parsed = options_parse(kind, options)
    abilities = kind.abilities - kind.withheld(parsed)
    return {
        Point.READS_RECORD: bool(RECORDS & abilities),
        Point.RECORD_COMPLETE: kind.retention(parsed) is Retention.KEEPS,
        Point.FENCE: Ability.FENCED in abilities,
        Point.ONE_TRANSACTION: bool(DELIVERIES & abilities),
        Point.APPEND: Ability.APPENDED in abilities,
        **kind.declares(parsed),
    }


def points_of(kind_name: str, options: Mapping[str, Any], capability: Mapping[str, Any] | None) -> list[Compared]:
    """Every point of a sink, declared and tested side by side. `capability`: as its test kept it; None: not tested."""
    return points_compared(points_declared(kind_name, options), capability, kind_get(kind_name).tests)


def _unknown(field: str, name: str, known: tuple[str, ...]) -> UnknownOption:
    nearest = difflib.get_close_matches(name, known, n=1)
    return UnknownOption(field, ", ".join(known), f"Did you mean {nearest[0]!r}?" if nearest else "")


def _absent(kind: HasOptions, option: Option) -> Any:
    if option.is_required:
        raise BadInput(f"{kind.name}.{option.name}", "is missing", option.says)
    return option.default


def _value(kind: HasOptions, option: Option, value: Any) -> Any:
    field = f"{kind.name}.{option.name}"
    match option.type:
        case "integer":
            if isinstance(value, bool) or not (
                isinstance(value, int) or (isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value))
            ):
                raise BadInput(field, f"{value!r} is not a whole number", option.says)
            number = int(value)
            if (option.minimum is not None and number < option.minimum) or (
                option.maximum is not None and number > option.maximum
            ):
                raise BadInput(field, f"{number} lies outside {option.minimum} to {option.maximum}", option.says)
            return number
        case "boolean":
            words = {"true": True, "false": False, "yes": True, "no": False}
            if isinstance(value, bool):
                return value
            if isinstance(value, str) and value.lower() in words:
                return words[value.lower()]
            raise BadInput(field, f"{value!r} is neither true nor false", option.says)
        case "choice":
            if value not in option.choices:
                nearest = difflib.get_close_matches(str(value), option.choices, n=1)
                hint = f"Did you mean {str(nearest[0])!r}?" if nearest else f"One of: {', '.join(option.choices)}."
                raise BadInput(field, f"{value!r} is not one of its values", hint)
            return value
        case "names":
            names = value.split(",") if isinstance(value, str) else value
            if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
                raise BadInput(field, f"{value!r} is not a list of names", option.says)
            return list(names)
        case "columns":
            if not isinstance(value, Mapping) or not all(
                isinstance(k, str) and isinstance(v, str) and k and v for k, v in value.items()
            ):
                raise BadInput(field, f"{value!r} does not map names to columns", option.says)
            return dict(value)
        case "reference":
            if not isinstance(value, str) or not _REFERENCE.fullmatch(value):
                raise BadInput(
                    field,
                    "is not a reference",
                    "Write env:FENCEPOST_END_NAME or file:/path; the credential itself is never stored.",
                )
            return value
        case _:
            if not isinstance(value, str) or not value or "\x00" in value:
                raise BadInput(field, f"{value!r} is not a text", option.says)
            return value
