"""Headroom for a terminal."""

from __future__ import annotations

from datetime import timedelta

from recovery_api.domain.headroom.says import span_short
from recovery_api.rows import Row


def headroom_lines(row: Row, *, is_whole: bool = True) -> list[str]:
    """The word and its sentence; `is_whole`: each memory and the design check, too."""
    lines = [f"{row['pipeline']}: headroom {row['headroom']}", f"  {row['says']}"]
    if not is_whole:
        return lines
    for term in row["terms"]:
        left = "" if term["left_seconds"] is None else f", {_span(term['left_seconds'])} left"
        lines.append(f"  {term['forgets']}: {term['headroom']}{left}. {term['says']}")
    lines += [f"  {' '.join(row['pace']['says'])}"] if row["pace"]["says"] else []
    lines += [f"  {end['end']}, as last looked at: {end['says']}" for end in row["ends"]]
    for name, check in row["design"].items():
        spare = "" if check["spare_seconds"] is None else f", {_span(check['spare_seconds'])} to spare"
        missing = f" (not known: {', '.join(check['missing'])})" if check["missing"] else ""
        lines.append(f"  design check, {name} rate: {check['holds']}{spare}{missing}")
    lines.append(f"  as of {row['as_of'] or 'no audit'}")
    return lines


def _span(seconds: int) -> str:
    return span_short(timedelta(seconds=seconds))
