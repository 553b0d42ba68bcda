"""A second control plane: its own control database, registering the same two ends, and recovering from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from recovery_api.models import Recovery
from tests.chaos.arena import ROUND_SECONDS, Arena, Wrong
from workers.faults import Point

NAME = "second_plane"


def two_control_planes(arena: Arena, recovery: Recovery) -> str:
    """Another control plane recovers the same pipeline while ours stands before its fire: ours is fenced, by name."""
    process, gate = arena.held_worker(recovery, Point.BEFORE_FIRE)
    theirs = _recover_there(arena)
    if theirs["outcome"] != "exactly_once":
        raise Wrong(f"the second control plane ended with {theirs}")
    gate.touch()
    process.wait(ROUND_SECONDS)
    arena.settle(recovery)
    recovery.refresh_from_db()
    passed_by = theirs["first_generation"]  # a recovery in parts takes one for each; the first is what passed ours
    if recovery.outcome != "fenced" or f"generation {passed_by}" not in recovery.says:
        raise Wrong(f"ours should have been fenced by {passed_by}: {recovery.outcome} {recovery.says}")
    arena.outcomes = frozenset({"fenced"})
    return recovery.says


def _recover_there(arena: Arena) -> dict[str, Any]:
    environment = {**os.environ, "DATABASE_URL": _database(arena.servers.control.url), "REDIS_URL": ""}
    environment["FENCEPOST_EVIDENCE_DIR"] = str(arena.directory / "evidence" / NAME)
    asked = json.dumps({"source": arena.world.source_options, "sink": arena.world.sink_options})
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos.second_plane"],
        env=environment,
        input=asked,
        capture_output=True,
        text=True,
        timeout=ROUND_SECONDS,
    )
    if done.returncode:
        raise Wrong(f"the second control plane broke: {done.stderr[-500:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@cache
def _database(control: str) -> str:
    with psycopg.connect(control, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {NAME}".encode())
    path = str(conninfo_to_dict(control)["dbname"])
    return control.removesuffix(path) + NAME if control.endswith(path) else control.replace(f"/{path}", f"/{NAME}", 1)
