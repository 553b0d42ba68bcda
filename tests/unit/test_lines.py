"""The lines of commands: a name stays one word of a shell, and a fact is shown in words."""

from __future__ import annotations

import shlex

import pytest

from recovery_api.domain.commands import command_line
from recovery_api.domain.errors import SinkRestored
from recovery_api.management.lines import end_lines, plan_lines, report_lines

NAME = 'shop "q" o\'neil $HOME'


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("refused", ["plan", NAME, "--wait"]),
        ("approved", ["redrive", "p1", "--reason", "…", "--confirm", NAME, "--wait"]),
    ],
)
def test_u8_a_name_is_one_word_of_the_command_that_comes_next(state: str, words: list[str]) -> None:
    row = {
        "plan": "p1",
        "pipeline": NAME,
        "state": state,
        "frontier": None,
        "says": "",
        "batch": {},
        "classes": [],
        "conditions": [{"name": "order", "holds": True, "says": "It does."}],
        "attestations": [],
        "stranded": 0,
        "samples": [],
        "digest": "d",
        "approved_by": "ada",
        "approved_at": "now",
    }
    [line] = [line for line in plan_lines(row) if line.startswith("Next: ")]
    assert shlex.split(line.removeprefix("Next: ")) == ["manage.py", *words]


def test_u8_a_refusals_command_is_quoted_too() -> None:
    said = str(SinkRestored(NAME, "The sink lies behind what it said before."))
    assert command_line("sinks", "settle", NAME) in said


def test_u8_an_untested_ends_command_is_quoted() -> None:
    row = {"name": NAME, "kind": "k", "options": {}, "report": None}
    assert f"  Never tested: {command_line('sinks', 'test', NAME)}" in end_lines("sink", row)


def test_u8_facts_are_words_and_never_a_dump() -> None:
    report = {
        "facts": {"poolers": [{"name": "bouncer", "is_ours": True}], "types": {"id": {"type": "bigint"}}, "n": 1220},
        "problems": [],
        "weaknesses": [],
        "is_usable": True,
    }
    said = "\n".join(report_lines(report))
    assert "{" not in said and "[" not in said and "True" not in said
