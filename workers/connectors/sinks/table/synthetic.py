"""Synthetic events that a mapped table can hold: texts, numbers and identifiers that follow from a coordinate."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from recovery_api.domain.frontiers import SINGLE_LANE
from workers.connectors.postgresql.coordinate_sql import INTEGERS
from workers.connectors.sinks.table.facts import WrittenColumn
from workers.connectors.sinks.table.writing import value_of_op


def event_make(
    options: Mapping[str, Any], columns: Mapping[str, WrittenColumn], coordinate: int, variant: str = ""
) -> dict[str, Any]:
    """One row of schemas.BATCH at `coordinate`, the same each time; `variant` gives it another content."""

    def said(option: str, text: str) -> str | None:
        if (name := options.get(option)) is None:
            return None
        base = columns[name].base
        if base in (*INTEGERS, "numeric"):
            return str(coordinate)
        return str(uuid.UUID(int=coordinate)) if base == "uuid" else text

    ops = value_of_op(options)
    return {
        "lane": SINGLE_LANE,
        "position": coordinate,
        "ordinal": 0,
        "event_id": said("event_id", f"drill-{coordinate}"),
        "op": ("insert" if "insert" in ops else next(iter(ops))) if options.get("op") else options["op_constant"],
        "key": said("key", f"drill-key-{coordinate}"),
        "content": _content(options, coordinate, variant),
    }


def _content(options: Mapping[str, Any], coordinate: int, variant: str) -> str | None:
    if not options.get("content"):
        return None
    told = {"drill": coordinate, **({"variant": variant} if variant else {})}
    match options["content_format"]:
        case "text":
            return json.dumps(json.dumps(told))
        case "bytes":
            return json.dumps(f"\\x{json.dumps(told).encode().hex()}")
        case _:
            return json.dumps(told)
