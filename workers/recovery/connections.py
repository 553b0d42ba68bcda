"""A connection test: open one end, say what is there. Changes nothing but the report."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.utils import timezone

from recovery_api.domain.errors import FencepostError
from recovery_api.models import Intent
from recovery_api.services.ends import connection_test_record
from workers.connectors.registry import record_make, source_make


def end_test(intent: Intent, report: Any) -> None:
    """Test the intent's end and end the intent with what was found. An end that cannot be reached is a finding too."""
    end = intent.source or intent.sink
    is_sink = intent.sink is not None or intent.arguments.get("end") == "sink"
    kind = end.kind if end else intent.arguments["kind"]
    options = end.options if end else intent.arguments["options"]
    report(step="connecting")
    capability = None
    try:
        if is_sink:
            record = record_make(kind, options)
            found = asdict(record.test())
            if found["is_usable"]:
                capability = asdict(record.capability())
        else:
            found = asdict(source_make(kind, options).test())
    except FencepostError as error:
        found = {"is_usable": False, "facts": {"code": error.code}, "problems": [str(error)], "weaknesses": []}
    connection_test_record(intent, found, timezone.now(), capability)
