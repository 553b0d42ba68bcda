"""docs/kinds.md: its table is what the kinds declare, and the files it names exist."""

from __future__ import annotations

import re
from pathlib import Path

from recovery_api.domain.abilities import DELIVERIES, READINGS, RECORDS
from recovery_api.domain.kinds import page
from recovery_api.domain.kinds.base import KINDS

PROJECT = Path(__file__).parents[2]
TEXT = (PROJECT / "docs" / "kinds.md").read_text(encoding="utf-8")


def test_table_is_what_the_kinds_declare() -> None:
    assert page.page(TEXT) == TEXT, "make kinds"
    ours = [kind for kind, module in KINDS.items() if module.startswith("recovery_api.")]
    assert all(f"`{kind}`" in page.table() for kind in ours)


def test_every_way_to_read_answer_and_deliver_has_its_words() -> None:
    assert (set(page.READ), set(page.ANSWERS), set(page.DRIVEN)) == (READINGS, RECORDS, DELIVERIES)


def test_files_that_it_names_exist() -> None:
    named = {path for path in re.findall(r"`([a-z_]+/[^`\s]*)`", TEXT) if "<" not in path}
    assert len(named) > 10
    assert sorted(path for path in named if not (PROJECT / path).exists()) == []


def test_ten_changes_are_told() -> None:
    _, _, changes = TEXT.partition("## Ten changes")
    assert len([line for line in changes.splitlines() if line.startswith("| ")]) == 10 + 2
