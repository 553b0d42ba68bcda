"""docs/errors.md is what the codes are, and every one says what to do."""

from __future__ import annotations

from pathlib import Path

from recovery_api import errors_page
from recovery_api.domain.errors import FencepostError
from recovery_api.exceptions import PROBLEMS

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


def test_page_lists_every_code_there_is_with_what_to_do() -> None:
    assert set(errors_page.DO) == {*PROBLEMS, *FencepostError._by_code}
    assert errors_page.page() == PAGE.read_text(encoding="utf-8"), "make errors"
