from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contract.benches import Place


@pytest.fixture(scope="module")
def contract_databases() -> dict[str, str]:
    """The module's database, once a bench has asked for it."""
    return {}


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, contract_databases: dict[str, str]) -> Place:
    def database() -> str:
        if "dsn" not in contract_databases:
            factory: Callable[[str], str] = request.getfixturevalue("database_factory")
            contract_databases["dsn"] = factory("contract")
        return contract_databases["dsn"]

    return Place(tmp_path, database)
