"""What a connector kind is, as data: its options, its archetype, what it may promise. No I/O.

Forms, commands, checks and the connectors read the same description; an option nobody declared is an error.
"""

from recovery_api.domain.kinds.base import (
    Kind,
    Option,
    Retention,
    abilities_of,
    deciding,
    gaps_of,
    kind_get,
    kind_installed,
    kind_names,
    kinds_offered,
    options_parse,
    points_of,
    retention_of,
    spelling_of,
)

__all__ = [
    "Kind",
    "Option",
    "Retention",
    "abilities_of",
    "deciding",
    "gaps_of",
    "kind_get",
    "kind_installed",
    "kind_names",
    "kinds_offered",
    "options_parse",
    "points_of",
    "retention_of",
    "spelling_of",
]
