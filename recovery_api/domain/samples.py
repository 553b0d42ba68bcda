"""A connection test's sample rows: seen by who asked for the test, and by nobody else.

A test may be of any table that its login can read, and is asked for by people who may read no contents; so what it
brought over is for the person who named the table, contents masked. Everybody else sees that there were rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def report_for(report: Mapping[str, Any] | None, reader: str) -> dict[str, Any] | None:
    """The report of a connection test as `reader` (a person's name; "" for nobody) may see it.

    >>> sample = {"says": "2 rows, the highest coordinate first.", "columns": ["key"], "rows": [{"key": "a"}, {}], "asked_by": "ada"}
    >>> report_for({"sample": sample}, "ada")["sample"]["rows"]
    [{'key': 'a'}, {}]
    >>> shown = report_for({"sample": sample}, "eve")["sample"]
    >>> shown["rows"], shown["says"]
    ([], '2 rows, the highest coordinate first. Only ada, who asked for the test, sees them.')
    """
    if report is None or not isinstance(sample := report.get("sample"), Mapping):
        return None if report is None else dict(report)
    asked_by = sample.get("asked_by")
    if not sample.get("rows") or (asked_by and asked_by == reader):
        return dict(report)
    who = f"Only {asked_by}, who asked for the test, sees them." if asked_by else "Test again to see them."
    return {**report, "sample": {**sample, "rows": [], "says": f"{sample.get('says', '')} {who}".strip()}}
