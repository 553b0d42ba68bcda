"""Packed reads: each column of a block of rows aggregated at the server into one string of bytes, decoded by numpy.

PostgreSQL spends most of a plain COPY on making a message of every row, and Python on taking it apart. Here a block
of rows is one message: `string_agg(int8send(id), '')` and the like, one aggregate a column, all over the same rows in
the same order. Blocks are ranges of the coordinate's index, so that both ends keep working while a block travels.

One law: every aggregate gives a fixed width a row (or a length and bytes), and never skips a row: what may be null is
said beside it. A sparse column, which says so, is the exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql

from recovery_api.domain.errors import TransientError
from workers.connectors.readings import CoordinateRange
from workers.evidence.schemas import DIGEST, TIME

Composable = sql.Composable

BLOCKS_A_STATEMENT = 16
POSTGRESQL_EPOCH_MICROSECONDS = 946_684_800_000_000
INFINITIES = (np.iinfo(np.int64).min, np.iinfo(np.int64).max)

Decoder = Callable[[list[bytes]], pa.Array]


@dataclass(frozen=True, slots=True)
class Packed:
    """One column of a packed read: the aggregates that carry it, and what makes an Arrow array of their bytes.

    `is_sparse`: it carries only some of the block's rows. `near`: the aggregates in a block whose `lowest` is known, for
    which four bytes a row are enough; None: it has no shorter ones.
    """

    name: str
    aggregates: tuple[Composable, ...]
    decode: Decoder
    is_sparse: bool = False
    near: Callable[[int], tuple[Composable, ...]] | None = None

    def aggregates_in(self, block: Block) -> tuple[Composable, ...]:
        return self.aggregates if self.near is None or block.lowest is None else self.near(block.lowest)


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that are packed together. `lowest`: a number at or above which each of their positions lies, by less than
    2**31; None: none is known."""

    where: Composable
    lowest: int | None = None

    @classmethod
    def within(cls, range_: CoordinateRange, where: Composable) -> Block:
        """The rows of the range, which `where` finds."""
        low, high = range_.low, range_.high
        is_narrow = low is not None and high is not None and high.position - low.position < 2**31
        return cls(where, low.position if low is not None and is_narrow else None)


def packed_integer(
    name: str,
    send: Composable,
    held: Callable[[bytes], np.ndarray],
    send_above: Callable[[int], Composable] | None = None,
) -> Packed:
    """A 64-bit number that is never null; `held` makes native numbers of its bytes. `send_above`: four bytes that say how
    far it lies above a number; None: nothing says that cheaply."""
    if send_above is None:
        return Packed(name, (_join(send),), lambda parts: pa.array(held(parts[0])))

    def near(lowest: int) -> tuple[Composable, ...]:
        return _join(send_above(lowest)), sql.SQL("int8send({}::int8)").format(sql.Literal(str(lowest)))

    def decode(parts: list[bytes]) -> pa.Array:
        if not parts[1]:
            return pa.array(held(parts[0]))
        numbers = np.frombuffer(parts[0], ">i4").astype(np.int64)
        numbers += signed(parts[1])
        return pa.array(numbers)

    return Packed(name, (_join(send), sql.SQL("NULL::bytea")), decode, near=near)


def packed_some(name: str, send: Composable, held: Callable[[bytes], np.ndarray], where: Composable) -> Packed:
    """A 64-bit number that is never null, of those rows alone for which `where` holds."""
    chosen = sql.SQL("{} FILTER (WHERE {})").format(_join(send), where)
    return Packed(name, (chosen,), lambda parts: pa.array(held(parts[0])), is_sparse=True)


def packed_nullable_integer(name: str, send: Composable, held: Callable[[bytes], np.ndarray]) -> Packed:
    """A 64-bit number that may be null."""

    def decode(parts: list[bytes]) -> pa.Array:
        return pa.array(held(parts[0]), mask=np.frombuffer(parts[1], np.uint8) == 0)

    return Packed(name, (_join(_or_zeros(send, 8)), _join(_presence(send))), decode)


def packed_digest(name: str, digest: Composable) -> Packed:
    """32 bytes, null where the expression is: 32 zero bytes stand for it, which no SHA-256 of anything known is."""

    def decode(parts: list[bytes]) -> pa.Array:
        words = np.frombuffer(parts[0], np.uint64).reshape(-1, 4)
        suspects = np.flatnonzero(words[:, 0] == 0)
        missing = suspects[(words[suspects] == 0).all(axis=1)]
        bitmap = None
        if len(missing):
            is_there = np.ones(len(words), bool)
            is_there[missing] = False
            bitmap = _bitmap(is_there)
        return pa.FixedSizeBinaryArray.from_buffers(DIGEST, len(words), [bitmap, pa.py_buffer(parts[0])])

    return Packed(name, (_join(_or_zeros(digest, 32)),), decode)


