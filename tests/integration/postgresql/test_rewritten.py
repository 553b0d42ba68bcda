"""An older snapshot sees no row of a table that was truncated or rewritten: that is found, and never judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import LiteralString

import psycopg
import pytest

from recovery_api.domain.errors import SnapshotLost
from workers.connectors.postgresql.rewritten import rewritten_refuse


@pytest.mark.parametrize("rewrite", ["TRUNCATE told", "ALTER TABLE told ALTER id TYPE bigint"])
def test_a_table_that_lost_its_rows_to_an_older_snapshot_is_not_read(
    database_factory: Callable[[str], str], rewrite: LiteralString
) -> None:
    dsn = database_factory("rewritten")
    with psycopg.connect(dsn, autocommit=True) as owner, psycopg.connect(dsn) as reader:
        owner.execute("CREATE TABLE told (id integer); INSERT INTO told SELECT generate_series(1, 9)")
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        row = reader.execute("SELECT 'told'::regclass::oid::bigint").fetchone()
        assert row is not None
        owner.execute(rewrite)
        assert reader.execute("SELECT count(*) FROM told").fetchone() == (0,)  # nine rows were there
        with pytest.raises(SnapshotLost, match="told .*truncated or rewritten"):
            rewritten_refuse(reader, row)
        reader.rollback()
        reader.execute("SELECT count(*) FROM told")
        rewritten_refuse(reader, row)
