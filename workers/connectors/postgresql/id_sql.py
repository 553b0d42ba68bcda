"""The SQL of a table of message ids: its id, its consumer, and which of its rows are acceptances.

One law: names are quoted, values are literals that PostgreSQL reads in the column's own type, and nothing else is SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.identity import COLUMN_TYPES, IdType
from recovery_api.domain.kinds.postgresql_ids import conditions_of
from recovery_api.domain.mapping import Comparison, Condition, Term, term_parse
from workers.connectors.postgresql.catalogue import Table, column_get
from workers.connectors.postgresql.coordinate_sql import column_of_row

Composable = sql.Composable

TRUE = sql.SQL("true")


@dataclass(frozen=True)
class IdSql:
    """Made from a record's parsed options and the types of its columns (name -> the catalogue's type)."""

    options: Mapping[str, Any]
    types: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, Any], table: Table) -> IdSql:
        """From the catalogue. Raises: NotFound; Unsuitable for a column of a type that cannot serve."""
        columns = table.columns
        terms = [term_parse(name, options[name], columns) for name in ("event_id", "consumer_column") if options[name]]
        terms += [
            term_parse(name, one.column, columns)
            for name in ("filter", "accepted_when")
            for one in conditions_of(options, name)
        ]
        made = cls(options, {one.column: column_get(table, one.column).type for one in terms})
        for one in terms:
            if one.path and made.types[one.column] not in ("json", "jsonb"):
                problem = f"is {made.types[one.column]}, and a path leads into JSON"
                raise Unsuitable(f"column {one.column!r}", problem, "Map a json or jsonb column, or no path.")
        _ = made.id_type
        return made

    @property
    def id_type(self) -> IdType:
        """What the id is by itself: of a path its text. Raises: Unsuitable."""
        term = self._term("event_id")
        if term.path:
            return IdType.TEXT
        found = self.types[term.column]
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
        parts = [self._condition(one) for one in conditions_of(self.options, "filter")]
        if self.consumer is not None and consumer is not None:
            parts.append(sql.SQL("{} = {}").format(self.consumer, sql.Literal(consumer)))
        return sql.SQL(" AND ").join(parts) if parts else TRUE

    @property
    def accepted_code(self) -> Composable:
        r"""Whether a row is an acceptance, as one byte: `\x02` where it is, `\x01` where not."""
        parts = [self._condition(one) for one in conditions_of(self.options, "accepted_when")]
        condition = sql.SQL(" AND ").join(parts) if parts else TRUE
        return sql.SQL(r"(CASE WHEN {} THEN '\x02'::bytea ELSE '\x01'::bytea END)").format(condition)

    def _term(self, name: str) -> Term:
        return term_parse(name, self.options[name], self.types)

    def _text(self, term: Term) -> Composable:
        column = column_of_row(term.column)
        if not term.path:
            return sql.SQL("{}::text").format(column)
        return sql.SQL("({} #>> {}::text[])").format(column, sql.Literal(list(term.path)))

    def _condition(self, condition: Condition) -> Composable:
        """A condition that is never null."""
        term = term_parse("filter", condition.column, self.types)
        value = self._text(term) if term.path else column_of_row(term.column)
        given = [sql.Literal(one) for one in condition.values]
        match condition.comparison:
            case Comparison.IS_NULL | Comparison.IS_NOT_NULL:
                return sql.SQL("({} {})").format(value, sql.SQL(condition.comparison.value.upper()))
            case Comparison.IN:
                return sql.SQL("coalesce({} IN ({}), false)").format(value, sql.SQL(", ").join(given))
            case Comparison.OTHER:
                return sql.SQL("({} IS DISTINCT FROM {})").format(value, given[0])
        sign = sql.SQL(condition.comparison.value)
        return sql.SQL("coalesce({} {} {}, false)").format(value, sign, given[0])
