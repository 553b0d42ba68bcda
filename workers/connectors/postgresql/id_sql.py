"""SQL for a table of message ids: the id, the consumer, and which rows are acceptances.

How a mapped value and a condition become SQL is in `mapped_rows`. No joined table is read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.identity import COLUMN_TYPES, IdType
from recovery_api.domain.kinds.postgresql_ids import conditions_of
from recovery_api.domain.mapping import Term, term_parse
from workers.connectors.postgresql.catalogue import Table, column_get
from workers.connectors.postgresql.coordinate_sql import column_of_row
from workers.connectors.postgresql.mapped_rows import Types, condition_sql, filter_sql, path_text, path_type, term_of

Composable = sql.Composable


@dataclass(frozen=True)
class IdSql:
    """Made from a record's parsed options and what the catalogue says of its columns."""

    options: Mapping[str, Any]
    types: Types

    @classmethod
    def of(cls, options: Mapping[str, Any], table: Table) -> IdSql:
        """From the catalogue. Raises: NotFound; Unsuitable for a column of a type that cannot serve."""
        conditions = [one for name in ("filter", "accepted_when") for one in conditions_of(options, name)]
        named = [options[name] for name in ("event_id", "consumer_column") if options[name]]
        terms = [term_parse("event_id", text, table.columns) for text in [*named, *(one.column for one in conditions)]]
        made = cls(options, {one.column: {"type": column_get(table, one.column).type} for one in terms})
        for one in terms:
            if one.path:
                path_type(one, made.types)
        for condition in conditions:
            condition_sql(condition, made.types)
        _ = made.id_type
        return made

    @property
    def id_type(self) -> IdType:
        """What the id is by itself: of a path its text. Raises: Unsuitable."""
        term = self._term("event_id")
        if term.path:
            return IdType.TEXT
        found = self.types[term.column]["type"]
        if found not in COLUMN_TYPES:
            remedy = f"An id is {', '.join(COLUMN_TYPES)}; or a path in JSON."
            raise Unsuitable(f"column {term.column!r}", f"is {found} and cannot hold an id to be met by", remedy)
        return COLUMN_TYPES[found]

    @property
    def event_id(self) -> Composable:
        return self._text(self._term("event_id"))

    @property
    def id_column(self) -> str | None:
        """The column of the id; None where it is a path in one."""
        term = self._term("event_id")
        return None if term.path else term.column

    @property
    def consumer(self) -> Composable | None:
        return self._text(self._term("consumer_column")) if self.options["consumer_column"] else None

    def counted(self, consumer: str | None) -> Composable:
        """Which rows count: the filter's, and the one consumer's."""
        counted = filter_sql(conditions_of(self.options, "filter"), self.types)
        if consumer is None:
            return counted
        return sql.SQL("{} AND {}").format(counted, self.consumed_by(consumer))

    def consumed_by(self, consumer: str) -> Composable:
        """Which rows are that consumer's: compared in the column's own type, so that no spelling of it matters."""
        term = self._term("consumer_column")
        column = self._text(term) if term.path else column_of_row(term.column)
        return sql.SQL("{} = {}").format(column, sql.Literal(consumer))

    @property
    def accepted_code(self) -> Composable:
        r"""Whether a row is an acceptance, as one byte: `\x02` where it is, `\x01` where not."""
        condition = filter_sql(conditions_of(self.options, "accepted_when"), self.types)
        return sql.SQL(r"(CASE WHEN {} THEN '\x02'::bytea ELSE '\x01'::bytea END)").format(condition)

    def _term(self, name: str) -> Term:
        return term_of(self.options[name], self.types, name)

    def _text(self, term: Term) -> Composable:
        column = column_of_row(term.column)
        if not term.path:
            return sql.SQL("{}::text").format(column)
        return path_text(column, path_type(term, self.types), term.path)
