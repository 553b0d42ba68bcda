"""A kit in a schema of its own, with a login of each trade, and barriers made of what the server says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recovery_api.domain.kinds.postgresql_kit import KitOptions
from tests.contract.sink_engines import batch_make, digest_make, kit_make
from workers.connectors.registry import delivery_make
from workers.connectors.sinks.kit import Names, kit_sql, names_get
from workers.connectors.sinks.kit.install import kit_install
from workers.connectors.sinks.kit.releases import Release

PASSWORD = "password"
UNTIL_SECONDS = 30.0
CALL = "SELECT {schema}.deliver(%s, '0', %s, 0, %s, %s, %s, %s::jsonb)"


class KitWorld:
    """`relay`, `recoverer` and `auditor` are connection strings of logins that hold that one group.

    `prepare` is run before the kit is installed: the target, the effect. `release`: an earlier text of the kit.
    """

    def __init__(
        self, dsn: str, schema: str, directory: Path, prepare: str = "", release: Release | None = None, **options: Any
    ) -> None:
        database = str(conninfo_to_dict(dsn)["dbname"])
        self.dsn, self.schema = dsn, schema
        self.options = {"schema": schema, "prefix": database, "lock_wait_seconds": 1, **options}
        self.kit: KitOptions = kit_make(**self.options)
        self.names: Names = names_get(self.kit, database)
        self._held = ExitStack()
        self._pool = self._held.enter_context(ThreadPoolExecutor(16))
        self.admin = self.connect(dsn)
        if prepare:
            self.admin.execute(prepare)  # type: ignore[call-overload]
        if release is None:
            kit_install(self.admin, self.kit)
        else:
            with self.admin.transaction():
                self.admin.execute(kit_sql(self.kit, database, release.text))  # type: ignore[call-overload]
        self.relay, self.recoverer, self.auditor = (
            self._login(f"{database}_{trade}_login", group)
            for trade, group in (
                ("relay", self.names.relay),
                ("recoverer", self.names.recoverer),
                ("auditor", self.names.auditor),
            )
        )
        self.sink = self.sink_as(self.recoverer, directory)

    def sink_as(self, login: str, directory: Path) -> Any:
        """The connector, speaking as this login."""
        reference = directory / "login"
        reference.write_text(login)
        return delivery_make("postgresql_kit", {"connection": f"file:{reference}", **self.options})

    def connect(self, dsn: str, application: str = "test", autocommit: bool = True) -> psycopg.Connection[Any]:
        connection = psycopg.connect(dsn, autocommit=autocommit, application_name=application)
        self._held.callback(connection.close)
        return connection

    def close(self) -> None:
        self._held.close()

    def one(self, connection: psycopg.Connection[Any], query: str, *arguments: Any) -> Any:
        """The first row, or its only column."""
        row = connection.execute(self.sql(query), arguments or None).fetchone()
        assert row is not None
        return row[0] if len(row) == 1 else row

    def sql(self, query: str, **names: str) -> sql.Composed:
        identifiers = {name: sql.Identifier(value) for name, value in {"schema": self.schema, **names}.items()}
        return sql.SQL(query).format(**identifiers)  # type: ignore[arg-type]

    def later(self, call: Callable[[], Any]) -> Future[Any]:
        return self._pool.submit(call)

    def login_make(self, name: str, group: str) -> str:
        """One more login that holds this group."""
        return self._login(f"{conninfo_to_dict(self.dsn)['dbname']}_{name}_login", group)

    # -- the protocol, from a login of each trade -------------------------------------------------------------------

    def relay_start(self, connection: psycopg.Connection[Any]) -> int:
        answer, generation = self.one(connection, "SELECT answer, generation FROM {schema}.relay_start('relay')")
        assert answer == "started"
        return int(generation)

    def deliver(
        self,
        connection: psycopg.Connection[Any],
        generation: int,
        position: int,
        content: str | None = None,
        op: str = "insert",
        key: str | None = None,
    ) -> str:
        """Without content: the event that `batch_make` makes of this coordinate."""
        if content is None and op != "delete":
            content = f'{{"number": {position}.50}}'
        arguments = (generation, position, f"event {position}", op, key or f"key {position % 3}", content)
        word: str = self.one(connection, CALL, *arguments)
        return word

    def claim(self) -> int:
        generation = int(self.sink.generation_allocate("recoverer", "test").data["generation"])
        assert self.sink.claim(generation, {}).word == "granted"
        return generation

    def arm(self, generation: int, batch: pa.RecordBatch) -> int:
        answer = self.sink.arm(generation, digest_make(batch), {})
        assert answer.word == "armed"
        return int(answer.data["arm"])

    def staged(self, *coordinates: int) -> tuple[int, int]:
        """A claim whose batch is armed and staged: its generation and arm."""
        generation, batch = self.claim(), batch_make(*coordinates)
        arm = self.arm(generation, batch)
        self.sink.stage(generation, arm, iter([batch]))
        return generation, arm

    def record(self) -> list[tuple[int, int]]:
        query = self.sql("SELECT position, generation FROM {schema}.accepted ORDER BY entry")
        return [(position, generation) for position, generation in self.admin.execute(query)]

    # -- barriers ---------------------------------------------------------------------------------------------------

    def until_waiting(self, pid: int) -> None:
        """Returns once that session waits for a lock."""
        self.until("SELECT EXISTS (SELECT FROM pg_locks WHERE pid = %s AND NOT granted)", pid)

    def until(self, query: str, *arguments: Any) -> None:
        """Returns once the server answers true."""
        ticks = threading.Event()
        for _ in range(int(UNTIL_SECONDS * 100)):
            if self.one(self.admin, query, *arguments):
                return
            ticks.wait(0.01)
        raise AssertionError(f"never became true: {query}")

    def _login(self, name: str, group: str) -> str:
        self.admin.execute(
            sql.SQL(
                "DO $$ BEGIN CREATE ROLE {name} LOGIN PASSWORD {password}; EXCEPTION WHEN duplicate_object THEN NULL; END $$;"
                " GRANT {group} TO {name}"
            ).format(name=sql.Identifier(name), password=sql.Literal(PASSWORD), group=sql.Identifier(group))
        )
        return make_conninfo(self.dsn, user=name, password=PASSWORD)


def worlds(dsn: str, directory: Path) -> Iterator[Callable[..., KitWorld]]:
    """`make(**options) -> world`: each in a schema of its own, closed with the test."""
    made: list[KitWorld] = []

    def make(**options: Any) -> KitWorld:
        with psycopg.connect(dsn) as connection:
            row = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'kit%'").fetchone()
        assert row is not None
        place = directory / f"world {len(made)}"
        place.mkdir()
        made.append(KitWorld(dsn, f"kit {row[0]}", place, **options))
        return made[-1]

    yield make
    for world in made:
        world.close()
