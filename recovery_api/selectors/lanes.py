"""Audits' lanes as far as they are asked for: what else an audit says of each is left with the database.

A lane is 2.4 kB as an audit tells it, so what reads many audits of many lanes asks for some members alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models.expressions import RawSQL
from django.db.models.fields.json import JSONField


def lanes_of(lanes: str, *members: str) -> str:
    """SQL of the column `lanes` with these members of each lane, as far as a lane has them. Names are ours, never a person's."""
    kept = " || ".join(
        f"CASE WHEN jsonb_exists(row, '{one}') THEN jsonb_build_object('{one}', row -> '{one}') ELSE '{{}}' END"
        for one in members
    )
    return f"(SELECT COALESCE(jsonb_object_agg(lane, {kept}), '{{}}') FROM jsonb_each({lanes}) AS of_lane (lane, row))"  # nosec B608


def lanes_asked(*members: str, of: Iterable[str] | None = None) -> RawSQL:
    """The same of an audit, and `of` these lanes alone; to be annotated where it is in no subquery: it is worked out for every
    row."""
    told = lanes_of('"recovery_api_audit"."lanes"', *members)
    if of is None:
        return RawSQL(told, (), output_field=JSONField())  # nosec B611
    return RawSQL(f"{told[:-1]} WHERE lane = ANY(%s))", (list(of),), output_field=JSONField())  # nosec B611
