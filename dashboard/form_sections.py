"""In which sections a form's fields are asked: what must be said first, and the rest by what it is about.

A field that no section names is a limit or a switch. Sections ask for an option's name and never for a kind's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from django.forms import BoundField

FIRST = "Which, and where"
ROWS = "What its rows mean"
REST = "Limits and switches"
SECTIONS: tuple[tuple[str, str], ...] = (
    # title, patterns of names
    (
        FIRST,
        "name source sink connection schema table preset folder pattern prefix scope_kind scope author_may_approve",
    ),
    (
        ROWS,
        "coordinate* event_id key op op_* content content_format filter committed_at commit_xid digest accepted_at entry "
        "generation head admitted_in lane_from lanes identity consumer consumer_* accepted_when joined_*",
    ),
    ("What is delivered into", "delivery target* effect_* is_effect"),
    ("A copy of state beside it", "state_*"),
    ("What the relay reads by", "cursor_* slot publication"),
    (
        "How long it keeps what it has",
        "retention purges_* disk_* lifetime_* record_keeps_* memory_* restore_window_* is_append_only is_written_in_order",
    ),
    (
        "What a frontier rests on",
        "share_lock* numbers_are_* event_ids_are_* keys_commit_* lock_timeout_ms lock_tries grace_seconds",
    ),
    ("Who answers for it", "owner labels"),
    (
        "Audits by themselves",
        "is_scheduled audit_* in_flight_* full_audit_* acceptance_sla_* stale_after_* image_every_*",
    ),
    ("Approvals, recoveries and drills", "approval_* claim_wait_* failure_preference batch_limit drill_*"),
    ("The archive", "is_archived archive_*"),
    ("How long a recovery takes", "margin_* operator_delay_* max_outage_* replay_* clock_error_*"),
    ("Alerts", "alert_*"),
    (REST, "*"),
)


@dataclass(frozen=True, slots=True)
class Section:
    """`is_open`: it must be said, or something in it was set or cannot be used as given."""

    title: str
    fields: list[BoundField]
    is_open: bool


def sections_of(fields: Iterable[BoundField], first: Iterable[str] = ()) -> list[Section]:
    """The fields in their sections, each once and in the form's order; those named in `first` in the first one."""
    placed: dict[str, list[BoundField]] = {title: [] for title, _ in SECTIONS}
    wanted = set(first)
    for field in fields:
        placed[FIRST if field.name in wanted else _section_of(field.name.removeprefix("option_"))].append(field)
    return [Section(title, found, _is_open(title, found)) for title, found in placed.items() if found]


def _section_of(name: str) -> str:
    return next(title for title, patterns in SECTIONS if any(fnmatchcase(name, one) for one in patterns.split()))


def _is_open(title: str, fields: list[BoundField]) -> bool:
    return title in (FIRST, ROWS) or any(field.errors or field.value() or field.field.required for field in fields)
