"""Folders that an end is read from: only below those that are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from recovery_api.domain.errors import AccessDenied, NotFound
from workers.connectors.folders import FOLDERS_VARIABLE, files_of, folder_resolve


@pytest.fixture
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "allowed"
    (folder / "orders").mkdir(parents=True)
    monkeypatch.setenv(FOLDERS_VARIABLE, str(folder))
    return folder


def test_folder_below_an_allowed_one_is_read(allowed: Path) -> None:
    assert folder_resolve(str(allowed / "orders")) == (allowed / "orders").resolve()


@pytest.mark.parametrize("name", ["/etc", "allowed/../other", "relative", "link"])
def test_nothing_else_is_read(allowed: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "other").mkdir()
    (allowed / "link").symlink_to(tmp_path / "other")
    given = {"allowed/../other": str(allowed / ".." / "other"), "link": str(allowed / "link")}.get(name, name)
    with pytest.raises(AccessDenied, match=FOLDERS_VARIABLE):
        folder_resolve(given)


def test_nothing_is_read_where_nothing_is_named(allowed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDERS_VARIABLE)
    with pytest.raises(AccessDenied, match="no folder at all"):
        folder_resolve(str(allowed / "orders"))


def test_folder_that_is_not_there_is_told(allowed: Path) -> None:
    with pytest.raises(NotFound):
        folder_resolve(str(allowed / "letters"))


def test_files_in_writing_and_links_are_left_out(allowed: Path) -> None:
    folder = allowed / "orders"
    for name in ("b.jsonl", "a.jsonl", ".c.jsonl", "d.txt"):
        (folder / name).write_text("")
    (folder / "e.jsonl").symlink_to(folder / "d.txt")
    (folder / "f.jsonl").mkdir()
    assert [path.name for path in files_of(folder, "*.jsonl")] == ["a.jsonl", "b.jsonl"]
