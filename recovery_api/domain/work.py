"""What a worker can be asked to do: one row for each action, with everything in which actions differ."""

from __future__ import annotations

from enum import IntEnum, StrEnum

from recovery_api.domain.words import row_make


class Urgency(IntEnum):
    """In which order work of one queue is taken, whatever a worker was woken for. Within each the oldest first."""

    CLAIM = 0
    """A claim may be open at a sink."""
    WAITED_FOR = 1
    """Somebody waits at a page."""
    MAY_WAIT = 2
    """It may wait for the rest."""
    BY_ITSELF = 3
    """Nobody asked for it but a schedule."""


class IntentAction(StrEnum):
    """What is to be done. Each is one function in the worker's runner.

    A row: the word; what pages call it; what it is, and what a crash leaves behind; the queue whose wake-ups are for it,
    and so which workers take it; its urgency; after how many takes it is given up; the arguments it has.
    `is_of_a_recovery`: it moves a recovery, which is stopped or settled, never withdrawn.
    """

    label: str
    means: str
    queue: str
    urgency: Urgency
    attempts: int
    arguments: frozenset[str]
    is_of_a_recovery: bool

    def __new__(
        cls,
        word: str,
        label: str = "",
        means: str = "",
        queue: str = "default",
        urgency: Urgency = Urgency.MAY_WAIT,
        attempts: int = 1,
        arguments: tuple[str, ...] = (),
        is_of_a_recovery: bool = False,
    ) -> IntentAction:
        return row_make(
            cls,
            word,
            label=label,
            means=means,
            queue=queue,
            urgency=urgency,
            attempts=attempts,
            arguments=frozenset(arguments),
            is_of_a_recovery=is_of_a_recovery,
        )

    CONNECTION_TEST = (
        "connection_test",
        "Connection test",
        "Open one end, say what is there. Writes nothing anywhere but its report; a crash leaves nothing behind.",
        "default",
        Urgency.WAITED_FOR,
        2,
        ("end", "kind", "options"),
    )
    AUDIT = (
        "audit",
        "Audit",
        "Judge a frontier. Read only; a crash leaves nothing but a Spark job, which the successor interrupts.",
        "spark",
        Urgency.MAY_WAIT,
        5,
        ("frontier", "is_full", "is_scheduled"),
    )
    PLAN = (
        "plan",
        "Plan",
        "Compute what a recovery would send. Read only at both ends; a crash leaves a plan in `computing`.",
        "spark",
        Urgency.WAITED_FOR,
        5,
        ("frontier",),
    )
    RECOVER = (
        "recover",
        "Recovery",
        "Run the protocol for an approved plan. A crash leaves a claim at the sink: the successor settles it first.",
        "spark",
        Urgency.CLAIM,
        20,
        (),
        True,
    )
    SETTLE = (
        "settle",
        "Settling",
        "Ask the sink what became of a recovery. Idempotent; a crash leaves everything as it was.",
        "spark",
        Urgency.CLAIM,
        20,
        ("gives_up",),
        True,
    )
    SINK_READ = (
        "sink_read",
        "Reading the sink's state",
        "Ask the sink for its fence, counter and claims now. Read only; a crash leaves nothing behind.",
        "default",
        Urgency.WAITED_FOR,
        2,
    )
    SINK_INSTALL = (
        "sink_install",
        "Installing the sink kit",
        "Show or install the sink kit. One transaction at the sink; a crash leaves it whole or absent.",
        "default",
        Urgency.WAITED_FOR,
        2,
        ("kind", "options", "connection", "is_shown_only", "is_upgrade", "grants"),
    )
    EVENT_READ = (
        "event_read",
        "Reading one event",
        "Read one event at both ends, content included. Read only; a crash leaves nothing behind.",
        "default",
        Urgency.WAITED_FOR,
        3,
        ("lane", "position", "ordinal"),
    )
    OMISSION_LOOK_UP = (
        "omission_look_up",
        "Looking up a dead-letter export",
        "Find the events of a dead-letter export at the source. Read only; a crash leaves the preview as it was.",
        "default",
        Urgency.WAITED_FOR,
        3,
        ("preview",),
    )
    ARCHIVE_IMPORT = (
        "archive_import",
        "Registering files in the archive",
        "Read a person's files and keep what they hold. Writes only to the archive; a crash leaves files that go by themselves.",
        "default",
        Urgency.WAITED_FOR,
        3,
        ("files",),
    )
    IMAGE = (
        "image",
        "Comparing the target",
        "Compare a copy of state with the history, key by key. Read only; a crash leaves nothing but a Spark job.",
        "spark",
        Urgency.MAY_WAIT,
        5,
        ("frontier", "keeps_base", "is_scheduled"),
    )
    IMAGE_VALUE = (
        "image_value",
        "Reading one key",
        "Read one key's content at source and target. Read only; a crash leaves nothing behind.",
        "default",
        Urgency.WAITED_FOR,
        3,
        ("image", "number"),
    )
    DRILL = (
        "drill",
        "Drill",
        "Prove a sink's fence in a namespace of its own. A crash leaves that namespace, which the next drill removes.",
        "default",
        Urgency.MAY_WAIT,
        3,
        ("names",),
    )


QUEUES = tuple(sorted({action.queue for action in IntentAction}))
