"""Owed rows at the sink, in temporary tables of one transaction: as they came, converted, and matched with the table.

One law: two rows are the same where the table, read through its mapping, gives both the same digest. The digest that an
audit will read is taken from what was written, and compared with the digest of what is owed. A content that only Python
can digest (an escape or a number that jsonb cannot hold) is compared as text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql

from recovery_api.domain.errors import BadInput, Refused, Unsuitable
from recovery_api.domain.frontiers import SINGLE_LANE
from workers.connectors.postgresql import canonical_sql
from workers.connectors.postgresql.coordinate_sql import ROW
from workers.connectors.postgresql.copying import rows_copy
from workers.connectors.postgresql.sqlstates import sentence_of
from workers.connectors.sinks.table.target import Target
from workers.connectors.sinks.table.writing import OWED
from workers.evidence import canonical

NAMED = 5
"""How many coordinates an answer or an error names."""
DIGESTED_AT_ONCE = 1000

CAME = "came"
CAME_COLUMNS = ("nth", "position", "ordinal", "event_id", "op", "key", "content")
DIGESTS, TYPED, JUDGED = "digests", "typed", "judged"

OF_A_ROW = (
    psycopg.errors.DataError,
    psycopg.errors.IntegrityError,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.RaiseException,
)
"""What a server says of a row, and not of the server."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What became of the rows. `wrong`: sent, and not there as they were sent; a few coordinates of each kind."""

    landed_count: int
    absorbed_count: int
    altered_count: int
    wrong_count: int
    sent_count: int
    altered: tuple[str, ...]
    wrong: tuple[str, ...]

    def as_row(self) -> dict[str, Any]:
        return {
            "landed_count": self.landed_count,
            "absorbed_count": self.absorbed_count,
            "altered_count": self.altered_count,
            "altered": list(self.altered),
        }


