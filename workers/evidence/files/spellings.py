"""How the coordinates of the given files are spelled: seen over all of them together, decided once, never per value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from recovery_api.domain.coordinates import (
    EXPECTED,
    INT64_MAX,
    INT64_MIN,
    UINT64_MAX,
    Spelling,
    coordinate_parse,
)
from recovery_api.domain.errors import BadCoordinate, BadInput

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LSN = re.compile(r"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}", re.ASCII)
_PAIR = re.compile(r"[0-9]+:[+-]?[0-9]+", re.ASCII)
_LSN_PAIR = re.compile(rf"{_LSN.pattern}:{_LSN.pattern}", re.ASCII)
_BINLOG = re.compile(r"[^\s:/]*[^\s:/0-9][0-9]+:[0-9]+(?::[0-9]+)?", re.ASCII)
_STREAM = re.compile(r"[0-9]{1,20}-[0-9]{1,20}", re.ASCII)
_SHAPES = (
    (_LSN, "log position"),
    (_PAIR, "pair"),
    (_LSN_PAIR, "commit and position"),
    (_BINLOG, "binlog position"),
    (_STREAM, "stream id"),
)
_FAR = 1 << 62
_COMPOSITE = {
    "commit and position": (Spelling.COMMIT_LSN, {"log position", "number", "pair"}),
    "binlog position": (Spelling.BINLOG, {"pair"}),
    "stream id": (Spelling.STREAM_ID, {"number"}),
}
"""Shapes of several parts, and those that a person may give in their place, which are then parsed or refused as such."""


@dataclass
class SpellingSigns:
    """The shapes met so far, each with the first place it was met, and the range of the plain numbers."""

    shapes: dict[str, str] = field(default_factory=dict)
    lowest: int = 0
    highest: int = 0

    def see(self, text: str, where: str) -> None:
        """Take note of one coordinate. Raises: BadCoordinate for a text that no source writes."""
        if _INTEGER.fullmatch(text):
            number = int(text) if len(text) < 40 else UINT64_MAX + 1
            self.shapes.setdefault("number", f"{where}: {text}")
            self.lowest, self.highest = min(self.lowest, number), max(self.highest, number)
            if number < INT64_MIN or number > UINT64_MAX:
                raise BadCoordinate(where, text[:60], "a number of at most 64 bits")
            return
        for pattern, shape in _SHAPES:
            if pattern.fullmatch(text):
                self.shapes.setdefault(shape, f"{where}: {text}")
                return
        raise BadCoordinate(where, text[:60], "; or ".join(EXPECTED.values()))

    def see_numbers(self, lowest: int, highest: int, where: str) -> None:
        """Take note of many plain numbers at once, all of 64 bits."""
        self.shapes.setdefault("number", f"{where}: {lowest}")
        self.lowest, self.highest = min(self.lowest, lowest), max(self.highest, highest)

    def merge(self, other: SpellingSigns) -> None:
        """Take note of all that was seen elsewhere."""
        for shape, where in other.shapes.items():
            self.shapes.setdefault(shape, where)
        self.lowest, self.highest = min(self.lowest, other.lowest), max(self.highest, other.highest)

    def decide(self) -> Spelling:
        """The one spelling that all of them have. Raises: BadInput where shapes are mixed, or a sign is ambiguous."""
        for shape, (spelling, others) in _COMPOSITE.items():
            if shape in self.shapes:
                if set(self.shapes) - {shape, *others}:
                    raise BadInput(
                        "coordinate", f"spellings are mixed ({'; '.join(self.shapes.values())})", "Say --spelling."
                    )
                return spelling
        if "pair" in self.shapes:
            if len(self.shapes) > 1:
                raise BadInput(
                    "coordinate", f"spellings are mixed ({'; '.join(self.shapes.values())})", "Say --spelling."
                )
            return Spelling.XID8_BIGINT
        if "log position" in self.shapes:
            if self.lowest < 0:
                raise BadInput("coordinate", "a log position is never negative", "; ".join(self.shapes.values()))
            return Spelling.PG_LSN
        if self.highest <= INT64_MAX:
            return Spelling.BIGINT
        if self.lowest < 0:
            raise BadInput(
                "coordinate",
                f"the sign is ambiguous: {self.highest} is unsigned, {self.lowest} is signed",
                "Say --spelling unsigned where negative numbers are unsigned ones printed by a signed writer.",
            )
        return Spelling.UNSIGNED

    def weaknesses(self) -> tuple[str, ...]:
        """What stays in doubt where the spelling was not given."""
        if self.lowest <= -_FAR and self.highest >= _FAR:
            return (
                "Coordinates lie at both ends of the signed range. If they are unsigned ones printed by a signed writer,"
                " say --spelling unsigned.",
            )
        return ()


def coordinates_resolve(texts: pa.Array, spelling: Spelling, where: str) -> tuple[pa.Array, pa.Array]:
    """Position and ordinal, as held, of a column of spelled coordinates; null where it is null.

    Raises: BadCoordinate.
    """
    if spelling is Spelling.BIGINT:
        try:
            position = texts.cast(pa.int64())
        except pa.ArrowInvalid:
            pass  # an unusual spelling, or none: the careful way finds which
        else:
            return position, _zeros(texts)
    if spelling in (Spelling.UNSIGNED, Spelling.PG_LSN) and texts.type == pa.int64() and texts.null_count == 0:
        numbers = texts.to_numpy()
        if spelling is Spelling.UNSIGNED or len(numbers) == 0 or numbers.min() >= 0:
            return pa.array((numbers.view(np.uint64) ^ np.uint64(1 << 63)).view(np.int64)), _zeros(texts)
    held = [None if text is None else coordinate_parse(str(text), spelling, where) for text in texts.to_pylist()]
    return (
        pa.array([c and c.position for c in held], pa.int64()),
        pa.array([c and c.ordinal for c in held], pa.int64()),
    )


def _zeros(texts: pa.Array) -> pa.Array:
    return pa.array(np.zeros(len(texts), np.int64), mask=texts.is_null().to_numpy(zero_copy_only=False))
