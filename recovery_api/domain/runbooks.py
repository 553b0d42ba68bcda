"""Runbooks: what somebody on call reads of each cause of an alert and of each status of a pipeline, and how it is filled in.

The law: one page a word, for every word there is. The words in capitals (PIPELINE, SINK, …) stand for a pipeline's own
values; in a command they are quoted for a shell, and one that is not known stays as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from recovery_api.domain.alerts.causes import Cause
from recovery_api.domain.outcomes import Status
from recovery_api.domain.words import words

SECTIONS = ("What it means", "Look at first", "Decide", "Do it", "Never", "Call")
"""The parts of each, in this order."""
PLACES = ("PIPELINE", "SOURCE", "SINK", "PLAN", "DIGEST", "COORDINATE", "OWNER")
"""What is filled in. NAME=VALUE is what a person decides."""
PLACE = re.compile(rf"\b({'|'.join(PLACES)})\b")
COMMAND = re.compile(r"`(manage\.py [^`]+)`")


def runbook_names() -> tuple[str, ...]:
    """Every name, causes first, each once."""
    return tuple(dict.fromkeys([*words(Cause), *words(Status)]))


@dataclass(frozen=True, slots=True)
class Runbook:
    """`title`: its heading. `sections`: text in Markdown, by heading, in order."""

    name: str
    title: str
    sections: Mapping[str, str]


def runbook_parse(name: str, text: str) -> Runbook:
    """A page's parts. Raises: ValueError where it is not made as every one is."""
    head, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    sections = {heading: body.strip() for heading, _, body in (part.partition("\n") for part in parts)}
    if not head.startswith("# ") or tuple(sections) != SECTIONS or not all(sections.values()):
        raise ValueError(f"{name}: a runbook is a title and {', '.join(SECTIONS)}")
    return Runbook(name, head.removeprefix("# ").strip(), sections)


def commands_of(text: str) -> list[str]:
    """Every command line in it, as written."""
    return COMMAND.findall(text)


def filled_text(text: str, values: Mapping[str, str]) -> str:
    """Prose with the values that are known.

    >>> filled_text("PIPELINE delivers to SINK", {"PIPELINE": "orders mail"})
    'orders mail delivers to SINK'
    """
    return PLACE.sub(lambda found: values.get(found[1]) or found[1], text)


def filled_code(text: str, values: Mapping[str, str]) -> str:
    """A command with the values that are known, quoted for a shell.

    >>> filled_code("manage.py plan PIPELINE", {"PIPELINE": "orders mail; rm -rf /"})
    "manage.py plan 'orders mail; rm -rf /'"
    """
    return PLACE.sub(lambda found: shlex.quote(values[found[1]]) if values.get(found[1]) else found[1], text)


def runbook_of(status: str, *, is_overdue: bool, is_restored: bool, is_unsettled: bool) -> str:
    """Which one to open first, of a pipeline as it stands: what keeps everything else from being known comes first.

    >>> runbook_of("unknown", is_overdue=True, is_restored=False, is_unsettled=False)
    'overdue'
    """
    if is_restored:
        return Cause.GENERATION_BACKWARDS.value
    if is_unsettled:
        return Cause.RECOVERY_UNSETTLED.value
    return Cause.OVERDUE.value if is_overdue else Status(status).value
