"""A copy of state beside the history, on real ends: each key's content at the target and what the history says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.models import ImageAudit
from recovery_api.services.images import image_request
from tests.integration.recovery.test_grounds import NUMBERED, deliver, source
from tests.integration.recovery.world import World, run, world_make


@pytest.fixture
def mapped(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    """A numbered outbox and a mapped target that takes the whole content."""
    return mapped_make(database_factory, tmp_path)


def mapped_make(
    database_factory: Callable[[str], str], directory: Path, *, source_more: dict[str, Any] | None = None, **more: Any
) -> World:
    world = world_make(
        database_factory, directory, target=True, source_more={**NUMBERED, **(source_more or {})}, **more
    )
    source(world, "ALTER TABLE outbox DROP CONSTRAINT outbox_pkey, ADD PRIMARY KEY (id)")
    return world


def compare(world: World, frontier: str | None = None, keeps_base: bool = False) -> ImageAudit:
    asked = {"frontier": frontier, "keeps_base": keeps_base}
    intent = image_request(world.pipeline, actor="ada", now=timezone.now(), wake=False, **asked)  # type: ignore[arg-type]
    run(intent)
    return ImageAudit.objects.get(intent=intent)


def at_target(world: World, text: str) -> None:
    with psycopg.connect(world.sink_dsn) as connection:
        connection.execute(text.encode())


def event(world: World, key: str, content: Any, op: str = "insert") -> None:
    with psycopg.connect(world.source_dsn) as connection:
        body = None if content is None else json.dumps(content)
        connection.execute('INSERT INTO outbox (op, "key", content) VALUES (%s, %s, %s)', [op, key, body])


def named(image: ImageAudit) -> set[tuple[str, str]]:
    return {(row["word"], row["key"]) for row in image.sample}


def test_every_difference_is_told_by_its_word_and_key(mapped: World) -> None:
    for number, key in enumerate("abcdefg"):
        event(mapped, key, {"n": number, "amount": 1.50})
    event(mapped, "a", {"n": 99}, "update")
    event(mapped, "g", None, "delete")
    deliver(mapped, list("abcdefg"))
    clean = compare(mapped)
    assert clean.status == "mismatch_free", clean.says
    assert (clean.keys_count, clean.rows_count, clean.counts, clean.sample) == (7, 6, {}, [])
    at_target(mapped, """UPDATE mail SET content = '{"n": 7}' WHERE "key" = 'b'""")
    at_target(mapped, """DELETE FROM mail WHERE "key" = 'c'""")
    at_target(mapped, """INSERT INTO mail VALUES ('g', '{"n": 6}'), ('z', '{}')""")
    found = compare(mapped)
    assert (found.status, found.exit_code) == ("mismatched", 1), found.says
    assert named(found) == {("mismatched", "b"), ("missing", "c"), ("extra", "g"), ("extra", "z")}
    assert found.counts == {"mismatched": "1", "missing": "1", "extra": "2"}
