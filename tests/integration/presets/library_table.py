"""A library's table, made in a real PostgreSQL from the facts of its preset, filled as the library fills it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psycopg
from django.utils import timezone
from psycopg import sql

from recovery_api.domain.identity import NO_REUSE
from recovery_api.models import Audit, Intent, Pipeline
from recovery_api.presets import Column, Mark, Preset
from recovery_api.services.audits import audit_request
from recovery_api.services.ends import connection_test_request, sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.presets import preset_fill
from workers.runners import intent_run

RECORD = "letters"
SENT, LOST, ROLLED_BACK = (1, 2, 4, 6), (3, 7), 5
"""3 was drawn before 4 and committed after it, so the relay passed it; 5 was never committed; 7 nobody sent."""


class Shop:
    """One database with a library's table and a plain table of what was accepted."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.dsn = dsn
        self.run = psycopg.connect(dsn, autocommit=True)
        path = folder / "dsn"
        path.write_text(dsn, encoding="utf-8")
        self.connection = f"file:{os.fspath(path)}"

    def close(self) -> None:
        for (name,) in self.run.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
        ).fetchall():
            self.run.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))
        self.run.execute("CREATE SCHEMA public")
        self.run.close()

    # -- the library -------------------------------------------------------------------------------------------------

    def make(self, preset: Preset) -> None:
        """The table as the library makes it."""
        table = preset.table
        self.run.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(table.schema)))
        for sequence in table.sequences:
            self.run.execute(sql.SQL("CREATE SEQUENCE {}").format(sql.Identifier(table.schema, sequence)))
        parts: list[sql.Composable] = [_column(column) for column in preset.columns]
        if table.primary_key:
            parts.append(sql.SQL("PRIMARY KEY ({})").format(_names(table.primary_key)))
        parts += [sql.SQL("UNIQUE ({})").format(_names(columns)) for columns in table.unique]
        self.run.execute(sql.SQL("CREATE TABLE {} ({})").format(place(preset), sql.SQL(", ").join(parts)))

    def fill(self, preset: Preset) -> None:
        """Seven rows: two in one transaction, two that commit out of order, one rolled back, one with nulls, one more."""
        with psycopg.connect(self.dsn) as first:
            insert(first, preset, 1)
            insert(first, preset, 2)
        with psycopg.connect(self.dsn) as slow:
            insert(slow, preset, 3)
            with psycopg.connect(self.dsn) as quick:
                insert(quick, preset, 4)
        with psycopg.connect(self.dsn) as lost:
            insert(lost, preset, ROLLED_BACK)
            lost.rollback()
        with psycopg.connect(self.dsn) as last:
            insert(last, preset, 6, with_nulls=True)
        with psycopg.connect(self.dsn) as last:
            insert(last, preset, 7)

    def deliver(self, preset: Preset, rows: Iterable[int]) -> None:
        """The relay: what it read of these rows is accepted by a plain table, then the library marks or deletes them."""
        self.accept(preset, rows)
        for number in rows:
            self.mark(preset, number)

    def accept(self, preset: Preset, rows: Iterable[int]) -> None:
        """Copy the rows' coordinate, key and content into the record, which has those columns under other names."""
        columns = [sql.SQL("{} AS {}").format(value, sql.Identifier(name)) for name, value in kept_values(preset)]
        self.run.execute(
            sql.SQL("CREATE TABLE IF NOT EXISTS public.{} AS SELECT {} FROM {} WHERE false").format(
                sql.Identifier(RECORD), sql.SQL(", ").join(columns), place(preset)
            )
        )
        for number in rows:
            query = sql.SQL("INSERT INTO public.{} SELECT {} FROM {} WHERE {} = {}").format(
                sql.Identifier(RECORD), sql.SQL(", ").join(columns), place(preset), *_which(preset, number)
            )
            assert self.run.execute(query).rowcount == 1, number

    def mark(self, preset: Preset, number: int) -> None:
        """What the library does to a row that it delivered."""
        delivered = preset.delivered
        column, value = _which(preset, number)
        if delivered.mark is Mark.DELETES:
            self.run.execute(sql.SQL("DELETE FROM {} WHERE {} = {}").format(place(preset), column, value))
        elif delivered.sets:
            sets = sql.SQL(", ").join(
                sql.SQL("{} = {}").format(sql.Identifier(name), sql.SQL(expression))  # type: ignore[arg-type]
                for name, expression in delivered.sets.items()
            )
            self.run.execute(sql.SQL("UPDATE {} SET {} WHERE {} = {}").format(place(preset), sets, column, value))

    # -- the library's inbox -------------------------------------------------------------------------------------------

    def letters_send(self, preset: Preset) -> None:
        """An outbox whose message ids are those of the inbox: two commits out of order, and one rolled back."""
        type_ = next(one.type for one in preset.columns if one.name == preset.options["event_id"])
        self.run.execute(
            sql.SQL(
                "CREATE TABLE public.outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
                " message_id {} NOT NULL UNIQUE, body jsonb, written_at timestamptz NOT NULL DEFAULT now())"
            ).format(sql.SQL(type_))  # type: ignore[arg-type]
        )
        for first, second in ((1, 2), (3, 4), (ROLLED_BACK, 6), (7, None)):
            with psycopg.connect(self.dsn) as slow:
                self._letter(slow, preset, first)
                if second is not None:
                    self._letter(self.run, preset, second)
                if first == ROLLED_BACK:
                    slow.rollback()

    def _letter(self, connection: psycopg.Connection[Any], preset: Preset, number: int) -> None:
        assert preset.example is not None
        message = preset.example.values[preset.options["event_id"]].replace("{n}", str(number))
        connection.execute("INSERT INTO public.outbox (message_id, body) VALUES (%s, '{}')", [message])

    def receive(self, preset: Preset, number: int, more: dict[str, str] | None = None) -> None:
        """One row of the inbox, as the library writes it before the message is consumed."""
        with psycopg.connect(self.dsn) as connection:
            insert(connection, preset, number, more=more)

    def consume(self, preset: Preset, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.receive(preset, number)
            self.mark(preset, number)

    def inbox_pipeline(self, preset: Preset) -> Pipeline:
        now = timezone.now()
        outbox = {
            "connection": self.connection,
            "table": "outbox",
            "coordinate": ["id"],
            "event_id": "message_id",
            "content": "body",
            "committed_at": "written_at",
            "grace_seconds": "1",
            NO_REUSE: "true",
        }
        source = source_create("shop", "postgresql_outbox", outbox, actor="ada", now=now)
        sink = sink_create("inbox", preset.kind, self.options(preset), actor="ada", now=now)
        return pipeline_create("shop-inbox", source, sink, actor="ada", now=now)

    # -- the product ---------------------------------------------------------------------------------------------------

    def options(self, preset: Preset, **given: Any) -> dict[str, Any]:
        """What a person gives, filled by the preset."""
        if preset.table.is_named_by_user:
            given = {"table": preset.table.name, **given}
        assert preset.example is not None
        given = {"connection": self.connection, **preset.example.given, **given}
        if preset.end == "source":
            given = {"grace_seconds": "1", **given}
        return preset_fill(preset.end, None, preset.name, given).options

    def test(self, preset: Preset, **given: Any) -> dict[str, Any]:
        """What a connection test finds, through the worker's own step."""
        intent = connection_test_request(
            actor="ada",
            now=timezone.now(),
            end=preset.end,
            kind=preset.kind,
            options=self.options(preset, **given),
            wake=False,
        )
        return dict(run(intent).result)

    def pipeline(self, preset: Preset, more: Mapping[str, Any] | None = None, **given: Any) -> Pipeline:
        """`more`: further options of the record; `given`: of the source."""
        now, options = timezone.now(), self.options(preset, **given)
        record = {
            "connection": self.connection,
            "table": RECORD,
            "coordinate": [f"at_{n}" for n, _ in enumerate(options["coordinate"])],
            "coordinate_spelling": options.get("coordinate_spelling", "bigint"),
            "content_format": options.get("content_format", "json"),
            **_kept(preset),
            **(more or {}),
        }
        source = source_create("shop", preset.kind, options, actor="ada", now=now)
        sink = sink_create("letters", "postgresql_table", record, actor="ada", now=now)
        return pipeline_create("shop-letters", source, sink, actor="ada", now=now)


def audit(pipeline: Pipeline) -> Audit:
    intent = audit_request(pipeline, actor="ada", now=timezone.now(), wake=False)
    run(intent)
    found: Audit = pipeline.audits.get(intent=intent)
    return found


def run(intent: Intent) -> Intent:
    intent_run(str(intent.id), "test")
    intent.refresh_from_db()
    assert intent.state == "done", (intent.state, intent.error)
    return intent


def place(preset: Preset) -> sql.Identifier:
    return sql.Identifier(preset.table.schema, preset.table.name)


def insert(
    connection: psycopg.Connection[Any],
    preset: Preset,
    number: int,
    with_nulls: bool = False,
    more: Mapping[str, str] | None = None,
) -> None:
    """One row as the library writes it: the columns that its statement names, and no others."""
    assert preset.example is not None
    values: dict[str, sql.Composable] = {
        name: sql.Literal(text.replace("{n}", str(number))) for name, text in preset.example.values.items()
    }
    values |= {name: sql.SQL(text) for name, text in preset.example.expressions.items()}  # type: ignore[arg-type]
    values |= {name: sql.Literal(text) for name, text in (more or {}).items()}
    if with_nulls:
        values |= {name: sql.SQL("NULL") for name in preset.example.nulls}
    connection.execute(
        sql.SQL("SET LOCAL search_path TO {}, public; INSERT INTO {} ({}) VALUES ({})").format(
            sql.Identifier(preset.table.schema), place(preset), _names(values), sql.SQL(", ").join(values.values())
        )
    )


def _column(column: Column) -> sql.Composable:
    parts: list[sql.Composable] = [sql.Identifier(column.name), sql.SQL(column.type)]  # type: ignore[arg-type]
    if column.default == "identity":
        parts.append(sql.SQL("GENERATED BY DEFAULT AS IDENTITY"))
    elif column.default:
        parts.append(sql.SQL("DEFAULT {}").format(sql.SQL(column.default)))  # type: ignore[arg-type]
    parts.append(sql.SQL("NULL" if column.null else "NOT NULL"))
    return sql.SQL(" ").join(parts)


def _names(names: Iterable[str]) -> sql.Composable:
    return sql.SQL(", ").join(sql.Identifier(name) for name in names)


def _kept(preset: Preset) -> dict[str, str]:
    """Which columns of the record hold key and content."""
    return {name: name for name in ("key", "content") if name in preset.options}


def kept_values(preset: Preset) -> list[tuple[str, sql.Composable]]:
    """What the record keeps of a row: its columns' names, and the values as SQL over the library's table."""
    values: list[tuple[str, sql.Composable]] = [
        (f"at_{n}", sql.Identifier(name)) for n, name in enumerate(preset.options["coordinate"])
    ]
    for name in _kept(preset):
        column, *path = preset.options[name].split("->")
        value: sql.Composable = sql.Identifier(column)
        if path:
            value = sql.SQL("{}::jsonb #>> {}").format(value, sql.Literal(path))
        values.append((name, value))
    return values


def _which(preset: Preset, number: int) -> tuple[sql.Composable, sql.Composable]:
    """A column and the value by which the row's number is found again."""
    assert preset.example is not None
    for name, text in preset.example.values.items():
        if "{n}" in text and name not in preset.example.nulls:
            return sql.SQL("{}::text").format(sql.Identifier(name)), sql.SQL("({}::{})::text").format(
                sql.Literal(text.replace("{n}", str(number))), _type(preset, name)
            )
    raise AssertionError(f"no value of {preset.name} has the row's number")


def _type(preset: Preset, name: str) -> sql.Composable:
    return sql.SQL(next(column.type for column in preset.columns if column.name == name))  # type: ignore[arg-type]
