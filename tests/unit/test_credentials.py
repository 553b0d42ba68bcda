"""A reference reaches what was put there for an end, and nothing else."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from recovery_api.domain.errors import AccessDenied
from workers.connectors.credentials import FOLDERS_VARIABLE, OWN_SETTINGS, PREFIXES_VARIABLE, credential_resolve

DSN = "host=db password=hush"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An allowed folder; what lies beside it is not allowed."""
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    monkeypatch.setenv(FOLDERS_VARIABLE, str(allowed))
    return allowed


def refusal_of(reference: str) -> str:
    with pytest.raises(AccessDenied) as raised:
        credential_resolve(reference)
    said = str(raised.value)
    assert "hush" not in said and said.startswith(reference.split(":")[0])
    return said


def test_s1_a_variable_is_resolved_by_its_prefix_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEPOST_END_ORDERS", DSN)
    assert credential_resolve("env:FENCEPOST_END_ORDERS") == DSN
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    assert "FENCEPOST_END_" in refusal_of("env:AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv(PREFIXES_VARIABLE, "OURS_, THEIRS_")
    monkeypatch.setenv("THEIRS_MAIL", DSN)
    assert credential_resolve("env:THEIRS_MAIL") == DSN
    refusal_of("env:FENCEPOST_END_ORDERS")
    monkeypatch.setenv(PREFIXES_VARIABLE, "")
    refusal_of("env:THEIRS_MAIL")


@pytest.mark.parametrize("name", sorted(OWN_SETTINGS))
def test_s1_the_products_own_settings_are_never_resolved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "postgresql://fencepost:hush@control/fencepost")
    monkeypatch.setenv(PREFIXES_VARIABLE, "DATABASE,REDIS,SECRET,SPARK")
    assert "a setting of this product" in refusal_of(f"env:{name}")


def test_s8_a_file_is_read_below_an_allowed_folder_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "orders").write_text(DSN + "\n")
    assert credential_resolve(f"file:{folder / 'orders'}") == DSN
    outside = folder.parent / "secret_key"
    outside.write_text("hush")
    (folder / "link").symlink_to(outside)
    for path in (outside, folder / "link", folder / ".." / "secret_key", "/etc/passwd", "/no/such/file", "relative"):
        assert "only files below" in refusal_of(f"file:{path}")
    (folder / "data").mkdir()
    (folder / "data" / "mail").write_text(DSN)
    (folder / "mail").symlink_to(folder / "data" / "mail")  # as orchestrators mount secrets
    assert credential_resolve(f"file:{folder / 'mail'}") == DSN
    assert "cannot be read" in refusal_of(f"file:{folder / 'missing'}")
    monkeypatch.delenv(FOLDERS_VARIABLE)
    assert "only files below /run/secrets" in refusal_of(f"file:{folder / 'orders'}")


def test_s8_only_a_regular_file_of_at_most_64_kib_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "long").write_bytes(b"x" * 65537)
    assert "larger than 64 KiB" in refusal_of(f"file:{folder / 'long'}")
    (folder / "longest").write_bytes(b"x" * 65536)
    assert len(credential_resolve(f"file:{folder / 'longest'}")) == 65536
    os.mkfifo(folder / "pipe")
    assert "not a regular file" in refusal_of(f"file:{folder / 'pipe'}")
    refusal_of(f"file:{folder}")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
        refusal_of(f"file:{folder / 'socket'}")
    monkeypatch.setenv(FOLDERS_VARIABLE, "/dev")
    assert "not a regular file" in refusal_of("file:/dev/zero")


def test_s8_what_is_no_text_is_not_quoted(folder: Path) -> None:
    (folder / "binary").write_bytes(b"hush\xff")
    with pytest.raises(AccessDenied) as raised:
        credential_resolve(f"file:{folder / 'binary'}")
    assert raised.value.__cause__ is None
    (folder / "empty").write_text("\n")
    assert "empty" in refusal_of(f"file:{folder / 'empty'}")
