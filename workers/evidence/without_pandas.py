"""Keeps Arrow from importing pandas, in a process that gives one short answer and ends."""

from __future__ import annotations

import importlib.abc
import sys
from typing import Any


class _WithoutPandas(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)


def leave_pandas_out() -> None:
    """Arrow imports pandas, where it is installed, when it first looks at a list; half a second and 60 MB for nothing.

    It asks once a process, so this is for a process in which nothing uses pandas.
    """
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
