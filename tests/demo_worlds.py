"""Taking away what `workers.demo.world` built under a prefix of its own."""

from __future__ import annotations

import psycopg
from psycopg import sql


def world_drop(admin: str, prefix: str) -> None:
    """Drops the databases and roles of the world built under `prefix`."""
    assert prefix, "a world without a prefix is somebody's demo"
    with psycopg.connect(admin, autocommit=True) as cluster:
        for name in ("orders", "mail"):
            cluster.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(prefix + name)))
        named = cluster.execute("SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s)", (prefix,)).fetchall()
        for (role,) in named:
            cluster.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))
