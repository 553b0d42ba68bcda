"""What is registered, from flags or from a JSON or TOML file. Every member is known, or refused by name."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from recovery_api.domain.errors import BadFile, BadInput, UnknownOption


def options_from_flags(pairs: Iterable[str]) -> dict[str, Any]:
    """Options of `--option name=value`; `name.member=value` builds a mapping, as for columns.

    >>> options_from_flags(["table=outbox", "columns.key=order id"])
    {'table': 'outbox', 'columns': {'key': 'order id'}}

    Raises: BadInput for a pair without `=`, and for one given twice.
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        name, is_pair, value = pair.partition("=")
        if not is_pair or not name:
            raise BadInput("--option", f"{pair!r} is not name=value", "Write --option name=value.")
        outer, has_member, member = name.partition(".")
        into = options.setdefault(outer, {}) if has_member else options
        if not isinstance(into, dict) or (member or outer) in into:
            raise BadInput("--option", f"{name} is given twice", "Give each option once.")
        into[member or outer] = value
    return options


def config_read(path: str, known: Iterable[str]) -> dict[str, Any]:
    """The object in a .json or .toml file, with no member but `known`. Raises: BadFile, UnknownOption."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(path, "the whole file", "cannot be read as UTF-8 text", "Check the path.") from error
    try:
        found = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text, object_pairs_hook=_without_repeats)
    except _Repeated as error:
        raise BadFile(path, f"member {error}", "is given twice", "Give each member once.") from error
    except ValueError as error:
        raise BadFile(path, str(error), "it is not valid", "Write JSON, or TOML in a file named .toml.") from error
    if not isinstance(found, dict):
        raise BadFile(path, "the top", "is not an object", "Write the members in one object.")
    names_check(found, known, path)
    return found


def names_check(found: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Raises: UnknownOption naming the first member that is not known, and the nearest that is."""
    names = list(known)
    for name in found:
        if name not in names:
            nearest = difflib.get_close_matches(name, names, n=1)
            hint = f"Did you mean {nearest[0]!r}?" if nearest else ""
            raise UnknownOption(f"{where}: {name}", ", ".join(names), hint)


class _Repeated(Exception):
    """A member that an object names twice."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _Repeated(name)
        found[name] = value
    return found
