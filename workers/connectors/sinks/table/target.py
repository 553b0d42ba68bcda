"""One table that owed rows are landed in: how it is named, read and written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from recovery_api.domain.errors import Refused
from workers.connectors.postgresql.coordinate_sql import TEXTS
from workers.connectors.postgresql.identifiers import qualified
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.postgresql.opening import Opened
from workers.connectors.sinks.table.ability import ability_judge
from workers.connectors.sinks.table.facts import TableFacts, facts_read
from workers.connectors.sinks.table.unfit import unfit
from workers.connectors.sinks.table.writing import Written, columns_written


def digest_read(mapped: MappedTable) -> sql.Composable:
    """A row's payload digest as the record says it: its digest column, where one is mapped; NULL for a broken one."""
    column = mapped.column("digest")
    if column is None:
        return mapped.payload_digest
    if mapped.type_of("digest") in TEXTS:
        column = sql.SQL("decode({}, 'hex')").format(column)
    return sql.SQL("CASE WHEN octet_length({}) = 32 THEN {} END").format(column, column)


@dataclass(frozen=True)
class Target:
    """`tree`: the oids of the table and of those that hold its rows."""

    opened: Opened
    facts: TableFacts

    @classmethod
    def open(cls, connection: psycopg.Connection[Any], opened: Opened) -> Target:
        """Raises: Refused with everything that stands in the way."""
        made = cls(opened, facts_read(connection, opened.table))
        problems = ability_judge(opened.mapped, made.facts, opened).problems
        if problems:
            raise Refused(f"Appending to {made.place}", " ".join(problems).rstrip("."), "")
        return made

    @property
    def mapped(self) -> MappedTable:
        return self.opened.mapped

    @property
    def place(self) -> str:
        return f"{self.opened.table.schema}.{self.opened.table.name}"

    @property
    def name(self) -> sql.Identifier:
        return qualified(self.opened.table.schema, self.opened.table.name)

    @property
    def tree(self) -> list[int]:
        return [self.opened.table.oid, *self.opened.table.leaves]

    @cached_property
    def written(self) -> list[Written]:
        return columns_written(self.mapped, self.facts.columns)

    @property
    def digest(self) -> sql.Composable:
        return digest_read(self.mapped)

    @property
    def has_digest_column(self) -> bool:
        return bool(self.mapped.options.get("digest"))

    def unfit(self, batch: pa.RecordBatch) -> pa.Array:
        return unfit(self.mapped, self.facts.columns, batch)