def packed_text(name: str, text: Composable) -> Packed:
    """A text, null where it is null: its length in bytes (-1 for null) and its bytes."""
    encoded = sql.SQL("convert_to(({})::text, 'UTF8')").format(text)
    length = sql.SQL("int4send(coalesce(octet_length({}), -1))").format(encoded)
    return Packed(name, (_join(length), _join(encoded)), lambda parts: _texts(parts[0], parts[1]))


def packed_choice(name: str, code: Composable, choices: Sequence[str]) -> Packed:
    r"""One of a few words: `code` gives its number plus one as a byte, `'\x00'` for null."""

    def decode(parts: list[bytes]) -> pa.Array:
        codes = np.frombuffer(parts[0], np.uint8)
        indices = pa.array(codes.astype(np.int32) - 1, mask=codes == 0)
        return pa.array(choices, pa.string()).take(indices)

    return Packed(name, (_join(code),), decode)


def packed_flag(name: str, condition: Composable) -> Packed:
    """A condition; null is false."""
    code = sql.SQL(r"CASE WHEN {} THEN '\x01'::bytea ELSE '\x00'::bytea END").format(condition)
    return Packed(name, (_join(code),), lambda parts: pa.array(np.frombuffer(parts[0], np.uint8) == 1))


def packed_time(name: str, time: Composable) -> Packed:
    """A timestamptz expression; null, and the infinities as null."""
    send = sql.SQL("timestamptz_send({})").format(time)

    def decode(parts: list[bytes]) -> pa.Array:
        micros = np.frombuffer(parts[0], ">i8").astype(np.int64)
        is_absent = (np.frombuffer(parts[1], np.uint8) == 0) | np.isin(micros, INFINITIES)
        micros[~is_absent] += POSTGRESQL_EPOCH_MICROSECONDS
        return pa.array(micros, mask=is_absent).cast(pa.timestamp("us")).cast(TIME)

    return Packed(name, (_join(_or_zeros(send, 8)), _join(_presence(send))), decode)


def signed(sent: bytes) -> np.ndarray:
    """Numbers of signed big-endian eight bytes each."""
    return np.frombuffer(sent, ">i8").astype(np.int64)


def read_packed(
    connection: psycopg.Connection[Any],
    columns: Sequence[Packed],
    table: Composable,
    blocks: Sequence[Block],
    is_indexed: bool = False,
) -> Iterator[dict[str, pa.Array]]:
    """For each non-empty block of rows of `table` its columns, in the order of `blocks`, in a
    transaction. `is_indexed`: an index leads to each of them, and is taken for the rest of the transaction."""
    if is_indexed:
        # The planner judges a pair of columns by the first. Inside big transactions it takes a block for a large part of
        # the table, and would read all of the table, once for each block.
        connection.execute("SET LOCAL enable_seqscan = off")
    count = sum(len(column.aggregates) for column in columns)
    for some in _several(blocks, BLOCKS_A_STATEMENT):
        parts = []
        for block in some:
            chosen = [aggregate for column in columns for aggregate in column.aggregates_in(block)]
            parts.append(sql.SQL("SELECT {} FROM {} WHERE {}").format(sql.SQL(", ").join(chosen), table, block.where))
        statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT binary)").format(sql.SQL(" UNION ALL ").join(parts))
        with connection.cursor().copy(statement) as copy:
            copy.set_types(["bytea"] * count)
            for row in copy.rows():
                if row[0] is not None:
                    yield _decode(columns, row)


def _decode(columns: Sequence[Packed], row: tuple[Any, ...]) -> dict[str, pa.Array]:
    fields, decoded = iter(row), {}
    for column in columns:
        decoded[column.name] = column.decode([part or b"" for part in islice(fields, len(column.aggregates))])
    lengths = {len(decoded[column.name]) for column in columns if not column.is_sparse}
    if len(lengths) != 1:
        raise TransientError(f"A packed block arrived with columns of {sorted(lengths)} rows; read it again.")
    return decoded


def _join(part: Composable) -> Composable:
    return sql.SQL("string_agg({}, NULL::bytea)").format(part)


def _or_zeros(part: Composable, width: int) -> Composable:
    return sql.SQL("coalesce({}, {}::bytea)").format(part, sql.Literal("\\x" + "00" * width))


def _presence(part: Composable) -> Composable:
    return sql.SQL(r"CASE WHEN {} IS NULL THEN '\x00'::bytea ELSE '\x01'::bytea END").format(part)


def _texts(lengths: bytes, data: bytes) -> pa.Array:
    sizes = np.frombuffer(lengths, ">i4").astype(np.int64)
    is_there = sizes >= 0
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(np.maximum(sizes, 0), out=offsets[1:])
    bitmap = None if is_there.all() else _bitmap(is_there)
    buffers = [bitmap, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(sizes), buffers)


def _bitmap(is_there: np.ndarray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(is_there, bitorder="little"))


def _several(items: Sequence[Block], count: int) -> Iterator[Sequence[Block]]:
    for start in range(0, len(items), count):
        yield items[start : start + count]
