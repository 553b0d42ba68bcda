"""Templates are read by people: one element a line, and no line that runs off the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

TEMPLATES = Path(__file__).parents[2] / "templates"
LONGEST = 160


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_no_line_of_a_template_is_longer_than_a_screen(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [(number, len(line)) for number, line in enumerate(lines, 1) if len(line) > LONGEST] == []
