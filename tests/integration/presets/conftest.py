from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.presets.library_table import Shop


@pytest.fixture(autouse=True)
def _settings(settings: Any, tmp_path: Path) -> None:
    settings.REDIS_URL = ""
    settings.FENCEPOST_EVIDENCE_DIR = tmp_path / "evidence"


@pytest.fixture(scope="session")
def shop_dsn(lasting_database_factory: Callable[[str], str]) -> str:
    return lasting_database_factory("libraries")


@pytest.fixture
def shop(transactional_db: None, shop_dsn: str, tmp_path: Path) -> Iterator[Shop]:
    """One database for a library's table and a record beside it, emptied after the test."""
    shop = Shop(shop_dsn, tmp_path)
    yield shop
    shop.close()
