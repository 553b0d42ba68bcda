"""Static files that installed packages bring along without being Django applications.

`vendor/plotly.min.js` is plotly.js (MIT licence), exactly the file of the pinned `plotly` package; htmx (0BSD licence)
comes from django-htmx by Django's own finder. Neither is copied into this repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

FILES = {"vendor/plotly.min.js": ("plotly", "package_data/plotly.min.js")}
"""Address below STATIC_URL -> the package and the file inside it."""


class PackageFile(FileSystemStorage):
    """One file under a name of our own."""

    prefix = ""

    def __init__(self, name: str, path: Path) -> None:
        super().__init__(location=str(path.parent))
        self.file_name, self.file_path = name, path

    def path(self, name: str) -> str:
        return str(self.file_path)


class PackageFilesFinder(BaseFinder):
    """Finds each of FILES in the package that is installed."""

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> str | list[str]:
        found = path_of(path) if path in FILES else None
        if find_all:
            return [str(found)] if found else []
        return str(found) if found else ""

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, PackageFile]]:
        for name in FILES:
            if found := path_of(name):
                yield name, PackageFile(name, found)


def path_of(name: str) -> Path | None:
    """Where the file lies; None where its package is not installed. The package is not imported for it."""
    package, inside = FILES[name]
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / inside
