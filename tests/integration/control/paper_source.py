"""A source kind on paper: what services and commands need of a kind, and no I/O."""

from collections.abc import Mapping
from typing import Any

from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.kinds.base import Kind, Option


def spelling(options: Mapping[str, Any]) -> Spelling:
    return Spelling(options.get("spelling") or "bigint")


KIND = Kind(
    name="paper_source",
    end="source",
    label="History on paper",
    says="A history on paper.",
    options=(
        Option("path", "Where the paper lies.", is_required=True),
        Option("spelling", "How coordinates are written.", "choice", "bigint", choices=tuple(Spelling)),
        Option("columns", "Which column is which.", "columns"),
        Option("password", "Where the password is.", "reference"),
    ),
    spelling=spelling,
    connector="tests.integration.control.paper_source.Paper",
)
