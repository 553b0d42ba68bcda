"""Coordinates as SQL: ordered by their own types, sent as eight bytes each, held as two signed 64-bit numbers.

One law: a coordinate is compared as what it is (pg_lsn, xid8, a number) and never as text; what leaves PostgreSQL is a
64-bit integer, signed or unsigned, and an unsigned one is shifted here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from psycopg import sql

from recovery_api.domain.coordinates import INT64_MAX, Coordinate, Spelling, coordinate_format
from recovery_api.domain.errors import Unsuitable
from workers.connectors.readings import CoordinateRange

SHIFT = 2**63
INTEGERS = ("int2", "int4", "int8")
TEXTS = ("text", "varchar", "bpchar")

Composable = sql.Composable

SUITABLE = {
    Spelling.BIGINT: "smallint, integer or bigint",
    Spelling.UNSIGNED: "numeric, or bigint holding two's complement",
    Spelling.PG_LSN: "pg_lsn, text in its spelling, or bigint or numeric in decimal",
    Spelling.XID8_BIGINT: "xid8 (or bigint or numeric) and then smallint, integer or bigint",
}


@dataclass(frozen=True, slots=True)
class Component:
    """One column of a coordinate. `native` is what is compared and indexed; `send` its eight bytes, in network order.

    `is_unsigned`: the eight bytes are an unsigned number, to be shifted on arrival. `cast` names the literal's type.
    """

    column: str
    native: Composable
    send: Composable
    is_unsigned: bool
    is_plain: bool
    is_not_null: bool
    cast: str
    shift: int

    def literal(self, held: int) -> Composable:
        text, cast = self._spell([held])
        return sql.SQL("{}::{}").format(sql.Literal(text), sql.SQL(cast))

    def literals(self, held: list[int]) -> Composable:
        """An array of them."""
        text, cast = self._spell(held)
        return sql.SQL("{}::{}[]").format(sql.Literal(f"{{{text}}}"), sql.SQL(cast))

    def _spell(self, held: list[int]) -> tuple[str, str]:
        numbers = [number + self.shift for number in held]
        if self.cast == "pg_lsn":
            return ",".join(f"{number >> 32:X}/{number & 0xFFFFFFFF:X}" for number in numbers), self.cast
        cast = "numeric" if self.cast == "int8" and max(numbers, default=0) > INT64_MAX else self.cast
        return ",".join(map(str, numbers)), cast

    @property
    def send_above(self) -> Callable[[int], Composable] | None:
        """What makes, of a held number, an expression of four bytes in network order: how far a row's value lies above it, by
        less than 2**31. None: for this type that costs the server more than eight bytes do."""
        if self.cast != "int8" or self.shift:
            return None
        return lambda held: sql.SQL("int4send(({}::int8 - {})::int4)").format(self.native, self.literal(held))

    def held(self, sent: bytes | bytearray | memoryview) -> np.ndarray:
        """The held numbers of the bytes that `send` gave, eight a row."""
        if self.is_unsigned:
            numbers = np.frombuffer(sent, ">u8").astype(np.uint64)
            return (numbers ^ np.uint64(SHIFT)).view(np.int64)
        return np.frombuffer(sent, ">i8").astype(np.int64)


ROW = "event_row"
"""The alias of the mapped table in every statement: a column named like an output or another table stays itself."""


def column_of_row(name: str) -> sql.Identifier:
    return sql.Identifier(ROW, name)


def component_of(column: str, type_: str, scale: int | None, is_not_null: bool, spelling: Spelling) -> Component:
    """How a column of this type holds one number of a coordinate so spelled (for a pair: its transaction id).

    Raises: Unsuitable.
    """
    name = column_of_row(column)
    plain = (True, is_not_null)
    if spelling is Spelling.BIGINT and type_ in INTEGERS:
        send = name if type_ == "int8" else sql.SQL("{}::int8").format(name)
        return Component(column, name, _sql("int8send({})", send), False, *plain, "int8", 0)
    if spelling is Spelling.PG_LSN and type_ == "pg_lsn":
        return Component(column, name, _sql("pg_lsn_send({})", name), True, *plain, "pg_lsn", SHIFT)
    if spelling is Spelling.PG_LSN and type_ in TEXTS:
        native = _sql("({}::pg_lsn)", name)
        return Component(column, native, _sql("pg_lsn_send({})", native), True, False, is_not_null, "pg_lsn", SHIFT)
    if spelling is Spelling.XID8_BIGINT and type_ == "xid8":
        return Component(column, name, _sql("xid8send({})", name), True, *plain, "xid8", SHIFT)
    if spelling is Spelling.UNSIGNED and type_ in INTEGERS:
        native = _sql("({}::int8 # '-9223372036854775808'::int8)", name)
        return Component(column, native, _sql("int8send({})", native), False, False, is_not_null, "int8", 0)
    if spelling is not Spelling.BIGINT and type_ == "numeric":
        shifted = _sql("({} - 9223372036854775808)", name)
        whole = shifted if scale == 0 else _sql("trim_scale({})::text", shifted)  # a fraction is refused, not rounded
        return Component(column, name, _sql("int8send({}::int8)", whole), False, *plain, "numeric", SHIFT)
    if spelling in (Spelling.PG_LSN, Spelling.XID8_BIGINT) and type_ in INTEGERS:
        return Component(column, name, _sql("int8send({}::int8)", name), True, *plain, "int8", SHIFT)
    raise Unsuitable(
        f"column {column!r}",
        f"is {type_} and cannot hold a {spelling.value} coordinate",
        f"It must be {SUITABLE[spelling]}; or give another coordinate_spelling.",
    )


@dataclass(frozen=True, slots=True)
class CoordinateSql:
    """A whole coordinate: one component, or two compared as a pair."""

    spelling: Spelling
    components: tuple[Component, ...]

    @classmethod
    def of(cls, spelling: Spelling, names: list[str], columns: Mapping[str, Mapping[str, object]]) -> CoordinateSql:
        """From the columns' types. `columns`: name to type, scale and is_not_null. Raises: Unsuitable."""
        spellings = [spelling, Spelling.BIGINT][: len(names)]
        components = tuple(
            component_of(name, str(facts["type"]), _scale(facts), bool(facts["is_not_null"]), its)
            for name, its in zip(names, spellings, strict=True)
            for facts in [columns[name]]
        )
        return cls(spelling, components)

    @property
    def native(self) -> Composable:
        return sql.SQL(", ").join(component.native for component in self.components)

    def order(self, is_descending: bool = False) -> Composable:
        way = sql.SQL(" DESC") if is_descending else sql.SQL("")
        return sql.SQL(", ").join(component.native + way for component in self.components)

    @property
    def is_null(self) -> Composable | None:
        """The condition that finds a null coordinate; None where no column can be null."""
        nullable = [component for component in self.components if not component.is_not_null]
        if not nullable:
            return None
        return sql.SQL("({})").format(
            sql.SQL(" OR ").join(_sql("{} IS NULL", column_of_row(component.column)) for component in nullable)
        )

    def literal(self, coordinate: Coordinate) -> Composable:
        held = (coordinate.position, coordinate.ordinal)
        return sql.SQL(", ").join(
            component.literal(number) for component, number in zip(self.components, held, strict=False)
        )

    def compare(self, sign: str, coordinate: Coordinate) -> Composable:
        """`coordinate-columns sign literal`. Where the coordinate is one column a literal's ordinal counts too."""
        if len(self.components) == 1 and coordinate.ordinal != 0:
            sign = {">=": ">" if coordinate.ordinal > 0 else ">=", "<": "<=" if coordinate.ordinal > 0 else "<"}[sign]
        return sql.SQL("({}) {} ({})").format(self.native, sql.SQL(sign), self.literal(coordinate))

    def inside(self, range_: CoordinateRange) -> Composable:
        """The condition of a range: low inclusive, high exclusive. A null coordinate lies in no range."""
        conditions = []
        if range_.low is not None:
            conditions.append(self.compare(">=", range_.low))
        if range_.high is not None:
            conditions.append(self.compare("<", range_.high))
        if not conditions and (null := self.is_null) is not None:
            conditions.append(sql.SQL("NOT ") + null)
        return sql.SQL(" AND ").join(conditions) if conditions else sql.SQL("true")

    def hold(self, sent: list[bytes]) -> Coordinate:
        """The coordinate of one row's sent bytes."""
        return Coordinate(
            *(int(component.held(part)[0]) for component, part in zip(self.components, sent, strict=True))
        )

    def format(self, coordinate: Coordinate) -> str:
        return coordinate_format(coordinate, self.spelling)


def _scale(facts: Mapping[str, object]) -> int | None:
    scale = facts["scale"]
    return scale if isinstance(scale, int) else None


def _sql(template: str, part: Composable) -> Composable:
    return sql.SQL(template).format(part)
