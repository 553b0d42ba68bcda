from __future__ import annotations

import os
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
            if not os.environ.get("DATABASE_URL"):
                pytest.fail("This kind needs DATABASE_URL. Run `make test ARGS=…`, which starts what is missing.")
            factory: Callable[[str], str] = request.getfixturevalue("lasting_database_factory")
            contract_databases["dsn"] = factory("contract")
        return contract_databases["dsn"]

    return Place(tmp_path, database)
