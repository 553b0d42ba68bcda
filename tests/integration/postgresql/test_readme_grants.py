"""The README's SQL makes a table's ground proven, as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from recovery_api.domain.grounds import Standing
from tests.integration.postgresql.mapped_tables import Bench, lane
from tests.pins import pin

README = Path(__file__).resolve().parents[3] / "README.md"
OUTBOX = """
CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id text, key text, op text, content jsonb
)
"""


def test_t6_the_readmes_grants_make_a_ground_proven_and_stop_a_chosen_number(bench: Bench) -> None:
    """T6: with exact SQL."""
    block = next(
        found for found in re.findall(r"```sql\n(.*?)```", README.read_text(), re.S) if "outbox_owner" in found
    )
    names = {name: f"{bench.run.info.dbname}_{name}" for name in ("outbox_owner", "shop", "auditor")}
    for login in (names["shop"], names["auditor"]):
        bench.run.execute(f"CREATE ROLE {login} LOGIN PASSWORD 'x'")
    bench.run.execute(f"GRANT CREATE ON SCHEMA public TO {names['shop']}; SET ROLE {names['shop']}")
    bench.run.execute(OUTBOX)
    bench.run.execute(f"RESET ROLE; REVOKE CREATE ON SCHEMA public FROM {names['shop']}")
    options = {"share_lock": True, "event_id": "event_id", "key": "key", "op": "op", "content": "content"}
    dsn = make_conninfo(bench.dsn, user=names["auditor"], password="x")

    bench.run.execute(re.sub(r"\b(outbox_owner|shop|auditor)\b", lambda found: names[found[0]], block))

    with psycopg.connect(make_conninfo(bench.dsn, user=names["shop"], password="x"), autocommit=True) as shop:
        drawn = shop.execute("INSERT INTO outbox (op, key) VALUES ('insert', 'a') RETURNING id").fetchone()
        assert drawn == (1,)
        for chosen in (
            "INSERT INTO outbox (id, key) OVERRIDING SYSTEM VALUE VALUES (7, 'x')",
            "MERGE INTO outbox USING (SELECT 7 AS n) s ON false"
            " WHEN NOT MATCHED THEN INSERT (id, key) OVERRIDING SYSTEM VALUE VALUES (s.n, 'x')",
            "SELECT setval('outbox_id_seq', 1, false)",
            "SELECT nextval('outbox_id_seq')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                shop.execute(chosen)
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege),
            shop.cursor().copy("COPY outbox (id, key) FROM STDIN"),
        ):
            pass
    source = bench.source(dsn=dsn, **options)
    safe = lane(pin(source)).safe
    assert (safe.ground, safe.standing, safe.weakness) == ("share lock", Standing.PROVEN, None)
    assert not any("proven" in weakness for weakness in source.test().weaknesses)
