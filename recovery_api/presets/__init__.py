"""Presets: how the tables of well-known libraries are mapped, one data file each, read strictly.

A preset is options and words. It fills what the caller left out and weakens nothing: what an end can do is still what
its test shows. Facts about a table (columns, types, keys) name the documentation or the repository's file they are
from. A member of a file that is not declared here is an error.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

from recovery_api.domain.errors import BadFile, BadInput, UnknownOption

DIRECTORY = Path(__file__).parent


class Answer(StrEnum):
    """What an audit may come to with the table as the library makes and uses it."""

    AUDITS = "audits"
    """Every event stays: lost, duplicate and premature can be counted."""
    AFTER_A_COLUMN = "after a column"
    """It audits once an ordered column was added; the test gives the statement."""
    OF_WHAT_IS_KEPT = "of what is kept"
    """The library takes away what it delivered: an audit judges what is still there, and says so."""
    REFUSED = "refused"
    """The table is no committed history of events. The preset says what to do instead."""


class Mark(StrEnum):
    """What the library does to a row that was delivered."""

    NOTHING = "nothing"
    SETS = "sets"
    """It sets columns; the row stays."""
    DELETES = "deletes"
    EMPTIES = "empties"
    """The row stays and its content goes."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the library makes it. `type` and `default` are PostgreSQL's spelling."""

    name: str
    type: str
    null: bool = False
    default: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the library makes it. `is_named_by_user`: its name is the user's own; `name` is an example."""

    schema: str
    name: str
    primary_key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()
    sequences: tuple[str, ...] = ()
    is_named_by_user: bool = False


@dataclass(frozen=True, slots=True)
class Documented:
    """Where the facts are from. `version`: a tag or a commit of the repository."""

    repository: str
    version: str
    files: tuple[str, ...]
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivered:
    """What becomes of a row that was delivered. `sets`: column to SQL expression. `also`: other ways rows go."""

    mark: Mark
    says: str
    sets: Mapping[str, str] = field(default_factory=dict)
    also: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """How its test fills the table and what an audit answers there.

    `values`: column to a text with `{n}` for the row's number; `expressions`: column to SQL. `nulls`: columns that one
    row leaves null. `given`: options that a person gives. `complete`: the status once everything was accepted, by a grace;
    `share_lock`: under the share lock.
    """

    values: Mapping[str, str]
    expressions: Mapping[str, str] = field(default_factory=dict)
    nulls: tuple[str, ...] = ()
    given: Mapping[str, str] = field(default_factory=dict)
    owed: str = "owed"
    complete: str = "exactly_once_given"
    share_lock: str = ""


@dataclass(frozen=True, slots=True)
class Preset:
    """One library's table as an end. `added`: the ordered column that it lacks, and that a person adds."""

    name: str
    library: str
    end: str
    kind: str
    answer: Answer
    says: str
    may_say: str
    documented: Documented
    table: Table
    columns: tuple[Column, ...]
    delivered: Delivered
    advice: str = ""
    added: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    example: Example | None = None

    def as_row(self) -> dict[str, Any]:
        """As commands and REST show it."""
        shown = ("name", "library", "end", "kind", "says", "may_say", "advice")
        row = {name: getattr(self, name) for name in shown}
        return {**row, "answer": self.answer.value, "options": dict(self.options), "added": self.added or None}

    def lacking(self, columns: list[str]) -> list[str]:
        """The columns of this preset's table that are not among `columns`, in the table's order."""
        return [column.name for column in self.columns if column.name not in columns]


def preset_names(end: str = "") -> list[str]:
    """Every preset of an end, or of both, by name."""
    names = sorted(path.stem for path in DIRECTORY.glob("*.toml"))
    return [name for name in names if not end or preset_get(name).end == end]


@cache
def preset_get(name: str) -> Preset:
    """The preset called so. Raises: UnknownOption naming the nearest; BadFile where its file is not as declared."""
    names = [path.stem for path in DIRECTORY.glob("*.toml")]
    if name not in names:
        nearest = difflib.get_close_matches(name.lower().replace("_", "-"), names, n=1)
        raise UnknownOption("preset", ", ".join(sorted(names)), f"Did you mean {nearest[0]!r}?" if nearest else "")
    return preset_read((DIRECTORY / f"{name}.toml").read_text(encoding="utf-8"), name)


def preset_read(text: str, name: str) -> Preset:
    """A preset from its file's text. Raises: BadFile naming the member that is unknown, missing or of another type."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadFile(name, str(error), "it is not valid TOML", "Mend the file.") from error
    preset: Preset = _made(Preset, {"name": name, **found}, name)
    known = {column.name for column in preset.columns}
    for place, columns in (
        ("table.primary_key", preset.table.primary_key),
        ("table.unique", [column for key in preset.table.unique for column in key]),
        ("delivered.sets", preset.delivered.sets),
        ("example.values", preset.example.values if preset.example else ()),
        ("example.nulls", preset.example.nulls if preset.example else ()),
    ):
        for column in columns:
            if column not in known:
                raise BadFile(name, place, f"{column!r} is no column of the table", "Name one of its columns.")
    if preset.answer is not Answer.AUDITS and not preset.advice:
        raise BadFile(name, "advice", "is missing", "Say what to do instead.")
    return preset


def refused_raise(preset: Preset) -> None:
    """Nothing, unless the preset is one that is refused. Raises: BadInput with its advice."""
    if preset.answer is Answer.REFUSED:
        raise BadInput("preset", f"{preset.library} is refused: {preset.says}", preset.advice)


def _made(wanted: Any, found: Any, place: str) -> Any:
    """`found` as the type `wanted`, member by member."""
    if isinstance(wanted, type) and hasattr(wanted, "__dataclass_fields__"):
        if not isinstance(found, dict):
            raise BadFile(place, "", "is not a table", "Write its members.")
        hints, declared = get_type_hints(wanted), {one.name: one for one in fields(wanted)}
        for member in found:
            if member not in declared:
                raise BadFile(place, member, "is not declared", f"Known are {', '.join(declared)}.")
        for name, one in declared.items():
            if name not in found and one.default is MISSING and one.default_factory is MISSING:
                raise BadFile(place, name, "is missing", "Every preset says it.")
        return wanted(**{name: _made(hints[name], value, f"{place}: {name}") for name, value in found.items()})
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        if found not in list(wanted):
            raise BadFile(place, str(found), "is not one of its words", f"One of {', '.join(wanted)}.")
        return wanted(found)
    inner = get_args(wanted)
    if type(None) in inner:
        return _made(inner[0], found, place)
    if inner and inner[-1] is Ellipsis and isinstance(found, list):
        return tuple(_made(inner[0], one, place) for one in found)
    if inner and len(inner) == 2 and isinstance(found, dict):
        return {name: _made(inner[1], value, f"{place}.{name}") for name, value in found.items()}
    if wanted is Any or (isinstance(wanted, type) and type(found) is wanted):
        return found
    raise BadFile(place, repr(found), f"is not of the type {wanted}", "Write it as the others do.")
