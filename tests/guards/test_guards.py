"""The list of guards fits the code: each text stands once where it is said to, and each test is there."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from tests.guards.guard import Guard, GuardStale
from tests.guards.lanes import Lane
from tests.guards.listed import GUARDS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("guard", GUARDS, ids=[guard.protects for guard in GUARDS])
def test_a_guard_can_be_taken_out_of_the_code_as_it_is(guard: Guard) -> None:
    text = (ROOT / guard.file).read_text(encoding="utf-8")
    without = guard.taken_out(text)
    assert without != text
    if guard.file.endswith(".py"):
        ast.parse(without)


@pytest.mark.parametrize("guard", GUARDS, ids=[guard.protects for guard in GUARDS])
def test_the_tests_that_must_turn_red_are_there(guard: Guard) -> None:
    assert guard.tests
    for test in guard.tests:
        file, _, name = test.partition("::")
        functions = {
            node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(node, ast.FunctionDef)
        }
        assert not name or name.partition("[")[0] in functions, test


def test_the_list_is_long_enough_to_matter_and_names_each_protection_once() -> None:
    names = [guard.protects for guard in GUARDS]
    assert len(names) == len(set(names))
    assert len(names) >= 100


def test_a_guard_whose_text_is_gone_or_stands_twice_is_refused() -> None:
    guard = Guard("nothing", "file.py", "if allowed:", "if True:", ("tests/x.py",))
    assert guard.taken_out("if allowed:\n    pass") == "if True:\n    pass"
    for text in ("", "if allowed: a\nif allowed: b"):
        with pytest.raises(GuardStale):
            guard.taken_out(text)


def test_what_was_noticed_counts_until_the_entry_its_file_or_a_tests_file_changes(tmp_path: Path) -> None:
    guard = Guard("nothing", "file.py", "if allowed:", "if True:", ("test_x.py::test_y", "test_x.py::test_z"))
    (tmp_path / "file.py").write_text("if allowed: pass")
    (tmp_path / "test_x.py").write_text("")
    digests = [guard.digest(tmp_path), Guard("nothing", "file.py", "if allowed:", "", guard.tests).digest(tmp_path)]
    for name in ("file.py", "test_x.py"):
        (tmp_path / name).write_text(f"# {name}")
        digests.append(guard.digest(tmp_path))
    assert len(set(digests)) == 4


RUNS = {
    "is green": ("def test_it(): pass", True, False),
    "fails": ("def test_it(): assert False", False, True),
    "cannot be set up": (
        "import pytest\n@pytest.fixture\ndef it(): raise ValueError\ndef test_it(it): pass",
        False,
        False,
    ),
    "cannot be imported": ("import nowhere_at_all", False, False),
}


@pytest.mark.parametrize("case", RUNS)
def test_only_a_test_that_failed_while_it_ran_has_noticed_anything(case: str, tmp_path: Path) -> None:
    text, is_green, is_noticed = RUNS[case]
    (tmp_path / "test_it.py").write_text(text)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DJANGO_SETTINGS"))}
    said = Lane(tmp_path, own).tests_run(["test_it.py"], is_stopping=True)
    assert (said.is_green, bool(said.failed)) == (is_green, is_noticed), said.end
    assert bool(said.broken) is not is_green
