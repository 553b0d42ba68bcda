"""What can be set for a pipeline: declared once, parsed as strictly as a kind's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery_api.domain.errors import BadInput
from recovery_api.domain.kinds.base import Option, options_parse
from recovery_api.domain.labels import labels_parse


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
        Option(
            "is_scheduled",
            "Whether it is audited by itself. Turned off, nothing audits it unless somebody asks.",
            "boolean",
            True,
        ),
        Option(
            "audit_every_seconds",
            "How often it is audited by itself; at most half of stale_after_seconds.",
            "integer",
            300,
            minimum=10,
            maximum=366 * 86_400,
        ),
        Option(
            "audit_jitter_percent",
            "By what share of that an audit may come sooner, so that pipelines do not all come at once.",
            "integer",
            10,
            minimum=0,
            maximum=90,
        ),
        Option(
            "in_flight_seconds",
            "How long an event may be on its way. Until then a scheduled audit calls it suspected, not owed.",
            "integer",
            60,
            minimum=1,
            maximum=7 * 86_400,
        ),
        Option(
            "full_audit_every_seconds",
            "How often one of these audits is made in full.",
            "integer",
            86_400,
            minimum=10,
            maximum=366 * 86_400,
        ),
        Option(
            "acceptance_sla_seconds",
            "After this long an event should have been accepted; if one waits longer, that is said.",
            "integer",
            None,
            minimum=1,
        ),
        Option(
            "is_archived",
            "Whether each audit writes what it reads, contents included, to the archive, so that what the source drops can "
            "still be sent. Contents then lie where evidence lies, for archive_days.",
            "boolean",
            False,
        ),
        Option(
            "archive_days",
            "How long a file of the archive is kept. What an open item needs is kept longer.",
            "integer",
            30,
            minimum=1,
            maximum=3660,
        ),
        Option(
            "margin_seconds",
            "How long before a memory ends a recovery must have ended. Left out: headroom is unknown.",
            "integer",
            None,
            minimum=1,
            maximum=366 * 86_400,
        ),
        Option(
            "operator_delay_seconds",
            "How long it takes a person, at worst, to see that something is owed and to start its recovery.",
            "integer",
            None,
            minimum=1,
            maximum=366 * 86_400,
        ),
        Option(
            "max_outage_seconds",
            "The longest outage of the relay that this pipeline was designed for. For the design check alone.",
            "integer",
            None,
            minimum=1,
            maximum=10 * 366 * 86_400,
        ),
        Option(
            "replay_per_second",
            "How many events a second a recovery sends, by design. The countdown uses only what recoveries showed.",
            "integer",
            None,
            minimum=1,
        ),
        Option(
            "clock_error_seconds",
            "By how much the clocks of source, sink, workers and control database may differ at most; nobody measures it."
            " Left out: nothing that is counted from a commit's time is known.",
            "integer",
            None,
            minimum=0,
            maximum=86_400,
        ),
        Option(
            "image_every_seconds",
            "How often the target is compared with the history by itself, where the sink holds a copy of state. Left out: only"
            " when somebody asks.",
            "integer",
            None,
            minimum=60,
            maximum=366 * 86_400,
        ),
        Option(
            "alert_table_bytes",
            "From this size on the source's table is told of as too large, as read at the last audit. Left out: never.",
            "integer",
            None,
            minimum=1,
        ),
        Option(
            "alert_slot_room_bytes",
            "When the relay's slot may keep fewer bytes of WAL more than this, that is told. Left out: never.",
            "integer",
            None,
            minimum=1,
        ),
        Option(
            "labels",
            "Names and values by which alerts are routed and muted: labels.team=payments.",
            "columns",
            None,
        ),
        Option("owner", "Who answers for this pipeline: a team, a person, a channel."),
    ),
)


def pipeline_options_parse(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a pipeline with defaults filled in. Raises: UnknownOption, BadInput."""
    return options_parse(OPTIONS, given)


def pipeline_options_check(parsed: Mapping[str, Any]) -> None:
    """Raises: BadInput for a label that is none, and where it would be unknown between two audits of its own schedule."""
    labels_parse(parsed["labels"])
    every, stale = parsed["audit_every_seconds"], parsed["stale_after_seconds"]
    if parsed["is_scheduled"] and 2 * every > stale:
        problem = f"is {every} s, more than half of stale_after_seconds ({stale} s): one late audit and it is unknown"
        raise BadInput(
            "pipeline.audit_every_seconds",
            problem,
            f"Set it to at most {stale // 2}, stale_after_seconds to at least {2 * every}, or is_scheduled to false.",
        )
