from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.recovery.test_ledger import numbered_make
from tests.integration.recovery.world import World, world_make


@pytest.fixture(autouse=True)
def _settings(settings: Any, tmp_path: Path) -> None:
    settings.REDIS_URL = ""
    settings.FENCEPOST_EVIDENCE_DIR = tmp_path / "evidence"


@pytest.fixture
def world(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    return world_make(database_factory, tmp_path)


@pytest.fixture
def world_with_target(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    return world_make(database_factory, tmp_path, target=True)


@pytest.fixture
def archived(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    """The numbered outbox, each audit of which writes to the archive."""
    world = numbered_make(database_factory, tmp_path)
    world.pipeline.options = {**world.pipeline.options, "is_archived": True, "archive_days": 7}
    world.pipeline.save()
    return world
