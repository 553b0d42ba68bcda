"""The two fenced sinks as the protocol cases drive them: the in-memory kind, and the kit over real connections."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.json import Jsonb

from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_kit import KitOptions, kit_options
from workers.connectors.readings import BatchDigest, CoordinateRange, Width
from workers.connectors.registry import delivery_make
from workers.connectors.sinks.kit import kit_sql, names_get, staging
from workers.connectors.sinks.kit.install import kit_install
from workers.connectors.sinks.kit.releases import Release
from workers.connectors.sinks.kit.upgrade import kit_upgrade
from workers.evidence import schemas
from workers.evidence.canonical import ABSENT, batch_digest, content_digest, content_parse, entry_digest, payload_digest

LANE = "0"


def kit_make(**options: Any) -> KitOptions:
    """The kit that these options describe."""
    return kit_options(options_parse(kind_get("postgresql_kit"), {"connection": "env:UNUSED", **options}))


def event_make(coordinate: int, **changes: Any) -> dict[str, Any]:
    """One event of schemas.BATCH; the same coordinate always has the same content."""
    return {
        "lane": LANE,
        "position": coordinate,
        "ordinal": 0,
        "event_id": f"event {coordinate}",
        "op": "insert",
        "key": f"key {coordinate % 3}",
        "content": f'{{"number": {coordinate}.50}}',
    } | changes


def batch_make(*coordinates: int) -> pa.RecordBatch:
    return rows_make([event_make(coordinate) for coordinate in coordinates])


def rows_make(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=schemas.BATCH)


def digest_make(batch: pa.RecordBatch) -> BatchDigest:
    """What a recoverer arms, computed apart from the sink."""
    digests = []
    for row in batch.to_pylist():
        content = ABSENT if row["content"] is None else content_parse(row["content"])
        payload = payload_digest(row["op"], row["key"], content_digest(content, row["op"]))
        digests.append(entry_digest(row["lane"], row["position"], row["ordinal"], payload))
    return BatchDigest(len(digests), batch_digest(pa.array(digests, pa.binary(32))))


EMPTY = """
    ALTER TABLE {}.accepted DISABLE TRIGGER USER; ALTER TABLE {}.standing DISABLE TRIGGER USER;
    ALTER TABLE {}.counter DISABLE TRIGGER USER; ALTER TABLE {}.generation DISABLE TRIGGER USER;
    ALTER TABLE {}.claim DISABLE TRIGGER USER;
    TRUNCATE {}.accepted, {}.altered, {}.staged, {}.applied, {}.hand_over, {}.claim, {}.generation RESTART IDENTITY;
    UPDATE {}.standing SET fence = 0;
    UPDATE {}.counter SET allocated = 0;
    INSERT INTO {}.generation (number, purpose, given_name) VALUES (0, 'relay', 'first relay')"""


class MemoryEngine:
    """A fresh in-memory store a case."""

    def __init__(self, generations: int) -> None:
        self.sink = delivery_make("memory", {"name": f"conformance {secrets.token_hex(8)}"})
        for number in range(generations):
            self.sink.generation_allocate("recoverer", f"case {number}")

    def begin(self, generation: int) -> str:
        return self.sink.begin(generation).word

    def deliver(self, generation: int, coordinate: int) -> str:
        return self.sink.deliver(generation, pa.Table.from_batches([batch_make(coordinate)]))[0]

    def claim(self, generation: int) -> str:
        return self.sink.claim(generation, {}).word

    def arm(self, generation: int, batch: pa.RecordBatch) -> tuple[str, int | None]:
        answer = self.sink.arm(generation, digest_make(batch), {})
        return answer.word, answer.data.get("arm")

    def stage(self, generation: int, arm: int, batch: pa.RecordBatch) -> None:
        self.sink.stage(generation, arm, iter([batch]))

    def fire(self, generation: int, arm: int) -> str:
        return self.sink.fire(generation, arm).word

    def crash_in_fire(self, generation: int, arm: int) -> None:
        """A fire here is one step under a lock: dying before its commit is dying before the call."""

    def accepted(self) -> list[list[int]]:
        with self.sink.hold_snapshot() as reading:
            batches = self.sink.read_accepted(reading, CoordinateRange(LANE, None, None), Width.FULL)
            rows = [row for batch in batches for row in batch.to_pylist()]
        return [[row["position"], row["generation"]] for row in sorted(rows, key=lambda row: row["entry"])]

    def fence(self) -> int:
        return self.sink.state().fence


class KitEngine:
    """The kit, spoken to by a login that is relay and recoverer at once; emptied before each case.

    One login for both, because the cases let a relay deliver under the generation a recoverer claimed with.
    """

    def __init__(self, admin: psycopg.Connection[Any], login: str, schema: str) -> None:
        self.admin, self.dsn, self.schema = admin, login, schema
        self.connection = psycopg.connect(login, autocommit=True)

    def __call__(self, generations: int) -> KitEngine:
        """The same engine with an empty record and the fence at 0: past the guards, as only a superuser can."""
        self.admin.execute(self._sql(EMPTY.replace("{}", "{0}")))
        for number in range(generations):
            self._row("SELECT {}.generation_allocate('recoverer', %s)", f"case {number}")
        return self

    def begin(self, generation: int) -> str:
        return self._row("SELECT answer FROM {}.begin(%s)", generation)

    def deliver(self, generation: int, coordinate: int) -> str:
        event = event_make(coordinate)
        return self._row("SELECT {}.deliver(%s, %s, %s, %s, %s, %s, %s, %s::jsonb)", generation, *event.values())

    def claim(self, generation: int) -> str:
        return self._row("SELECT answer FROM {}.claim(%s, %s)", generation, Jsonb({}))

    def arm(self, generation: int, batch: pa.RecordBatch) -> tuple[str, int | None]:
        armed = digest_make(batch)
        query = "SELECT answer || ' ' || coalesce(detail ->> 'arm', '') FROM {}.arm(%s, %s, %s, NULL)"
        word, _, arm = self._row(query, generation, armed.count, armed.digest).rpartition(" ")
        return word, int(arm) if arm else None

    def stage(self, generation: int, arm: int, batch: pa.RecordBatch) -> None:
        staging.batch_stage(self.connection, self.schema, generation, arm, batch)

    def fire(self, generation: int, arm: int) -> str:
        return self._row("SELECT answer FROM {}.fire(%s, %s)", generation, arm)

    def crash_in_fire(self, generation: int, arm: int) -> None:
        dying = psycopg.connect(self.dsn)
        dying.execute(self._sql("SELECT {}.fire(%s, %s)"), (generation, arm))
        dying.close()  # its transaction is open: the server rolls it back

    def accepted(self) -> list[list[int]]:
        query = self._sql("SELECT position, generation FROM {}.accepted ORDER BY entry")
        return [list(row) for row in self.connection.execute(query)]

    def fence(self) -> int:
        return self._row("SELECT fence FROM {}.state()")

    def _row(self, query: str, *arguments: Any) -> Any:
        row = self.connection.execute(self._sql(query), arguments or None).fetchone()
        assert row is not None
        return row[0]

    def _sql(self, query: str) -> sql.Composed:
        return sql.SQL(query).format(sql.Identifier(self.schema))  # type: ignore[arg-type]


def kit_upgrade_from(admin: psycopg.Connection[Any], kit: KitOptions, release: Release) -> None:
    """Installs an earlier text of the kit, delivers through it, and upgrades it in place."""
    schema = sql.Identifier(kit.schema)
    with admin.transaction():
        admin.execute(kit_sql(kit, admin.info.dbname, release.text))  # type: ignore[call-overload]
    admin.execute(sql.SQL("SELECT {}.deliver(0, '0', 1, 0, 'event 1', 'insert', 'key 1', '{{}}')").format(schema))
    assert kit_upgrade(admin, kit)["upgraded"]


@contextmanager
def kit_engine_open(dsn: str, release: Release | None = None) -> Iterator[KitEngine]:
    """The engine of a kit installed in this fresh database; `release`: upgraded from that text of it."""
    database = str(conninfo_to_dict(dsn)["dbname"])
    with psycopg.connect(dsn, autocommit=True) as admin:
        kit = kit_make(schema="fencepost" if release is None else f"from {release.name}")
        if release is None:
            kit_install(admin, kit)
        else:
            kit_upgrade_from(admin, kit, release)
        names = names_get(kit, database)
        login = f"{names.owner}_conformer"
        admin.execute(
            sql.SQL("CREATE ROLE {login} LOGIN PASSWORD 'conformer' IN ROLE {relay}, {recoverer}").format(
                login=sql.Identifier(login),
                relay=sql.Identifier(names.relay),
                recoverer=sql.Identifier(names.recoverer),
            )
        )
        engine = KitEngine(admin, make_conninfo(dsn, user=login, password="conformer"), kit.schema)
        with engine.connection:
            yield engine
