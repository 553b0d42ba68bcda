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
_LSN_PAIR = re.compile(rf"(?:{_LSN.pattern}|([0-9]+)):(?:{_LSN.pattern}|([0-9]+))", re.ASCII)
_BINLOG = re.compile(r"(?:[^\s:/]*[^\s:/0-9])?([0-9]+):([0-9]+)(?::([0-9]+))?", re.ASCII)
_STREAM = re.compile(r"([0-9]+)-([0-9]+)", re.ASCII)
ROW_BITS = 30
"""Of a binary log ordinal: the row's share; the position's is 33, and its field in the log has 32."""


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
    COMMIT_LSN = "commit_lsn"
    """The log position of a commit and an event's own, `0/1782E38:0/1782EA0`: positions of several transactions interleave,
    and commits do not. Of exported change logs."""
    BINLOG = "binlog"
    """A MySQL or MariaDB binary log position: file, position, and row within it, `mysql-bin.000123:154:0`. Files are
    ordered by their number. Held and printed without the file's name. Of exported change logs."""
    STREAM_ID = "stream_id"
    """A Redis stream id: milliseconds and a sequence, both unsigned, `1700000000000-9`. Of exported streams."""


TABLE_SPELLINGS = (Spelling.BIGINT, Spelling.UNSIGNED, Spelling.PG_LSN, Spelling.XID8_BIGINT)
"""Those in which a database's columns can be read and compared."""

EXPECTED = {
    Spelling.BIGINT: "a whole number from -2^63 to 2^63-1, like 12345",
    Spelling.UNSIGNED: "a whole number from 0 to 2^64-1, like 12345",
    Spelling.PG_LSN: "a log position like 16/B374D848, or the same in decimal",
    Spelling.XID8_BIGINT: "a transaction id and a number, like 7001:42",
    Spelling.COMMIT_LSN: "the log positions of a commit and of the event, like 0/1782E38:0/1782EA0",
    Spelling.BINLOG: "a binary log file that ends in a number, a position and a row, like mysql-bin.000123:154:0",
    Spelling.STREAM_ID: "a stream id of two numbers, like 1700000000000-9",
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
    if spelling in _PARSED:
        return _PARSED[spelling](words, refused)
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
        return _lsn(number)
    if spelling is Spelling.COMMIT_LSN:
        return f"{_lsn(number)}:{_lsn(coordinate.ordinal)}"
    if spelling is Spelling.BINLOG:
        row = coordinate.ordinal & ((1 << ROW_BITS) - 1)
        return f"{number:06}:{coordinate.ordinal >> ROW_BITS}{f':{row}' if row else ''}"
    if spelling is Spelling.STREAM_ID:
        return f"{number}-{coordinate.ordinal + 2**63}"
    if spelling is Spelling.XID8_BIGINT:
        return f"{number}:{coordinate.ordinal}"
    return str(number)


def _lsn(number: int) -> str:
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


def _commit_lsn(words: str, refused: BadCoordinate) -> Coordinate:
    if not (pair := _LSN_PAIR.fullmatch(words)):
        raise refused
    numbers = [
        int(plain) if plain is not None else int(high, 16) << 32 | int(low, 16)
        for high, low, plain in (pair.groups()[:3], pair.groups()[3:])
    ]
    return Coordinate(_held_unsigned(numbers[0], refused), _held_signed(numbers[1], refused))


def _binlog(words: str, refused: BadCoordinate) -> Coordinate:
    if not (place := _BINLOG.fullmatch(words)):
        raise refused
    at, row = int(place[2]), int(place[3] or 0)
    if at >= 1 << (63 - ROW_BITS) or row >= 1 << ROW_BITS:
        raise refused
    return Coordinate(_held_unsigned(int(place[1]), refused), at << ROW_BITS | row)


def _stream_id(words: str, refused: BadCoordinate) -> Coordinate:
    if not (pair := _STREAM.fullmatch(words)):
        raise refused
    return Coordinate(_held_unsigned(int(pair[1]), refused), _held_unsigned(int(pair[2]), refused))


_PARSED = {Spelling.COMMIT_LSN: _commit_lsn, Spelling.BINLOG: _binlog, Spelling.STREAM_ID: _stream_id}


def _held_signed(number: int, refused: BadCoordinate) -> int:
    if not INT64_MIN <= number <= INT64_MAX:
        raise refused
    return number


def _held_unsigned(number: int, refused: BadCoordinate) -> int:
    if not 0 <= number <= UINT64_MAX:
        raise refused
    return number - 2**63