class OwedRows:
    """The rows of one transaction, which holds them and ends them."""

    def __init__(self, connection: psycopg.Connection[Any], target: Target) -> None:
        self.connection, self.target = connection, target
        self._came = _temporary(CAME)
        self._nth = _name_free("nth", {one.name for one in target.written})
        self._run(
            "CREATE TEMPORARY TABLE {came} (nth bigint, position bigint NOT NULL, ordinal bigint NOT NULL, event_id text,"
            " op text, key text, content text) ON COMMIT DROP"
        )

    def _numbered(self, batch: pa.RecordBatch, count: int) -> pa.RecordBatch:
        """The batch's columns as they are copied, with their number as they came; `count` came before."""
        nth = pa.array(np.arange(count + 1, count + 1 + batch.num_rows, dtype=np.int64))
        return pa.RecordBatch.from_arrays([nth, *map(batch.column, CAME_COLUMNS[1:])], names=CAME_COLUMNS)

    def copy(self, cursor: psycopg.Cursor[Any], batch: pa.RecordBatch, count: int) -> None:
        rows_copy(cursor, self._came, self._numbered(batch, count))

    def digest(self) -> None:
        """Their payload digests, by SQL, and by Python where SQL cannot. Raises: Unsuitable for what is not JSON."""
        op, key, content = '"op"', '"key"', '"content"'
        text = canonical_sql.canonical_json(content, self.target.opened.server.has_soft_errors)
        digest = canonical_sql.payload_digest(op, key, canonical_sql.content_digest(text, content, op))
        try:
            with self.connection.transaction():
                self._run(
                    "CREATE TEMPORARY TABLE {digests} ON COMMIT DROP AS SELECT nth, {digest} AS digest FROM {came}",
                    digest=sql.SQL(digest),
                )
        except psycopg.errors.DataError as error:
            said = sentence_of(error.sqlstate) if error.sqlstate else "it is not JSON"
            raise Unsuitable("the batch", f"a content cannot be read ({said})", "Look at its events.") from error
        missing = "SELECT nth, position, ordinal, op, key, content FROM {came} JOIN {digests} d USING (nth)"
        while rows := self._run(f"{missing} WHERE d.digest IS NULL LIMIT {DIGESTED_AT_ONCE}").fetchall():
            made = [(nth, _digest(position, ordinal, *rest)) for nth, position, ordinal, *rest in rows]
            numbers, digests = [nth for nth, _ in made], [digest for _, digest in made]
            self._run(
                "UPDATE {digests} d SET digest = m.digest FROM unnest(%s::bigint[], %s::bytea[]) AS m (nth, digest)"
                " WHERE d.nth = m.nth",
                [numbers, digests],
            )
        self._run("ANALYZE {came}; ANALYZE {digests}")

    def sum(self) -> str:
        """The batch digest of what came."""
        entry = canonical_sql.entry_digest(
            canonical_sql.literal(SINGLE_LANE), 'c."position"', 'c."ordinal"', "d.digest"
        )
        row = self._run(
            "SELECT {sum} FROM (SELECT {entry} AS entry FROM {came} c JOIN {digests} d USING (nth) OFFSET 0) AS e",
            sum=sql.SQL(canonical_sql.batch_digest("e.entry")),
            entry=sql.SQL(entry),
        ).fetchone()
        assert row is not None
        return str(row[0])

    def bring(self) -> None:
        """Into the table's own types. Raises: Unsuitable naming the coordinate of a row that cannot be brought."""
        columns = [sql.Identifier(one.name) for one in self.target.written]
        declared = [sql.SQL(self.target.facts.columns[one.name].declared) for one in self.target.written]
        typed = [sql.SQL("{} {}").format(name, type_) for name, type_ in zip(columns, declared, strict=True)]
        self._run(
            "CREATE TEMPORARY TABLE {typed} ({own} bigint, {columns}) ON COMMIT DROP",
            columns=sql.SQL(", ").join(typed),
        )

        def run(last: sql.Literal) -> None:
            self._run(
                "INSERT INTO {typed} ({own}, {columns}) SELECT {owed}.nth, {values} FROM"
                " (SELECT c.*, d.digest FROM {came} c JOIN {digests} d USING (nth) WHERE c.nth <= {last}) AS {owed}",
                columns=sql.SQL(", ").join(columns),
                values=sql.SQL(", ").join(one.value for one in self.target.written),
                owed=sql.Identifier(OWED),
                last=last,
            )

        self._up_to(run, "SELECT position, ordinal FROM {came} WHERE nth = {last}")
        self._judge()

    def _judge(self) -> None:
        """What a reader will see of each."""
        components = self.target.mapped.coordinate.components
        natives = [sql.SQL("{} AS n{}").format(one.native, sql.SQL(str(at))) for at, one in enumerate(components)]
        sent = [sql.SQL("{} AS s{}").format(one.send, sql.SQL(str(at))) for at, one in enumerate(components)]
        self._run(
            "CREATE TEMPORARY TABLE {judged} ON COMMIT DROP AS SELECT c.nth, c.position, c.ordinal,"
            " row_number() OVER (ORDER BY c.position, c.ordinal) AS rank, {natives}, {sent}, said.digest, {text}"
            " FROM {typed} AS {row} JOIN {came} c ON c.nth = {row}.{own}"
            " CROSS JOIN LATERAL (SELECT {digest} AS digest OFFSET 0) AS said",
            natives=sql.SQL(", ").join(natives),
            sent=sql.SQL(", ").join(sent),
            text=self._text("said.digest"),
        )
        self._run("ANALYZE {judged}; ANALYZE {typed}")

    def check(self) -> None:
        """Nothing, where each reads as what is owed. Raises: Unsuitable naming the coordinate; Refused for a repeated one."""
        components = self.target.mapped.coordinate.components
        held = ("position", "ordinal")
        differs = [
            sql.SQL("j.s{} IS DISTINCT FROM int8send({})").format(
                sql.SQL(str(at)),
                sql.SQL("c.{} # '-9223372036854775808'::int8" if one.is_unsigned else "c.{}").format(
                    sql.Identifier(held[at])
                ),
            )
            for at, one in enumerate(components)
        ]
        row = self._run(
            "SELECT c.position, c.ordinal FROM {judged} j JOIN {came} c USING (nth) JOIN {digests} d USING (nth)"
            " WHERE {differs} OR CASE WHEN j.digest IS NULL THEN j.text IS NULL OR j.text IS DISTINCT FROM {came_text}"
            " ELSE j.digest <> d.digest END ORDER BY j.rank LIMIT 1",
            differs=sql.SQL(" OR ").join(differs),
            came_text=sql.SQL("jsonb_build_array(c.op, c.key, c.content)::text"),
        ).fetchone()
        if row is not None:
            raise row_unsuitable(row[0], row[1], "read again as it is mapped, the row would not say what was committed")
        repeated = self._run(
            "SELECT position, ordinal FROM {judged} GROUP BY position, ordinal HAVING count(*) > 1"
            " ORDER BY position, ordinal LIMIT 1"
        ).fetchone()
        if repeated is not None:
            where = _place(*repeated)
            problem = (
                f"two events that are owed have one coordinate, {where}, and a table tells them apart by nothing else"
            )
            raise Refused("Appending", problem, "Look at the source: coordinates must ascend.")

    def meet(self, when: str) -> None:
        """Writes down, `before` or `after`, how many rows of the table are at each owed coordinate: the same, and others."""
        components = self.target.mapped.coordinate.components
        met = [sql.SQL("{} = j.n{}").format(one.native, sql.SQL(str(at))) for at, one in enumerate(components)]
        self._run(
            "CREATE TEMPORARY TABLE {met} ON COMMIT DROP AS SELECT j.nth, count(*) FILTER (WHERE their.is_same) AS same,"
            " count(*) FILTER (WHERE NOT their.is_same) AS other"
            " FROM {judged} j JOIN {rows} ON {on} CROSS JOIN LATERAL (SELECT {digest} AS digest OFFSET 0) AS said"
            " CROSS JOIN LATERAL (SELECT coalesce(CASE WHEN said.digest IS NULL AND j.digest IS NULL THEN {text} = j.text"
            " ELSE said.digest = j.digest END, false) AS is_same) AS their GROUP BY j.nth",
            met=_temporary(when),
            rows=self.target.mapped.rows,
            on=sql.SQL(" AND ").join(met),
            text=self._text("said.digest", is_named=False),
        )

    def insert(self) -> None:
        """What `before` did not find, in the order of coordinates. Raises: Unsuitable naming the coordinate refused."""
        columns = [sql.Identifier(one.name) for one in self.target.written]

        def run(last: sql.Literal) -> None:
            self._run(
                "INSERT INTO {target} ({columns}) SELECT {values} FROM {typed} t JOIN {judged} j ON j.nth = t.{own}"
                " WHERE j.rank <= {last} AND NOT EXISTS (SELECT FROM {before} b WHERE b.nth = j.nth) ORDER BY j.rank",
                target=self.target.name,
                columns=sql.SQL(", ").join(columns),
                values=sql.SQL(", ").join(sql.SQL("t.{}").format(name) for name in columns),
                before=_temporary("before"),
                last=last,
            )
            self._run("SET CONSTRAINTS ALL IMMEDIATE")  # what a constraint puts off shows its row here

        self._up_to(run, "SELECT position, ordinal FROM {judged} WHERE rank = {last}")

    def insert_plain(self) -> None:
        """All of them, as they came, whatever is there."""
        columns = sql.SQL(", ").join(sql.Identifier(one.name) for one in self.target.written)
        self._run(
            "INSERT INTO {target} ({columns}) SELECT {columns} FROM {typed} ORDER BY {own}",
            target=self.target.name,
            columns=columns,
        )

    def figures(self) -> Figures:
        """After `meet("after")`."""
        row = self._run(
            "WITH seen AS (SELECT j.rank, j.position, j.ordinal, b.nth IS NULL AS is_sent, b.same > 0 AS is_absorbed,"
            " CASE WHEN b.nth IS NULL THEN a.same IS NOT DISTINCT FROM 1 AND a.other IS NOT DISTINCT FROM 0"
            " ELSE (a.same, a.other) IS NOT DISTINCT FROM (b.same, b.other) END AS is_right"
            " FROM {judged} j LEFT JOIN {before} b USING (nth) LEFT JOIN {after} a USING (nth))"
            " SELECT count(*) FILTER (WHERE is_sent AND is_right), count(*) FILTER (WHERE is_absorbed),"
            " count(*) FILTER (WHERE NOT is_sent AND NOT is_absorbed), count(*) FILTER (WHERE NOT is_right),"
            " count(*) FILTER (WHERE is_sent),"
            " (array_agg(ARRAY[position, ordinal] ORDER BY rank) FILTER (WHERE NOT is_sent AND NOT is_absorbed))[:{named}],"
            " (array_agg(ARRAY[position, ordinal] ORDER BY rank) FILTER (WHERE NOT is_right))[:{named}] FROM seen",
            before=_temporary("before"),
            after=_temporary("after"),
            named=sql.Literal(NAMED),
        ).fetchone()
        assert row is not None
        *counts, altered, wrong = row
        return Figures(*counts, *(tuple(_place(*one) for one in named or ()) for named in (altered, wrong)))

    def _text(self, digest: str, is_named: bool = True) -> sql.Composable:
        """Op, key and content of a row whose digest only Python can give, as one text; NULL for every other."""
        if self.target.has_digest_column:
            text: sql.Composable = sql.SQL("NULL::text")
        else:
            mapped = self.target.mapped
            text = sql.SQL("CASE WHEN {} IS NULL THEN jsonb_build_array({}, {}, {})::text END").format(
                sql.SQL(digest), mapped.op, mapped.key, mapped.content_raw
            )
        return sql.SQL("{} AS text").format(text) if is_named else text

    def _up_to(self, run: Callable[[sql.Literal], object], place: str) -> None:
        """`run` with all rows; where one is refused, Unsuitable for the first that cannot follow those before it."""
        row = self._run("SELECT count(*) FROM {came}").fetchone()
        assert row is not None
        good, bad = 0, int(row[0])
        try:
            with self.connection.transaction():
                run(sql.Literal(bad))
            return
        except OF_A_ROW as error:
            refused: psycopg.Error = error
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                with self.connection.transaction(force_rollback=True):
                    run(sql.Literal(middle))
                good = middle
            except OF_A_ROW as error:
                bad, refused = middle, error
        found = self._run(place, last=sql.Literal(bad)).fetchone()
        assert found is not None
        said = sentence_of(refused.sqlstate) if refused.sqlstate else "its content cannot be represented"
        refused._pgconn = None  # it holds the password in plain
        raise row_unsuitable(found[0], found[1], said) from refused

    def _composed(self, statement: str, **parts: sql.Composable) -> sql.Composed:
        named: dict[str, sql.Composable] = {name: _temporary(name) for name in (CAME, DIGESTS, TYPED, JUDGED)}
        named |= {"own": sql.Identifier(self._nth), "row": sql.Identifier(ROW), "digest": self.target.digest}
        return sql.SQL(statement).format(**named | parts)

    def _run(self, statement: str, arguments: list[Any] | None = None, **parts: sql.Composable) -> psycopg.Cursor[Any]:
        return self.connection.execute(self._composed(statement, **parts), arguments)


def row_unsuitable(position: int, ordinal: int, why: str) -> Unsuitable:
    """The error for one owed row that the table cannot hold."""
    remedy = "Acknowledge it as omitted, or mend it or the table."
    return Unsuitable(f"the event at {_place(position, ordinal)}", f"the sink cannot hold it ({why})", remedy)


def _place(position: int, ordinal: int) -> str:
    return f"{SINGLE_LANE}:{position}:{ordinal}"


def _digest(position: int, ordinal: int, op: str, key: str | None, content: str | None) -> bytes:
    try:
        parsed = canonical.ABSENT if content is None else canonical.content_parse(content)
        return canonical.payload_digest(op, key, canonical.content_digest(parsed, op))
    except (JSONDecodeError, BadInput) as error:
        raise row_unsuitable(position, ordinal, "its content is not JSON") from error


def _temporary(name: str) -> sql.Identifier:
    return sql.Identifier("pg_temp", name)


def _name_free(wanted: str, taken: set[str]) -> str:
    while wanted in taken:
        wanted += "_"
    return wanted
