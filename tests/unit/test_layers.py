"""The directions that import contracts cannot say, and that the contracts themselves hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
DOMAIN = sorted((PROJECT / "recovery_api" / "domain").rglob("*.py"))


@pytest.mark.parametrize("path", DOMAIN, ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_domain_imports_the_standard_library_only(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        for name in names:
            is_allowed = name.partition(".")[0] in sys.stdlib_module_names or name.startswith("recovery_api.domain")
            assert is_allowed, f"{path.name}, line {node.lineno}: {name}"


def test_import_contracts_are_kept() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("package", ["recovery_api", "recovery_api.domain", "workers"])
def test_packages_that_executors_import_have_nothing_in_their_init(package: str) -> None:
    """Else a task would import the Celery application or Django with its first line."""
    tree = ast.parse((PROJECT.joinpath(*package.split(".")) / "__init__.py").read_text(encoding="utf-8"))
    assert [node for node in tree.body if not isinstance(node, ast.Expr)] == []


def test_what_executors_import_loads_neither_django_nor_celery() -> None:
    program = """
import importlib, pkgutil, sys
import workers.connectors, workers.evidence, workers.spark
for package in (workers.connectors, workers.evidence, workers.spark):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
print(sorted({"django", "celery", "rest_framework"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


SPELLED_LANE = re.compile(r"lane.*[\"']0[\"']|[\"']0[\"'].*lane", re.IGNORECASE)


def test_single_lane_is_spelled_in_one_place() -> None:
    product = [path for name in ("recovery_api", "dashboard", "workers") for path in (PROJECT / name).rglob("*.py")]
    found = [
        f"{path.relative_to(PROJECT)}: {line.strip()}"
        for path in product
        if "migrations" not in path.parts and path != PROJECT / "recovery_api" / "domain" / "frontiers.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if SPELLED_LANE.search(line) and ">>>" not in line
    ]
    assert found == []
