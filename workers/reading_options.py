"""From options as typed (`--map history:key=id`, `--preset debezium`) to how each file is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recovery_api.domain.errors import BadInput
from workers.evidence.files import ReadOptions
from workers.evidence.files.recognition import preset_known

PAIRS = ("map", "type")
LISTS = ("prefix", "table")
COMMITTED = "committed"


def reading_of(given: Mapping[str, Sequence[str]], ends: Sequence[str]) -> dict[str, ReadOptions]:
    """ReadOptions by end. What names an end is of that one; what names none, of every end that says nothing else.

    Raises: BadInput.
    """
    plain: dict[str, Any] = {"map": {}, "type": {}}
    by_end: dict[str, dict[str, Any]] = {end: {"map": {}, "type": {}} for end in ends}
    for option, texts in given.items():
        for text in texts:
            end, is_of, rest = text.partition(":")
            is_named = bool(is_of) and end in ends
            target, words = (by_end[end], rest) if is_named else (plain, text)
            if option in PAIRS:
                name, has, value = words.partition("=")
                if not has or not name.strip() or not value:
                    raise BadInput(f"--{option}", f"{text!r} is not NAME=VALUE", "A constant is FIELD==text.")
                target[option][name.strip()] = value
            elif option in LISTS:
                target[option] = (*target.get(option, ()), words)
            else:
                target[option] = words
    return {end: _options(plain, by_end[end]) for end in ends}


def _options(plain: Mapping[str, Any], own: Mapping[str, Any]) -> ReadOptions:
    merged = {**plain, **own, "map": {**plain["map"], **own["map"]}, "type": {**plain["type"], **own["type"]}}
    preset = merged.get("preset")
    columns = merged.get("columns", "")
    untied = merged.get("non_transactional")
    if untied not in (None, COMMITTED):
        raise BadInput("--non-transactional", f"{untied!r} is not known", f"Known: {COMMITTED}.")
    return ReadOptions(
        format=merged.get("format", "auto"),
        preset=preset,
        maps=dict(merged["map"]),
        types=dict(merged["type"]),
        cell_maps={} if preset is None else _table_maps(preset),
        null=merged.get("null"),
        columns=tuple(name.strip() for name in columns.split(",")) if columns else (),
        tables=merged.get("table", ()),
        prefixes=merged.get("prefix", ()),
        is_untied_committed=untied is not None,
        **({"placeholder": merged["placeholder"]} if "placeholder" in merged else {}),
    )


def _table_maps(name: str) -> dict[str, str]:
    """Where a library's table has each field; nothing of a preset that is of files alone.

    Raises: BadInput for no preset, and for a table that is refused.
    """
    from recovery_api.presets import preset_get, preset_names, refused_raise

    names = preset_names()
    preset_known(name, names)
    if name not in names:
        return {}
    preset = preset_get(name)
    refused_raise(preset)
    return maps_of(preset.options)


def maps_of(options: Mapping[str, Any]) -> dict[str, str]:
    """A table preset's options as paths into its export. Several coordinate columns are one spelling, with colons."""
    coordinate = options.get("coordinate", ())
    maps = {"coordinate": coordinate if isinstance(coordinate, str) else ":".join(coordinate)}
    for field in ("event_id", "key", "op", "lane"):
        if options.get(field):
            maps[field] = str(options[field])
    if options.get("content"):
        maps["value" if options.get("content_format", "json") != "text" else "value_text"] = str(options["content"])
    maps.setdefault("op", "=insert")
    return {field: path for field, path in maps.items() if path}
