"""A committed event's position in a lane: parsed, ordered, printed in the source's own spelling.

A coordinate is held as two signed 64-bit integers, position and ordinal, ordered as a pair. Unsigned positions are
held shifted by 2^63, so that signed order is their order wherever they are compared (Arrow, SQL bigint, Spark).
No float and no text comparison anywhere on the way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from recovery_api.domain.errors import BadCoordinate

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
UINT64_MAX = 2**64 - 1

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})", re.ASCII)
_PAIR = re.compile(r"([0-9]+):([+-]?[0-9]+)", re.ASCII)


class Spelling(StrEnum):
    """How a source writes its coordinates. Registered with the source; never guessed per value."""

    BIGINT = "bigint"
    """A signed 64-bit integer: identity, sequence."""
    UNSIGNED = "unsigned"
    """An unsigned 64-bit integer. A negative value is its two's complement, as some change logs print it."""
    PG_LSN = "pg_lsn"
    """A PostgreSQL log position, `16/B374D848` or the same number in decimal."""
    XID8_BIGINT = "xid8_bigint"
    """A PostgreSQL transaction id and a number inside it, `7001:42`."""


EXPECTED = {
    Spelling.BIGINT: "a whole number from -2^63 to 2^63-1, like 12345",
    Spelling.UNSIGNED: "a whole number from 0 to 2^64-1, like 12345",
    Spelling.PG_LSN: "a log position like 16/B374D848, or the same in decimal",
    Spelling.XID8_BIGINT: "a transaction id and a number, like 7001:42",
}


@dataclass(frozen=True, order=True, slots=True)
class Coordinate:
    """Position and ordinal as held: signed 64-bit, unsigned values shifted by 2^63."""

    position: int
    ordinal: int = 0

    def __post_init__(self) -> None:
        if not (INT64_MIN <= self.position <= INT64_MAX and INT64_MIN <= self.ordinal <= INT64_MAX):
            raise BadCoordinate("coordinate", f"{self.position}:{self.ordinal}", "two 64-bit numbers")


def coordinate_parse(text: str | int, spelling: Spelling, field: str = "coordinate") -> Coordinate:
    """The coordinate that `text` spells.

    >>> coordinate_parse("A/10", Spelling.PG_LSN) == coordinate_parse(42949672976, Spelling.PG_LSN)
    True
    >>> coordinate_parse("FF/FFFFFFFF", Spelling.PG_LSN) < coordinate_parse("100/0", Spelling.PG_LSN)
    True
    >>> coordinate_parse("-1", Spelling.UNSIGNED) == coordinate_parse("18446744073709551615", Spelling.UNSIGNED)
    True

    Raises: BadCoordinate.
    """
    refused = BadCoordinate(field, str(text), EXPECTED[spelling])
    if isinstance(text, bool) or not isinstance(text, str | int):
        raise refused
    words = str(text).strip()
    if spelling is Spelling.XID8_BIGINT:
        if not (pair := _PAIR.fullmatch(words)):
            raise refused
        return Coordinate(_held_unsigned(int(pair[1]), refused), _held_signed(int(pair[2]), refused))
    if spelling is Spelling.PG_LSN and (lsn := _LSN.fullmatch(words)):
        return Coordinate(_held_unsigned(int(lsn[1], 16) << 32 | int(lsn[2], 16), refused))
    if not _INTEGER.fullmatch(words):
        raise refused
    number = int(words)
    if spelling is Spelling.BIGINT:
        return Coordinate(_held_signed(number, refused))
    if spelling is Spelling.UNSIGNED and INT64_MIN <= number < 0:
        number += 2**64
    return Coordinate(_held_unsigned(number, refused))


def coordinate_format(coordinate: Coordinate, spelling: Spelling) -> str:
    """The coordinate in its source's spelling.

    >>> coordinate_format(coordinate_parse("a/00000010", Spelling.PG_LSN), Spelling.PG_LSN)
    'A/10'
    """
    if spelling is Spelling.BIGINT:
        return str(coordinate.position)
    number = coordinate.position + 2**63
    if spelling is Spelling.PG_LSN:
        return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"
    if spelling is Spelling.XID8_BIGINT:
        return f"{number}:{coordinate.ordinal}"
    return str(number)


def _held_signed(number: int, refused: BadCoordinate) -> int:
    if not INT64_MIN <= number <= INT64_MAX:
        raise refused
    return number


def _held_unsigned(number: int, refused: BadCoordinate) -> int:
    if not 0 <= number <= UINT64_MAX:
        raise refused
    return number - 2**63
