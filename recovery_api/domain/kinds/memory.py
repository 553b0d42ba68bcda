"""A fenced sink in the memory of one process: the protocol without a server, for tests and drills."""

from __future__ import annotations

from recovery_api.domain.abilities import Ability
from recovery_api.domain.capabilities import Archetype
from recovery_api.domain.kinds.base import Kind, Option

KIND = Kind(
    name="memory",
    end="sink",
    label="Memory of one process",
    says="A fenced sink in this process's memory. Gone when the process ends; other processes see another one.",
    archetype=Archetype.FENCED,
    abilities=frozenset({Ability.RECORD_BY_RANGE, Ability.FOLLOWED, Ability.FENCED, Ability.DRILLED}),
    connector="workers.connectors.sinks.memory.Memory",
    is_in_process=True,
    options=(
        Option("name", "Which store of this process.", is_required=True),
        Option("batch_limit", "The most entries one fire lands.", "integer", default=100_000, minimum=1),
    ),
)
