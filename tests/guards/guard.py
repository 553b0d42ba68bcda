"""A protection that matters, the small change that takes it out, and the tests that must then turn red.

One law: a guard counts as noticed only where the tests named are green with the protection and red without it. What was
noticed is kept with a digest of everything that it rests on, so that a change of any of that asks for it again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


class GuardStale(Exception):
    """The list does not fit the code: the text is not there, or stands there more than once."""


@dataclass(frozen=True, slots=True)
class Guard:
    """`protects`: what goes wrong without it, in a few words, unique. `here` stands once in `file`; `gone` replaces it.

    `tests`: node ids without parameters, at least one of which fails when the protection is out. `needs_spark`: they
    need the engine.
    """

    protects: str
    file: str
    here: str
    gone: str
    tests: tuple[str, ...]
    needs_spark: bool = False

    def taken_out(self, text: str) -> str:
        """`text`, the file's, without the protection. Raises: GuardStale."""
        found = text.count(self.here)
        if found != 1:
            raise GuardStale(f"{self.protects!r}: its text stands {found} times in {self.file}, and must stand once.")
        return text.replace(self.here, self.gone)

    def digest(self, root: Path) -> str:
        """Of the entry, its file and its tests' files: what a past run's word rests on."""
        files = sorted({self.file, *(test.partition("::")[0] for test in self.tests)})
        parts = [repr(self).encode(), *((root / file).read_bytes() for file in files)]
        return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:16]
