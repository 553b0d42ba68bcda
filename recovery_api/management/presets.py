"""Presets as commands print them: which options one filled, and what may be said of its table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery_api.presets import Answer, Preset, preset_get


def filled_lines(options: Mapping[str, Any], filled: Mapping[str, Any]) -> list[str]:
    """What the preset filled, for an end that is not registered."""
    if not filled:
        return []
    pairs = ", ".join(f"{name}={_written(value)}" for name, value in sorted(filled.items()))
    return [f"Filled by preset {options['preset']}: {pairs}."]


def said_lines(options: Mapping[str, Any]) -> list[str]:
    """What the preset says of the table it was made for."""
    if not options.get("preset"):
        return []
    preset = preset_get(options["preset"])
    return [
        f"{preset.library}: {preset.says}",
        f"  {preset.may_say}",
        *([f"  {preset.advice}"] if preset.advice else []),
    ]


def preset_lines(preset: Preset) -> list[str]:
    """One preset, whole."""
    lines = [
        f"{preset.name}: {preset.library}, {preset.end}, {preset.answer}",
        f"  {preset.says}",
        f"  {preset.may_say}",
    ]
    lines += [f"  {preset.advice}"] if preset.advice else []
    lines.append(f"  After a delivery: {preset.delivered.says} {preset.delivered.also}".rstrip())
    if preset.answer is not Answer.REFUSED:
        lines += [f"  {name} = {_written(value)}" for name, value in sorted(preset.options.items())]
    where = ", ".join(preset.documented.files)
    return [*lines, f"  From {preset.documented.repository} at {preset.documented.version}: {where}"]


def _written(value: Any) -> str:
    return ",".join(value) if isinstance(value, list | tuple) else str(value)
