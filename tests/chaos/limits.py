"""Faults that an end's administrator makes: locks on the record, limits of a role, and a disk without room."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from recovery_api.models import Recovery
from tests.chaos.arena import ROUND_SECONDS, Arena, Wrong, intent_of
from workers.embedded.processes import wait_until
from workers.faults import Point

WAITS = """
SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'fencepost.accepted'::regclass
               AND mode <> 'AccessExclusiveLock')
"""


def record_vacuumed(arena: Arena, recovery: Recovery) -> str:
    """VACUUM FULL of the record between staging and fire: nothing of ours keeps it waiting."""
    process, gate = arena.held_worker(recovery, Point.BEFORE_FIRE)

    def vacuum() -> None:
        with psycopg.connect(arena.world.sink_dsn, autocommit=True) as sink:
            sink.execute("VACUUM FULL fencepost.accepted")

    rewriting = threading.Thread(target=vacuum, daemon=True)
    rewriting.start()
    rewriting.join(ROUND_SECONDS)
    if rewriting.is_alive():
        raise Wrong("VACUUM FULL waits for a recovery that stands before its fire")
    gate.touch()
    return f"the record was rewritten before the fire; the worker ended with {process.wait(ROUND_SECONDS)}"


def record_altered(arena: Arena, recovery: Recovery) -> str:
    """An ALTER TABLE holds the record when the fire comes: the fire waits for it, or names it and returns."""
    process, gate = arena.held_worker(recovery, Point.BEFORE_FIRE)
    is_short = arena.chance.random() < 0.5
    with psycopg.connect(arena.world.sink_dsn, application_name="migration") as migration:
        migration.execute("ALTER TABLE fencepost.accepted ADD CONSTRAINT chaos CHECK (true) NOT VALID")
        gate.touch()
        with psycopg.connect(arena.world.sink_dsn, autocommit=True) as looker:
            if not wait_until(lambda: looker.execute(WAITS).fetchone() == (True,), 60):
                raise Wrong("the fire did not wait for the ALTER TABLE")
        if not is_short:
            process.wait(ROUND_SECONDS)
            intent = intent_of(recovery)
            if "migration" not in str(intent.error):
                raise Wrong(f"the fire should have named the migration: {intent.state} {intent.error}")
        migration.rollback()
    process.wait(ROUND_SECONDS)
    return f"the fire {'waited for' if is_short else 'named, and gave up on,'} an ALTER TABLE of the record"


def evidence_disk_full(arena: Arena, recovery: Recovery) -> str:
    """The evidence of the recovery has no room when it is read under the claim; then there is room again."""
    process, gate = arena.held_worker(recovery, Point.AFTER_CLAIM)
    with disk_full(arena.directory / "evidence" / "recoveries") as how:
        gate.touch()
        code = process.wait(ROUND_SECONDS)
    return f"{how} while the record was read under the claim; the worker ended with {code}"


@contextmanager
def disk_full(folder: Path) -> Iterator[str]:
    """No room under `folder`: a full tmpfs over it where this process may mount one, else no right to write there."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=0777", "tmpfs", str(folder)]
    is_mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0
    if is_mounted:
        (folder / "filler").write_bytes(b"\0" * (64 * 1024 - shutil.disk_usage(folder).used))
    elif os.geteuid() != 0:
        folder.chmod(0o500)
    else:
        raise Wrong("root may not mount a tmpfs here, and no folder is closed to root: run as another account")
    try:
        yield "the evidence disk was full" if is_mounted else "the evidence folder could not be written"
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        else:
            folder.chmod(0o755)


def statement_timeout(arena: Arena, recovery: Recovery) -> str:
    """The role's statement_timeout ends the fire: told once, by name, its claim released; lifted, a new plan delivers."""
    with landing_for(arena, 3), setting(arena.world.sink_dsn, "statement_timeout", "1s"):
        arena.worker(intent_of(recovery), "first").wait(ROUND_SECONDS)
        recovery.refresh_from_db()
        if recovery.outcome != "refused" or "statement_timeout" not in recovery.says:
            raise Wrong(f"the limit should have been named: {recovery.state} {recovery.outcome} {recovery.says}")
    arena.again()
    return recovery.says


def transaction_timeout(arena: Arena, recovery: Recovery) -> str:
    """A transaction_timeout shorter than the reading and the fire, at both ends: nothing of ours ends by it."""
    with (
        landing_for(arena, 2),
        setting(arena.world.sink_dsn, "transaction_timeout", "1s"),
        setting(arena.world.source_dsn, "transaction_timeout", "1s"),
    ):
        code = arena.worker(intent_of(recovery), "first").wait(ROUND_SECONDS)
        recovery.refresh_from_db()
        if recovery.outcome != "exactly_once":
            raise Wrong(f"it should have ended in its first worker: {recovery.state} {recovery.problem}")
    return f"transaction_timeout of a second at both ends; the worker ended with {code}"


@contextmanager
def setting(dsn: str, name: str, value: str) -> Iterator[None]:
    """A setting of the whole database, for sessions that begin meanwhile."""
    database = str(conninfo_to_dict(dsn)["dbname"])
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE \"{database}\" SET {name} = '{value}'".encode())
        try:
            yield
        finally:
            connection.execute(f'ALTER DATABASE "{database}" RESET {name}'.encode())


@contextmanager
def landing_for(arena: Arena, seconds: float) -> Iterator[None]:
    """Every landing at the sink is at work for so long."""
    with psycopg.connect(arena.world.sink_dsn, autocommit=True) as sink:
        sink.execute(
            "CREATE OR REPLACE FUNCTION busy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " WHILE clock_timestamp() < statement_timestamp() + TG_ARGV[0]::interval LOOP END LOOP; RETURN NULL; END $$"
        )
        sink.execute(
            f"CREATE TRIGGER busy AFTER INSERT ON fencepost.accepted EXECUTE FUNCTION busy('{seconds} s')".encode()
        )
        try:
            yield
        finally:
            sink.execute("DROP TRIGGER busy ON fencepost.accepted")
