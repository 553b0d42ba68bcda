"""What `freeze` and `unfreeze` are told alike: one pipeline, or everything, and why."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.errors import BadInput
from recovery_api.models import Pipeline
from recovery_api.selectors.ends import pipeline_get


def what_arguments(parser: CommandParser) -> None:
    parser.add_argument("pipeline", nargs="?", help="one pipeline")
    parser.add_argument("--everything", action="store_true", help="every pipeline")
    parser.add_argument("--reason", default="", help="why, in a sentence; it stays in the timeline")


def frozen_what(options: dict[str, Any]) -> Pipeline | None:
    """The pipeline that is named; None: everything. Raises: NotFound, BadInput."""
    if options["pipeline"] and options["everything"]:
        raise BadInput("--everything", "stands beside a pipeline", "Give one or the other.")
    return None if options["everything"] else pipeline_get(options["pipeline"])
