"""Filling options from a preset: what the caller gave wins, and what was filled is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery_api.domain.errors import BadInput
from recovery_api.presets import Preset, preset_get, preset_names, refused_raise

OPTION = "preset"
"""The option in which an end remembers its preset."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A kind and options to register. `filled`: those that the preset gave."""

    kind: str
    options: dict[str, Any]
    filled: dict[str, Any]


def preset_fill(end: str, kind: str | None, name: str | None, given: Mapping[str, Any]) -> Filled:
    """`given` with what the preset knows beside it; as it is, where no preset is named.

    Raises: UnknownOption for an unknown preset; BadInput where it is of another end or kind, where it is refused, where
    the options name another preset, or where neither kind nor preset is given.
    """
    named = given.get(OPTION)
    if name and named and name != named:
        raise BadInput(OPTION, f"is {name!r} and, among the options, {named!r}", "Give it once.")
    name = name or (named if isinstance(named, str) else None)
    if not name:
        if not kind:
            raise BadInput(f"{end}.kind", "is missing", f"Name the kind of the {end}, or a preset.")
        return Filled(kind, dict(given), {})
    preset = _of(end, kind, name)
    refused_raise(preset)
    filled = {option: value for option, value in preset.options.items() if given.get(option) is None}
    if preset.table.is_named_by_user and given.get("table") is None:
        problem = f"is missing: {preset.library} names it after something of yours, like {preset.table.name}"
        raise BadInput(f"{end}.table", problem, "Give option table with your table's name.")
    return Filled(preset.kind, {**given, **filled, OPTION: name}, filled)


def preset_check(end: str, kind: str, options: Mapping[str, Any]) -> None:
    """Nothing, where the options name no preset or one of this end and kind. Raises: as `preset_fill`."""
    if (name := options.get(OPTION)) is not None:
        refused_raise(_of(end, kind, str(name)))


def preset_filled(options: Mapping[str, Any]) -> dict[str, Any]:
    """Of an end's options those that are what its preset says; all were its word, or the caller's the same."""
    name = options.get(OPTION)
    if name not in preset_names():
        return {}
    return {option: value for option, value in preset_get(name).options.items() if options.get(option) == value}


def _of(end: str, kind: str | None, name: str) -> Preset:
    preset = preset_get(name)
    if preset.end != end:
        raise BadInput(OPTION, f"{name} is a preset of {preset.end}", f"For a {end}: {', '.join(preset_names(end))}.")
    if kind and kind != preset.kind:
        raise BadInput(OPTION, f"{name} is of the kind {preset.kind}, not {kind}", "Leave the kind out.")
    return preset
