"""Synthetic events that a mapped table can hold: texts, numbers and identifiers that follow from a coordinate."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from recovery_api.domain.frontiers import SINGLE_LANE
from workers.connectors.postgresql.coordinate_sql import INTEGERS
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.sinks.table.facts import WrittenColumn
from workers.connectors.sinks.table.writing import column_mapped, value_of_op


def event_make(
    mapped: MappedTable, columns: Mapping[str, WrittenColumn], coordinate: int, variant: str = ""
) -> dict[str, Any]:
    """One row of schemas.BATCH at `coordinate`, the same each time; `variant` gives it another content."""

    def said(option: str, text: str) -> str | None:
        if (term := mapped.term(option)) is not None and term.is_constant:
            return term.text
        if (name := column_mapped(mapped, option)) is None:
            return None
        base = columns[name].base
        if base in (*INTEGERS, "numeric"):
            return str(coordinate)
        return str(uuid.UUID(int=coordinate)) if base == "uuid" else text

    term, ops = mapped.term("op"), value_of_op(mapped.options)
    op = "insert" if "insert" in ops else next(iter(ops))
    if term is None or term.text is not None:
        op = mapped.options["op_constant"] if term is None else mapped.op_values.get(str(term.text), op)
    return {
        "lane": SINGLE_LANE,
        "position": coordinate,
        "ordinal": 0,
        "event_id": said("event_id", f"drill-{coordinate}"),
        "op": op,
        "key": said("key", f"drill-key-{coordinate}"),
        "content": _content(mapped, coordinate, variant),
    }


def _content(mapped: MappedTable, coordinate: int, variant: str) -> str | None:
    if mapped.term("content") is None:
        return None
    told = {"drill": coordinate, **({"variant": variant} if variant else {})}
    match mapped.options["content_format"]:
        case "text" | "text_bytes":
            return json.dumps(json.dumps(told))
        case "bytes" | "hex" | "base64":
            return json.dumps(f"\\x{json.dumps(told).encode().hex()}")
        case _:
            return json.dumps(told)
