"""Options of a kind: declared once, parsed strictly."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from recovery_api.domain.abilities import Ability
from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.errors import BadInput, UnknownOption

_REFERENCE = re.compile(r"(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)")


@dataclass(frozen=True, slots=True)
class Option:
    """One option: what it is called, what it accepts, what it means to a person."""

    name: str
    says: str
    type: Literal["text", "integer", "boolean", "choice", "names", "columns", "reference"] = "text"
    default: Any = None
    is_required: bool = False
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None


class HasOptions(Protocol):
    """Anything whose options are declared: a kind, a pipeline."""

    @property
    def name(self) -> str: ...
    @property
    def options(self) -> tuple[Option, ...]: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of source or sink. `connector` is the dotted path of the class that does its I/O.

    `abilities`: what may be asked of its connector at most; `withheld`: which of them parsed options take away. `check` refuses parsed options that contradict each other. `is_in_process`: it lives in one process's memory, so the
    tasks of a job run there, too.
    """

    name: str
    end: Literal["source", "sink"]
    says: str
    options: tuple[Option, ...]
    connector: str
    archetype: str | None = None
    abilities: frozenset[Ability] = frozenset()
    withheld: Callable[[Mapping[str, Any]], frozenset[Ability]] | None = None
    check: Callable[[Mapping[str, Any]], object] | None = None
    is_in_process: bool = False


KINDS = {
    "postgresql_outbox": "recovery_api.domain.kinds.postgresql_outbox",
    "postgresql_kit": "recovery_api.domain.kinds.postgresql_kit",
    "postgresql_table": "recovery_api.domain.kinds.postgresql_table",
    "memory": "recovery_api.domain.kinds.memory",
}


def kind_names(end: str) -> list[str]:
    return [name for name in KINDS if kind_get(name).end == end]


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


def spelling_of(kind_name: str, options: Mapping[str, Any]) -> Spelling:
    """How a source of this kind and options writes its coordinates: its module's `spelling`, else a signed integer."""
    kind = kind_get(kind_name)
    found = getattr(importlib.import_module(KINDS[kind.name]), "spelling", None)
    return Spelling(found(options_parse(kind, options))) if found else Spelling.BIGINT


def abilities_of(kind_name: str, options: Mapping[str, Any]) -> frozenset[Ability]:
    """What may be asked of an end of this kind and options. Raises: UnknownOption, BadInput."""
    kind = kind_get(kind_name)
    if kind.withheld is None:
        return kind.abilities
    return kind.abilities - kind.withheld(options_parse(kind, options))


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
