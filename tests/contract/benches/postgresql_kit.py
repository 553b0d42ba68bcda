"""The sink kit, installed as it is today and upgraded from two of its releases."""

from __future__ import annotations

import functools
import secrets

import psycopg

from tests.contract.benches import Place
from tests.contract.benches.memory import FencedBench
from tests.contract.sink_engines import kit_make
from workers.connectors.sinks.kit import kit_sql
from workers.connectors.sinks.kit.install import kit_install
from workers.connectors.sinks.kit.releases import releases
from workers.connectors.sinks.kit.upgrade import kit_upgrade

CANNOT = {"test_repeated_acceptance_is_two_entries": "its identity key absorbs the second one"}


def make(place: Place, earlier: str = "") -> FencedBench:
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
    return FencedBench("postgresql_kit", options)


MAKES = {
    "": make,
    **{f"upgraded from {name}": functools.partial(make, earlier=name) for name in ("1.1", "3.3")},
}
