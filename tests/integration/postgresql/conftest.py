from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.postgresql.mapped_tables import Bench


@pytest.fixture
def bench(database_factory: Callable[[str], str], tmp_path: Path) -> Iterator[Bench]:
    """A fresh database with clients."""
    bench = Bench(database_factory("tables"), tmp_path)
    yield bench
    bench.close()
