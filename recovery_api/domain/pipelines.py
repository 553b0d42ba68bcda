"""What can be set for a pipeline: declared once, parsed as strictly as a kind's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery_api.domain.kinds.base import Option, options_parse


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """The options of every pipeline, whatever its ends."""

    name: str
    options: tuple[Option, ...]


OPTIONS = PipelineOptions(
    name="pipeline",
    options=(
        Option(
            "stale_after_seconds", "After this long without an audit the status is unknown.", "integer", 900, minimum=1
        ),
        Option("approval_seconds", "How long an approval holds before it lapses.", "integer", 86_400, minimum=1),
        Option(
            "approval_by_command",
            "Whether a name typed at a command counts as the second person who approves. Nobody checks that name.",
            "boolean",
            False,
        ),
        Option("batch_limit", "Entries one fire may land; more is split by frontier.", "integer", 200_000, minimum=1),
        Option(
            "claim_wait_seconds",
            "How long a claim waits for admissions inside the sink.",
            "integer",
            5,
            minimum=1,
            maximum=60,
        ),
        Option(
            "failure_preference",
            "If the sink cannot be read: send uncertain events again, or leave them out?",
            "choice",
            None,
            choices=("resend", "skip"),
        ),
    ),
)


def pipeline_options_parse(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a pipeline with defaults filled in. Raises: UnknownOption, BadInput."""
    return options_parse(OPTIONS, given)
