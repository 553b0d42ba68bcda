"""Labels of a pipeline: name and value, by which alerts are routed and muted, and lists filtered."""

from __future__ import annotations

import re
from collections.abc import Mapping

from recovery_api.domain.errors import BadInput
from recovery_api.domain.visible import visible

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,62}")
"""As Prometheus and its Alertmanager take one."""
LONGEST_VALUE = 120
MOST = 20


def labels_parse(given: Mapping[str, str] | None) -> dict[str, str]:
    """A pipeline's labels, checked. Raises: BadInput, naming the label.

    >>> labels_parse({"team": "payments", "tier": "1"})
    {'team': 'payments', 'tier': '1'}
    """
    found = dict(label_parse(f"{name}={value}") for name, value in (given or {}).items())
    if len(found) > MOST:
        raise BadInput("pipeline.labels", f"{len(found)} are given", f"Give at most {MOST}.")
    return found


def label_parse(text: str, field: str = "pipeline.labels") -> tuple[str, str]:
    """One label. Raises: BadInput; a line break or another character that nobody sees is refused."""
    name, sign, value = text.partition("=")
    remedy = "Write name=value: a name of letters, digits and underscores, a value that can be read."
    if not sign or not NAME.fullmatch(name):
        raise BadInput(field, f"{visible(text)[:80]!r} is not a label", remedy)
    if not value.strip() or len(value) > LONGEST_VALUE or value != visible(value) or not value.isprintable():
        raise BadInput(field, f"the value of {name} is empty, too long or holds what cannot be read", remedy)
    return name, value
