"""The list of guards fits the code: each text stands once where it is said to, and each test is there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.guards.guard import Guard, GuardStale
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
    assert len(names) >= 40


def test_a_guard_whose_text_is_gone_or_stands_twice_is_refused() -> None:
    guard = Guard("nothing", "file.py", "if allowed:", "if True:", ("tests/x.py",))
    assert guard.taken_out("if allowed:\n    pass") == "if True:\n    pass"
    for text in ("", "if allowed: a\nif allowed: b"):
        with pytest.raises(GuardStale):
            guard.taken_out(text)
