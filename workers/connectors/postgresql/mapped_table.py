"""A table as its columns are mapped: which SQL reads its coordinates, ops, keys, contents and digests.

Made from a kind's options and from the types the catalogue gave when the reading was opened; the types travel in the
reading's handle, so that a task far away builds the same SQL without asking again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from psycopg import sql

from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.kinds.postgresql_mapping import OPS
from workers.connectors.postgresql import canonical_sql
from workers.connectors.postgresql.catalogue import Server, Table, column_get
from workers.connectors.postgresql.coordinate_sql import ROW, TEXTS, CoordinateSql, column_of_row
from workers.connectors.postgresql.identifiers import qualified

Composable = sql.Composable

JSON_TYPES = ("jsonb", "json", *TEXTS)
CONTENT_TYPES: dict[str, tuple[str, ...]] = {"json": JSON_TYPES, "text": (), "bytes": ("bytea",)}
"""Which types a content column may have for each content_format; () is any type that has a text."""

TIME_TYPES = ("timestamptz", "timestamp", "date")
NOT_TEXT = ("bytea", "json", "jsonb")

SYSTEM_COLUMNS = ("xmin", "xmax", "cmin", "cmax", "ctid", "tableoid")
SYSTEM_COLUMN = (
    "is a system column and cannot be a coordinate: a transaction id of 32 bits wraps, every UPDATE renews it, and"
    " transactions commit in another order than they begin",
    "Map a column that stays: an identity, or xid8 with the default pg_current_xact_id() and a number.",
)
LARGE_OBJECT = (
    "is oid: it holds the number of a large object, not its content",
    "Keep the content in a column of its own: ALTER TABLE … ADD COLUMN content bytea; UPDATE … SET content ="
    " lo_get(…); let the application write bytea from then on, and map that column with content_format bytes.",
)


@dataclass(frozen=True)
class MappedTable:
    """`types`: column to type, scale and is_not_null, for the mapped columns. `has_soft_errors`: see canonical_sql."""

    options: Mapping[str, Any]
    types: Mapping[str, Mapping[str, Any]]
    has_soft_errors: bool = True

    @classmethod
    def of(cls, options: Mapping[str, Any], columns: list[str], table: Table, server: Server) -> MappedTable:
        """From the catalogue. `columns`: every mapped column. Raises: NotFound, Unsuitable."""
        types = {}
        for name in [*options["coordinate"], *(options.get("head") or [])]:
            if name in SYSTEM_COLUMNS:
                raise Unsuitable(f"column {name!r}", *SYSTEM_COLUMN)
        for name in columns:
            column = column_get(table, name)
            types[name] = {"type": column.type, "scale": column.scale, "is_not_null": column.is_not_null}
        mapped = cls(options, types, server.has_soft_errors)
        mapped.types_check()
        return mapped

    @property
    def name(self) -> sql.Identifier:
        return qualified(self.options["schema"], self.options["table"])

    @property
    def rows(self) -> Composable:
        """The table under the alias that every expression here names."""
        return sql.SQL("{} AS {}").format(self.name, sql.Identifier(ROW))

    @property
    def spelling(self) -> Spelling:
        return Spelling(self.options["coordinate_spelling"])

    @cached_property
    def coordinate(self) -> CoordinateSql:
        return CoordinateSql.of(self.spelling, self.options["coordinate"], self.types)

    def types_check(self) -> None:
        """Nothing, where every mapped column has a type that can serve. Raises: Unsuitable."""
        if self.coordinate and (content := self.options.get("content")):
            wanted, found = self.options["content_format"], self.types[content]["type"]
            if found == "oid":
                raise Unsuitable(f"column {content!r}", *LARGE_OBJECT)
            if CONTENT_TYPES[wanted] and found not in CONTENT_TYPES[wanted]:
                remedy = f"{wanted} is read from {', '.join(CONTENT_TYPES[wanted])}; or give another content_format."
                raise Unsuitable(f"column {content!r}", f"is {found} and cannot be read as {wanted}", remedy)
        for option in ("key", "op", "event_id"):
            column = self.options.get(option)
            if column and self.types[column]["type"] in NOT_TEXT:
                problem = f"is {self.types[column]['type']} and cannot be the {option}"
                raise Unsuitable(f"column {column!r}", problem, "Map a column whose value has a plain text.")
        for option, types in (
            ("committed_at", TIME_TYPES),
            ("accepted_at", TIME_TYPES),
            ("commit_xid", ("xid8",)),
            ("admitted_in", ("xid8",)),
            ("entry", ("int2", "int4", "int8")),
            ("generation", ("int2", "int4", "int8")),
            ("digest", ("bytea", *TEXTS)),
        ):
            column = self.options.get(option)
            if column and self.types[column]["type"] not in types:
                problem = f"is {self.types[column]['type']} and cannot serve as {option}"
                raise Unsuitable(f"column {column!r}", problem, f"It must be {', '.join(types)}.")

    def column(self, option: str) -> Composable | None:
        name = self.options.get(option)
        return column_of_row(name) if name else None

    @property
    def op(self) -> Composable:
        """The op as text: NULL where the column holds a value that is mapped to none."""
        column = self.column("op")
        if column is None:
            return sql.Literal(self.options["op_constant"]) + sql.SQL("::text")
        whens = [
            sql.SQL("WHEN {} THEN {}").format(sql.Literal(value), sql.Literal(op))
            for value, op in self.op_values.items()
        ]
        return sql.SQL("(CASE {}::text {} END)").format(column, sql.SQL(" ").join(whens))

    @property
    def op_code(self) -> Composable:
        r"""The op as one byte, its number in OPS plus one; `'\x00'` for an unmapped value."""
        whens = [
            sql.SQL("WHEN {} THEN {}::bytea").format(sql.Literal(op), sql.Literal(f"\\x{code:02x}"))
            for code, op in enumerate(OPS, 1)
        ]
        return sql.SQL(r"(CASE {} {} ELSE '\x00'::bytea END)").format(self.op, sql.SQL(" ").join(whens))

    @property
    def op_values(self) -> dict[str, str]:
        return self.options.get("op_values") or {op: op for op in OPS}

    @property
    def key(self) -> Composable:
        column = self.column("key")
        return sql.SQL("NULL::text") if column is None else sql.SQL("{}::text").format(column)

    @property
    def content_raw(self) -> Composable:
        """The content as it is handed over: JSON text for json, a JSON string for text and bytes; NULL for none."""
        column = self.column("content")
        if column is None:
            return sql.SQL("NULL::text")
        if self.options["content_format"] == "json":
            return sql.SQL("{}::text").format(column)
        return self._said(self._canonical)

    @property
    def payload_digest(self) -> Composable:
        """The payload digest's expression: NULL where Python must compute it, or where the op is unmapped."""
        op, key = self.op.as_string(None), self.key.as_string(None)
        column = self.column("content")
        if column is None:
            content = (
                f"(CASE WHEN {op} = 'delete' THEN {canonical_sql.DIGEST_OF_NULL}"
                f" ELSE {canonical_sql.DIGEST_OF_NOTHING} END)"
            )
        else:
            text = column.as_string(None)
            content = canonical_sql.content_digest(self._canonical(text), text, op)
        return sql.SQL(canonical_sql.payload_digest(op, key, content))

    def _canonical(self, column: str) -> str:
        match self.options["content_format"]:
            case "text":
                return canonical_sql.canonical_text(column)
            case "bytes":
                return canonical_sql.canonical_bytes(column)
        match self.types[self.options["content"]]["type"]:
            case "jsonb":
                return canonical_sql.canonical_jsonb(column)
            case "json":
                return canonical_sql.canonical_json(column, self.has_soft_errors)
            case _:
                return canonical_sql.canonical_json_text(column, self.has_soft_errors)

    def _said(self, expression: Any) -> Composable:
        name = column_of_row(self.options["content"]).as_string(None)
        return sql.SQL(expression(name))
