"""Every text of the kit that was ever released, as it was installed: what lies in a sink is one of these, or not ours.

The law: a released text never changes. `released/parts` holds each part once, named by its digest; `released/index.json`
says which parts a release is made of, the commit that made it, and what it comes to for four sets of options, so that a
change in the renderer is noticed as a change of the text is. Another text of the kit is another version:

    make kit-release        freezes today's text under its new version number

Versions 1 to 3 changed while they were new, so several texts share a number; from version 4 on a number is one text.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from recovery_api.domain.kinds.postgresql_kit import Effect, KitOptions
from workers.connectors.sinks.kit import KIT_VERSION, TODAY, KitText, kit_sql, part_frozen, parts_all

RELEASED = resources.files(__package__) / "released"
"""Read from wherever the package lies: an executor has it in an archive."""
FOLDER = Path(__file__).parent / "released"
"""Where a new release is written, in a working copy."""
REFERENCE_EFFECTS: Mapping[str, Effect] = {
    "none": Effect(),
    "content": Effect("target", "public", "letters", key="id", content="body"),
    "columns": Effect("target", "public", "letters", key="id", columns={"a": "b", "c": "d"}),
    "function": Effect("function", "public", "fn", order="ordered"),
}
"""The options whose renderings the index remembers: each effect, and both ways of mapping a target."""


@dataclass(frozen=True, slots=True)
class Release:
    """One text as released: `name` is its version and which of that version's texts it is, `commit` made it."""

    name: str
    version: int
    commit: str
    text: KitText
    files: Mapping[str, str]
    renderings: Mapping[str, str]


@cache
def releases() -> tuple[Release, ...]:
    """Every release, the oldest first."""
    rows: list[dict[str, Any]] = json.loads((RELEASED / "index.json").read_text(encoding="utf-8"))
    return tuple(map(_release, rows))


def releases_of(version: int) -> tuple[Release, ...]:
    """The texts that were released under this version number; none for one that this Fencepost does not know."""
    return tuple(release for release in releases() if release.version == version)


def renderings_make(text: KitText) -> dict[str, str]:
    """What a text comes to for each of the reference options, as SHA-256."""
    return {
        name: hashlib.sha256(
            kit_sql(KitOptions("FpSchema", "FpPrefix", effect, 7777, 5, 333), "FpDb", text).encode()
        ).hexdigest()
        for name, effect in REFERENCE_EFFECTS.items()
    }


def release_freeze(again: bool = False) -> str:
    """Writes today's text down as the release of its version; what was done, as a sentence.

    `again` replaces the newest release, which is right only until somebody has installed it.
    """
    rows: list[dict[str, Any]] = json.loads((RELEASED / "index.json").read_text(encoding="utf-8"))
    renderings = renderings_make(TODAY)
    if rows[-1]["version"] == KIT_VERSION:
        if rows[-1]["renderings"] == renderings:
            return f"Version {KIT_VERSION} is frozen already, as it is."
        if not again:
            raise SystemExit(
                f"Version {KIT_VERSION} is released with another text. Raise KIT_VERSION; or, while nobody has"
                " installed it, freeze it --again."
            )
        rows.pop()
    files = {}
    for part in parts_all():
        frozen = part_frozen(part)
        files[part] = f"{part}-{hashlib.sha256(frozen.encode()).hexdigest()[:8]}"
        (FOLDER / "parts" / f"{files[part]}.sql").write_text(frozen, encoding="utf-8")
    rows.append(
        {
            "name": f"{KIT_VERSION}.1",
            "version": KIT_VERSION,
            "commit": "",
            "parts": list(TODAY.parts),
            "has_typed_keys": TODAY.has_typed_keys,
            "effect_parts": list(TODAY.effect_parts),
            "arguments": TODAY.arguments,
            "latest_row": TODAY.latest_row,
            "files": files,
            "renderings": renderings,
        }
    )
    (FOLDER / "index.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    used = {name for row in rows for name in row["files"].values()}
    for path in (FOLDER / "parts").glob("*.sql"):
        if path.stem not in used:
            path.unlink()
    return f"Version {KIT_VERSION} is frozen."


def _release(row: Mapping[str, Any]) -> Release:
    files: Mapping[str, str] = row["files"]

    def read(part: str) -> str:
        return (RELEASED / "parts" / f"{files[part]}.sql").read_text(encoding="utf-8")

    text = KitText(
        row["version"],
        tuple(row["parts"]),
        read,
        row["has_typed_keys"],
        tuple(row["effect_parts"]),
        row["arguments"],
        row["latest_row"],
    )
    return Release(row["name"], row["version"], row["commit"], text, files, row["renderings"])


if __name__ == "__main__":
    print(release_freeze("--again" in sys.argv[1:]))
