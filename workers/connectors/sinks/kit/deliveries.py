"""Events as the JSON that `deliver_many` takes. A content passes through as the text it is: never through a float."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate


def events_as_json(events: pa.Table, head: Coordinate | None) -> str:
    """An array of the rows of schemas.BATCH, in their order."""
    rows = [
        {
            "lane": row["lane"],
            "position": str(row["position"]),
            "ordinal": str(row["ordinal"]),
            "event_id": row["event_id"],
            "op": row["op"],
            "key": row["key"],
            "head_position": head and str(head.position),
            "head_ordinal": head and str(head.ordinal),
        }
        | ({} if row["content"] is None else {"content": _Json(row["content"])})
        for row in events.to_pylist()
    ]
    return _json_with_contents(rows)


class _Json(str):
    """A content that is JSON text already."""


def _json_with_contents(rows: list[dict[str, Any]]) -> str:
    def member(name: str, value: Any) -> str:
        return f"{json.dumps(name)}: {value if isinstance(value, _Json) else json.dumps(value)}"

    return "[" + ", ".join("{" + ", ".join(member(*pair) for pair in row.items()) + "}" for row in rows) + "]"
