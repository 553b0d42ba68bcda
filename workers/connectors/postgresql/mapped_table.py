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
from recovery_api.domain.kinds.postgresql_mapping import OPS, filter_of
from recovery_api.domain.mapping import JOINED, Term, term_parse
from workers.connectors.postgresql import canonical_sql
from workers.connectors.postgresql.catalogue import Server, Table, column_get
from workers.connectors.postgresql.content_sql import CONTENT_TYPES, HANDED_OVER_AS_IS, canonical_of, decoded
from workers.connectors.postgresql.coordinate_sql import TEXTS, CoordinateSql
from workers.connectors.postgresql.identifiers import qualified
from workers.connectors.postgresql.mapped_rows import (
    path_json,
    path_text,
    path_type,
    rows_sql,
    term_column,
    term_of,
)
from workers.connectors.postgresql.ordered import added_or_advise, ordered_or_advise

Composable = sql.Composable

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
    """`types`: see mapped_rows.Types, for the columns that the mapping names. `has_soft_errors`: see canonical_sql."""

    options: Mapping[str, Any]
    types: Mapping[str, Mapping[str, Any]]
    has_soft_errors: bool = True

    @classmethod
    def of(
        cls,
        options: Mapping[str, Any],
        column_options: tuple[str, ...],
        table: Table,
        server: Server,
        joined: Table | None = None,
    ) -> MappedTable:
        """From the catalogue. `column_options`: those whose value is mapped. Raises: BadInput, NotFound, Unsuitable."""
        coordinate = [*options["coordinate"], *(options.get("head") or [])]
        for name in coordinate:
            if name in SYSTEM_COLUMNS:
                raise Unsuitable(f"column {name!r}", *SYSTEM_COLUMN)
        added_or_advise(coordinate, table, server)
        texts = [(option, options[option]) for option in column_options if options.get(option)]
        texts += [("filter", condition.column) for condition in filter_of(options)]
        others = [] if joined is None else list(joined.columns)
        terms = [term_parse(option, text, list(table.columns), others) for option, text in texts]
        names = [*coordinate, *(options.get("joined_on") or {})]
        names += [term.column for term in terms if not term.is_joined and not term.is_constant]
        types = {name: column_get(table, name).facts for name in dict.fromkeys(names)}
        for term in terms:
            if term.is_joined:
                if joined is None:
                    remedy = "Name joined_table and joined_on, or map a column of the table itself."
                    raise Unsuitable(f"column {term.name!r}", "is of a joined table, and none is named", remedy)
                types[term.name] = {**column_get(joined, term.column).facts, "is_joined": True}
        ordered_or_advise(options, coordinate, table, server)
        mapped = cls(options, types, server.has_soft_errors)
        mapped.types_check()
        return mapped

    @property
    def name(self) -> sql.Identifier:
        return qualified(self.options["schema"], self.options["table"])

    @property
    def rows(self) -> Composable:
        """The rows that count, under the alias that every expression here names."""
        return rows_sql(self.options, self.types)

    @property
    def rows_with_xmin(self) -> Composable:
        """The same, with the transaction that wrote each; of a table that keeps it."""
        return rows_sql(self.options, self.types, ["xmin"])

    def rows_sampled(self, sampled: Composable) -> Composable:
        """Those of them that lie on a sample of the table's pages."""
        return rows_sql(self.options, self.types, sampled=sampled)

    @property
    def columns(self) -> list[Composable]:
        """Every column that the mapping names, as `rows` shows it."""
        terms = [
            Term(name.removeprefix(JOINED), is_joined=True) if facts.get("is_joined") else Term(name)
            for name, facts in self.types.items()
        ]
        return [term_column(term) for term in terms]

    @property
    def spelling(self) -> Spelling:
        return Spelling(self.options["coordinate_spelling"])

    @cached_property
    def coordinate(self) -> CoordinateSql:
        return CoordinateSql.of(self.spelling, self.options["coordinate"], self.types)

    def types_check(self) -> None:
        """Nothing, where every mapped value has a type that can serve. Raises: Unsuitable."""
        if self.coordinate and (content := self.options.get("content")):
            wanted, found = self.options["content_format"], self.type_of("content")
            if found == "oid":
                raise Unsuitable(f"column {content!r}", *LARGE_OBJECT)
            if CONTENT_TYPES[wanted] and found not in CONTENT_TYPES[wanted]:
                remedy = f"{wanted} is read from {', '.join(CONTENT_TYPES[wanted])}; or give another content_format."
                raise Unsuitable(f"column {content!r}", f"is {found} and cannot be read as {wanted}", remedy)
        for option in ("key", "op", "event_id"):
            if (found := self.type_of(option)) in NOT_TEXT:
                problem = f"is {found} and cannot be the {option}"
                raise Unsuitable(
                    f"column {self.options[option]!r}", problem, "Map a column whose value has a plain text."
                )
        for option, types in (
            ("committed_at", TIME_TYPES),
            ("accepted_at", TIME_TYPES),
            ("commit_xid", ("xid8",)),
            ("admitted_in", ("xid8",)),
            ("entry", ("int2", "int4", "int8")),
            ("generation", ("int2", "int4", "int8")),
            ("digest", ("bytea", *TEXTS)),
        ):
            found = self.type_of(option)
            if found is not None and found not in types:
                problem = f"is {found} and cannot serve as {option}"
                raise Unsuitable(f"column {self.options[option]!r}", problem, f"It must be {', '.join(types)}.")

    def term(self, option: str) -> Term | None:
        """What the option maps; None where it maps nothing."""
        text = self.options.get(option)
        return term_of(text, self.types, option) if text else None

    def type_of(self, option: str) -> str | None:
        """The type of what the option maps: that of a column, json or jsonb for a content's path, else text."""
        term = self.term(option)
        if term is None:
            return None
        if term.is_constant:
            return "text"
        if not term.path:
            return str(self.types[term.name]["type"])
        into = path_type(term, self.types)
        if not self._is_json(option):
            return "text"
        return "jsonb" if into == "jsonb" else "json"

    def column(self, option: str) -> Composable | None:
        """The value that the option maps, of the type that `type_of` says; None where it maps nothing."""
        term = self.term(option)
        if term is None:
            return None
        if term.is_constant:
            return sql.SQL("{}::text").format(sql.Literal(term.text))
        column = term_column(term)
        if not term.path:
            return column
        path = path_json if self._is_json(option) else path_text
        return path(column, path_type(term, self.types), term.path)

    def _is_json(self, option: str) -> bool:
        return option == "content" and self.options["content_format"] == "json"

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
        """The content as it is handed over: JSON text for JSON, a JSON string for text and bytes; NULL for none."""
        content = self._content
        if content is None:
            return sql.SQL("NULL::text")
        if self.options["content_format"] in HANDED_OVER_AS_IS:
            return sql.SQL(f"({content})::text")
        return sql.SQL(self._canonical(content))

    @property
    def content_jsonb(self) -> tuple[str, str]:
        """The content as it is handed over, as jsonb (null where jsonb cannot hold it), and a text, null only where there is
        no content: its JSON, unless jsonb holds it anyway."""
        content = self._content
        if content is None:
            return "NULL::jsonb", "NULL::text"
        if self.options["content_format"] == "json" and self.type_of("content") == "jsonb":
            return content, f"CASE WHEN ({content}) IS NOT NULL THEN '' END"
        raw = self.content_raw.as_string(None)
        if not self.has_soft_errors:
            return f"({raw})::jsonb", raw
        return f"CASE WHEN pg_input_is_valid({raw}, 'jsonb') THEN ({raw})::jsonb END", raw

    @property
    def payload_digest(self) -> Composable:
        """The payload digest's expression: NULL where Python must compute it, or where the op is unmapped."""
        op, key = self.op.as_string(None), self.key.as_string(None)
        content = self._content
        if content is None:
            digest = (
                f"(CASE WHEN {op} = 'delete' THEN {canonical_sql.DIGEST_OF_NULL}"
                f" ELSE {canonical_sql.DIGEST_OF_NOTHING} END)"
            )
        else:
            digest = canonical_sql.content_digest(self._canonical(content), content, op)
        return sql.SQL(canonical_sql.payload_digest(op, key, digest))

    @property
    def _content(self) -> str | None:
        """The decoded content's expression."""
        column, term = self.column("content"), self.term("content")
        if column is None or term is None:
            return None
        type_ = str(self.type_of("content"))
        return decoded(self.options["content_format"], type_, column.as_string(None), bool(term.path))

    def _canonical(self, content: str) -> str:
        format_, type_ = self.options["content_format"], str(self.type_of("content"))
        return canonical_of(format_, type_, content, self.has_soft_errors)
