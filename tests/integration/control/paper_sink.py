"""A sink kind on paper: what services and commands need of a kind, and no I/O."""

from recovery_api.domain.abilities import Ability
from recovery_api.domain.kinds.base import Kind, Option

KIND = Kind(
    name="paper_sink",
    end="sink",
    label="Record on paper",
    says="A record on paper.",
    options=(
        Option("path", "Where the paper lies.", is_required=True),
        Option("is_mark", "It is a record alone.", "boolean", default=False),
    ),
    connector="tests.integration.control.paper_sink.Paper",
    archetype="fenced",
    abilities=frozenset({Ability.RECORD_BY_RANGE, Ability.FENCED}),
    withheld=lambda options: frozenset({Ability.FENCED} if options["is_mark"] else ()),
)
