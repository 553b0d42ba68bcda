"""The sink kit, installed as it is today and upgraded from three of its releases."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from recovery_api.domain.kinds import kind_get
from tests.contract.benches import Place
from tests.contract.benches.memory import FencedBench
from tests.contract.sink_engines import kit_make, rows_make
from workers.connectors.sinks.kit import kit_sql
from workers.connectors.sinks.kit.deliveries import events_as_json
from workers.connectors.sinks.kit.install import kit_install
from workers.connectors.sinks.kit.releases import releases
from workers.connectors.sinks.kit.upgrade import kit_upgrade

EXAMPLES = [
    kind_get("postgresql_kit").example,
    {**kind_get("postgresql_kit").example, "target": "orders", "target_key": "number", "target_content": "content"},
]

CANNOT = {"test_repeated_acceptance_is_two_entries": "its identity key absorbs the second one"}


class KitBench(FencedBench):
    """The kit, and relays whose transactions stay open."""

    def __init__(self, dsn: str, options: Mapping[str, Any]) -> None:
        super().__init__("postgresql_kit", options)
        self.dsn = dsn

    @contextmanager
    def transaction(self) -> Iterator[KitTransaction]:
        with psycopg.connect(self.dsn) as connection:
            yield KitTransaction(connection, self.options["schema"])


@dataclass(frozen=True)
class KitTransaction:
    connection: psycopg.Connection[Any]
    schema: str

    def accept(self, events: Iterable[Mapping[str, Any]]) -> None:
        rows = events_as_json(pa.Table.from_batches([rows_make([dict(event) for event in events])]), None)
        query = sql.SQL("SELECT {}.deliver_many(0, %s::jsonb)").format(sql.Identifier(self.schema))
        answered = self.connection.execute(query, (rows,)).fetchone()
        assert answered is not None and set(answered[0]) == {"accepted"}

    def savepoint(self) -> AbstractContextManager[Any]:
        return self.connection.transaction()


def make(place: Place, earlier: str = "") -> KitBench:
    dsn, schema = place.database(), f"c_{secrets.token_hex(4)}"
    (place.folder / "kit_dsn").write_text(dsn)
    with psycopg.connect(dsn, autocommit=True) as admin:
        prefix = admin.info.dbname
        kit = kit_make(schema=schema, prefix=prefix, batch_limit=5)
        if earlier:
            with admin.transaction():
                release = next(release for release in releases() if release.name == earlier)
                admin.execute(kit_sql(kit, prefix, release.text))  # type: ignore[call-overload]
            assert kit_upgrade(admin, kit)["upgraded"]
        else:
            kit_install(admin, kit)
    options = {"connection": f"file:{place.folder / 'kit_dsn'}", "schema": schema, "prefix": prefix}
    return KitBench(dsn, options)


MAKES = {
    "": make,
    **{f"upgraded from {name}": functools.partial(make, earlier=name) for name in ("1.1", "3.3", "4.1")},
}
