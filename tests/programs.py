"""What some tests need of the machine: programs, a server's setting. Missing, it is named; in CI that is a failure, not a skip."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def program_missing(says: str) -> NoReturn:
    """Skips the test and says what to install; fails it where CI is set, since CI installs what its tests need."""
    if os.environ.get("CI"):
        pytest.fail(f"CI must have it: {says}", pytrace=False)
    pytest.skip(says)
