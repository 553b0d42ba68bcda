"""A sink kind on paper: what services and commands need of a kind, and no I/O."""

from recovery_api.domain.abilities import Ability
from recovery_api.domain.kinds.base import Kind, Option

KIND = Kind(
    name="paper_sink",
    end="sink",
    label="Record on paper",
    says="A record on paper.",
    options=(Option("path", "Where the paper lies.", is_required=True),),
    connector="tests.integration.control.paper_sink.Paper",
    archetype="fenced",
    abilities=frozenset({Ability.RECORD_BY_RANGE}),
)
