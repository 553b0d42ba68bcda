from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.kit.kit_world import KitWorld, worlds


@pytest.fixture(scope="session")
def kit_dsn(lasting_database_factory: Callable[[str], str]) -> str:
    return lasting_database_factory("kit")


@pytest.fixture
def world_make(kit_dsn: str, tmp_path: Path) -> Iterator[Callable[..., KitWorld]]:
    yield from worlds(kit_dsn, tmp_path)


@pytest.fixture
def world(world_make: Callable[..., KitWorld]) -> KitWorld:
    return world_make()
