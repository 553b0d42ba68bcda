"""What is known against our packages is told apart from what could not be asked."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("audit_code", PROJECT / ".ci" / "audit_code.py")
assert _spec is not None and _spec.loader is not None
audit_code: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(audit_code)

KNOWN = {
    "id": "PYSEC-2099-1",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "leaky"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.0"}]}],
        }
    ],
    "published": "2099-01-01T00:00:00Z",
}


class Database(BaseHTTPRequestHandler):
    """An OSV server that knows one vulnerability."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = {"vulns": [KNOWN]} if asked["package"]["name"] == "leaky" else {}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(known).encode())

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def database() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Database) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def installed(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / f"{name}-1.0.dist-info").mkdir()
        (folder / f"{name}-1.0.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
    return ["--path", str(folder), "--vulnerability-service", "osv"]


def test_a_known_vulnerability_is_found(tmp_path: Path, database: str) -> None:
    report, said = audit_code.packages_audit([*installed(tmp_path, "leaky", "sound"), "--osv-url", database])
    lines, has_found = audit_code.packages_said(report, said)
    assert has_found and "leaky 1.0: PYSEC-2099-1, mended in 2.0" in lines[0]
    assert "2 packages asked about, 1 vulnerabilities known" in lines[1]


def test_no_network_is_no_data_and_no_failure(tmp_path: Path) -> None:
    report, said = audit_code.packages_audit([*installed(tmp_path, "sound"), "--osv-url", "http://127.0.0.1:1/"])
    lines, has_found = audit_code.packages_said(report, said)
    assert not has_found and len(lines) == 1 and "no data" in lines[0]


def test_a_registry_without_data_is_not_called_clean() -> None:
    skipped = {"dependencies": [{"name": "django", "skip_reason": "not found"}]}
    lines, has_found = audit_code.packages_said(skipped, "No known vulnerabilities found")
    assert not has_found and lines == ["pip-audit: no data for any of 1 packages (not found)."]
