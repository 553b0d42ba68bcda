"""What runs on an executor before anything of ours can be there: a look at its Python, its packages, and our archive.

The law: it imports nothing but the standard library, and is sent by value. A job that needs more than there is dies before
an error of its own could travel.
"""

from __future__ import annotations

from typing import Any

NEEDED = ("pyarrow", "numpy", "psycopg", "orjson")
"""Packages that a task imports. Spark's own are there, or nothing runs at all."""

OURS = "workers.evidence.ranges"
SHIPPED = (
    *("recovery_api/__init__.py", "recovery_api/domain", "workers/__init__.py", "workers/faults.py"),
    *("workers/evidence", "workers/connectors", "workers/spark"),
)
"""What tasks import, and its data."""


def code_files(root: str) -> list[tuple[str, bytes]]:
    """Name and content of each file that is sent, of the copy at `root`."""
    from pathlib import Path

    found = []
    for top in SHIPPED:
        place = Path(root, top)
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."):
                found.append((path.relative_to(root).as_posix(), path.read_bytes()))
    return found


def code_digest(files: list[tuple[str, bytes]]) -> str:
    """The name of one state of our code."""
    import hashlib

    digest = hashlib.sha256()
    for name, content in files:
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def executor_look(archive: str) -> dict[str, Any]:
    """What this Python process is, and what it lacks. `archive`: the name of what was sent.

    `place`: names the executor, by its host and its folder. `packages`: of each needed one its version, or why there is none.
    """
    import importlib
    import importlib.util
    import platform
    import socket
    from pathlib import Path

    packages = {}
    for name in NEEDED:
        try:
            module = importlib.import_module(name)
            packages[name] = {"version": str(getattr(module, "__version__", "")), "problem": ""}
        except Exception as error:  # whatever an import may raise
            packages[name] = {"version": "", "problem": f"{type(error).__name__}: {error}"[:200]}
    code = ""
    try:
        found = importlib.util.find_spec(OURS)
        if found is None or not found.origin:
            code = "it is not there"
        elif archive not in found.origin:
            root = str(Path(found.origin).parents[2])
            if f"fencepost-{code_digest(code_files(root))}.zip" != archive:
                code = f"it has another copy of it, at {root}"
    except Exception as error:
        code = "it is not there" if isinstance(error, ModuleNotFoundError) else f"{type(error).__name__}: {error}"[:200]
    return {
        "place": f"{socket.gethostname()}:{Path.cwd()}",
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "packages": packages,
        "code": code,
    }
