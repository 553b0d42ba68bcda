from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from recovery_api.domain.kinds.base import KINDS
from tests.contract.benches import KINDS_OF_TESTS, Place


@pytest.fixture(scope="module")
def contract_databases() -> dict[str, str]:
    """The module's database, once a bench has asked for it."""
    return {}


@pytest.fixture(autouse=True)
def _kinds_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in KINDS_OF_TESTS.items():
        monkeypatch.setitem(KINDS, name, module)


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
